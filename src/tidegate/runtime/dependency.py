"""What do all guards of one dependency share in this process?

The policies, the lock around them, the clock, and the counters. Every decision is one visit: one
reading of the clock, one lock, and nothing under the lock that could wait. What changed state is
picked up on the way out and told to listeners after the lock is free. Whoever has the lock takes
stock first (`core/leaves.py`): where there is nothing to decide, calls come and go without it.

The counters add up: every call that was started is `ok`, `failed`, `rejected` or `fallback`, or is
still under way.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from random import Random
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, final
from weakref import WeakSet

from tidegate.core.leaves import FEWEST, Leaves
from tidegate.core.outcome import SUCCESS, Outcome, Permit, Reason, Rejection, Transition
from tidegate.core.pipeline import Pipeline
from tidegate.errors import CircuitOpen, Held, Rejected
from tidegate.runtime import clock as clocks
from tidegate.runtime.refusals import REFUSALS, WORDS
from tidegate.settings.system import Call
from tidegate.units import SECOND, Duration, Instant

if TYPE_CHECKING:
    from tidegate.runtime.shared.lane import Lane

__all__ = ["ALERT", "LISTENERS", "Dependency", "GuardSnapshot", "Listener", "View"]

Listener = Callable[[str, Transition], None]

LISTENERS: Final[list[Listener]] = []
"""Who hears of every dependency, those that are made later too; `registry.listen` adds to it."""

_log: Final = logging.getLogger("tidegate")

_NEVER: Final = 1 << 62
_IS_OPEN: Final = WORDS[Reason.CIRCUIT_OPEN]

ALERT: Final = 10 * SECOND
"""For so long after a failure a guard tells those further in that it pays for their retries. To
tell costs a call 0.15 us, and where nothing fails nobody asks. As long as a budget remembers.
"""

# One line for each change of state, but no more than this many in a minute: a circuit that flaps
# must not fill a disk. How many were left out is said in the next one.
_LINES_A_MINUTE: Final = 20
_MINUTE: Final = 60 * SECOND


class View(Protocol):
    """A guard, as its dependency sees it."""

    @property
    def fallback(self) -> Callable[..., Any] | None:
        """What answers in the place of a call that cannot."""
        ...

    @property
    def pipeline(self) -> Pipeline:
        """The dependency's, or one that shares its policies."""
        ...

    def renew(self) -> None:
        """The dependency's pipeline is another one."""
        ...


class GuardSnapshot(NamedTuple):
    """What one dependency has seen since its process began.

    `started` calls are `ok` + `failed` + `rejected` + `fallback`, or `pending`. `attempts` is what
    was sent for them, `retries` how many of those were no first ones: attempts / started is the
    amplification. `outcomes` counts attempts by how they ended, `refused` counts by reason what
    was not sent, first attempts and retries alike, and `would_refuse` what was sent all the same
    in observe mode. `shared` calls took the end of another's that asked the same.
    """

    name: str
    started: int
    ok: int
    failed: int
    rejected: int
    fallback: int
    attempts: int
    retries: int
    outcomes: dict[str, int]
    refused: dict[str, int]
    would_refuse: dict[str, int]
    state: str
    inflight: int | None
    limit: int | None
    retry_tokens: float | None
    shared: int = 0

    @property
    def pending(self) -> int:
        """Calls that are under way."""
        return self.started - self.ok - self.failed - self.rejected - self.fallback


@final
class Dependency:
    """The shared state behind all guards of one name. Users meet it through `Guard`."""

    __slots__ = (
        "__weakref__",
        "_lines",
        "_lines_from",
        "_lines_lost",
        "_rng",
        "alert_until",
        "clock",
        "failed",
        "fallback",
        "lane",
        "late",
        "leaves",
        "listeners",
        "lock",
        "look_at",
        "name",
        "now",
        "ok",
        "outcomes",
        "pipeline",
        "refused",
        "rejected",
        "retries",
        "settings",
        "shared",
        "shared_ok",
        "started",
        "unsent",
        "views",
        "would_refuse",
    )

    def __init__(self, name: str, settings: Call, rng: Random | None = None) -> None:
        self.name: Final = name
        self.settings = settings
        self.lock = threading.Lock()  # held around the policies and the counters, nothing else
        self.clock = clocks.current()
        self.now = self.clock.now
        self._rng: Final = rng if rng is not None else Random()
        self.pipeline = Pipeline(settings, self._rng)
        self.leaves: Final = Leaves()
        self.views: WeakSet[View] = WeakSet()  # guards, whose pipelines are made from ours
        self.listeners: tuple[Listener, ...] = ()
        self.lane: Lane | None = None  # to the other processes of the host
        self.look_at: Instant = 0
        self.alert_until: Instant = 0
        self._count_from_zero()
        self._lines = self._lines_lost = 0
        self._lines_from: Instant = 0

    # Coming and going.

    def take_stock(self) -> None:
        """Under the lock, before anything else: count who came and went without it."""
        leaves = self.leaves
        if leaves.given or leaves.ended or leaves.shut_until:
            begun, ended, refused = leaves.take_stock()
            self.started += begun + refused
            self.ok += ended
            if refused:
                self.unsent += refused
                self.rejected += refused
                self.refused[Reason.CIRCUIT_OPEN] += refused

    def refill(self, now: Instant, pipeline: Pipeline) -> bool:
        """All leave is taken before its time is over: is there more? Not under the lock."""
        leaves = self.leaves
        with self.lock:
            self.take_stock()
            leaves.hand_out(now, pipeline, self.look_at)
        return bool(leaves.left)

    def admit(self, now: Instant, pipeline: Pipeline, depth: int) -> Permit | Rejection:
        """Under the lock: ask for leave for a first attempt, and count it as started."""
        leaves = self.leaves
        if leaves.given or leaves.ended or leaves.shut_until:  # as in there, without the call
            self.take_stock()
        if now >= self.look_at:
            self.look(now)
        answer = pipeline.admit(now, depth)
        if answer.__class__ is Permit:  # no call: a Ctrl-C must not come before the count
            self.started += 1
        return answer

    def end_well(self, now: Instant, pipeline: Pipeline, permit: Permit) -> None:
        """The call of this permit has ended well, and in time. Not under the lock."""
        with self.lock:
            leaves = self.leaves
            if leaves.given or leaves.ended or leaves.shut_until:
                self.take_stock()
            try:
                pipeline.settle(now, permit, SUCCESS)
            finally:
                self.ok += permit.settled
            limiter = pipeline.limiter
            if limiter is None or limiter.inflight + FEWEST < limiter.indifferent:
                leaves.hand_out(now, pipeline, self.look_at)
        breaker = pipeline.breaker
        if breaker is not None and breaker.changes:
            self.catch_up()

    # What is asked now and then.

    def look(self, now: Instant) -> None:
        """Under the lock, when `look_at` has come: see what the other processes have done.

        The first look joins them. Whoever goes by another clock than theirs stays alone: a test.
        """
        if self.clock is not clocks.MONOTONIC:
            self.look_at = _NEVER
            return
        if self.lane is None:
            from tidegate.runtime.shared.place import can_share

            if can_share():
                from tidegate.runtime.shared.lane import attach

                self.lane = attach(self.name, self._pipelines, now)
        else:
            self.lane.look(now)
        self.look_at = _NEVER if self.lane is None else self.lane.look_at

    def _pipelines(self) -> Iterator[Pipeline]:
        self.take_stock()  # what other processes are told is all that has been
        yield self.pipeline
        for view in self.views:
            if view.pipeline is not self.pipeline:
                yield view.pipeline

    def pay(self) -> bool:
        """Take a token for a retry further in; False if there is none.

        Whoever asks holds no lock: two layers may be nested either way round.
        """
        with self.lock:
            self.take_stock()
            budget = self.pipeline.budget
            return budget is None or budget.try_retry(self.now())

    # What went wrong, in words.

    def refuse(
        self, now: Instant, answer: Rejection, fallback: object
    ) -> tuple[Reason, Duration | None]:
        """Under the lock: count a first attempt that is not sent, and whether a `fallback` is there
        to answer; what its exception will say.
        """
        reason = answer.reason
        wait = self.retry_after(now, reason)
        self.leaves.hand_out(now, self.pipeline, self.look_at)
        self.started += 1
        self.refused[reason] += 1
        self.unsent += 1
        if fallback is None:
            self.rejected += 1
        else:
            self.fallback += 1
        return reason, wait

    def shut_out(self, now: Instant) -> Rejected:
        """What `refuse` and `rejection` come to, under no lock, while the circuit is shut."""
        self.leaves.refused.append(None)
        wait = self.pipeline.calm.shut_until - now
        return CircuitOpen(self.name, _IS_OPEN, wait / SECOND)

    def retry_after(self, now: Instant, reason: Reason) -> Duration | None:
        """How long until another try is worth it, as far as anybody knows."""
        hold = None if self.lane is None else self.lane.hold
        if reason is Reason.HELD and hold is not None:
            return max(0, hold.until - now) if hold.until else None
        return self.pipeline.retry_after(now, reason)

    def count_shared(self, end: Literal["ok", "failed", "rejected", "fallback"]) -> None:
        """A call has asked nothing itself and taken the end of another that asked the same."""
        with self.lock:
            self.started += 1
            self.unsent += 1
            self.shared += 1
            self.ok += end == "ok"
            self.shared_ok += end == "ok"
            self.failed += end == "failed"
            self.rejected += end == "rejected"
            self.fallback += end == "fallback"

    def rejection(self, reason: Reason, wait: Duration | None) -> Rejected:
        """A fresh exception for a call that is not sent: each carries its own traceback."""
        kind, words = REFUSALS[reason]
        if kind is Held:
            words = self.words(reason)
        return kind(self.name, words, None if wait is None else wait / SECOND)

    def words(self, reason: Reason) -> str:
        """Why, as the end of a sentence."""
        hold = None if self.lane is None else self.lane.hold
        if reason is Reason.HELD and hold is not None:
            return f"it is held open by {hold.author}: {hold.reason}"
        return WORDS[reason]

    # What changed.

    def catch_up(self) -> None:
        """Pick up what changed on the flat path, which has left the lock already."""
        with self.lock:
            self.take_stock()
            changes = self.pipeline.drain_transitions()
        self.tell(changes)

    def tell(self, changes: list[Transition]) -> None:
        """Hand changes of state to the log and to every listener. Not under the lock.

        A listener that raises is logged and stops neither the call nor the other listeners. The
        other processes are to hear of it as soon.
        """
        if changes and self.lane is not None:
            with self.lock:
                self.take_stock()
                self.look(self.now())
        for change in changes:
            self._write(change)
            for listener in (*self.listeners, *LISTENERS):
                try:
                    listener(self.name, change)
                except Exception:  # noqa: BLE001 - theirs, whatever it is; it is logged
                    _log.exception("a listener of %s failed", self.name)

    def _write(self, change: Transition) -> None:
        if change.at - self._lines_from >= _MINUTE:
            self._lines_from, self._lines = change.at, 0
        self._lines += 1
        if self._lines > _LINES_A_MINUTE:
            self._lines_lost += 1
            return
        lost = f" ({self._lines_lost} lines left out)" if self._lines_lost else ""
        self._lines_lost = 0
        _log.warning(
            "%s: %s is %s, was %s: %s%s",
            self.name,
            change.policy,
            change.after,
            change.before,
            change.reason,
            lost,
        )

    # Being changed, being seen.

    def reconfigure(self, settings: Call) -> None:
        """Go by other settings from the next call on; what has not changed keeps its state."""
        with self.lock:
            self.take_stock()
            self.pipeline = self.adjusted(settings)
            self.settings = settings
            for view in self.views:
                view.renew()
            self.pipeline.end_calm()
            if self.lane is not None:
                self.lane.bind(self.now())

    def adjusted(self, settings: Call) -> Pipeline:
        """A pipeline on other terms that shares our policies."""
        return self.pipeline.adjusted(settings, self._rng)

    def start_afresh(self, seed: str | None = None) -> None:
        """In a forked child: nothing of the parent's calls, luck or lock is ours.

        A test gives a `seed`, to have the same luck again.
        """
        self.lock = threading.Lock()
        self._rng.seed(seed)
        self.lane, self.look_at = None, 0
        self.leaves.take_stock()
        self.pipeline = Pipeline(self.settings, self._rng)
        self._count_from_zero()
        for view in self.views:
            view.renew()

    def _count_from_zero(self) -> None:
        self.started = self.ok = self.failed = self.rejected = self.fallback = 0  # calls
        self.unsent = self.retries = self.late = 0  # first attempts refused; retries; late answers
        self.shared = self.shared_ok = 0  # calls that asked nothing themselves; the good ones
        self.outcomes = [0] * len(Outcome)  # of attempts; successes: `ok` - `late` - `shared_ok`
        self.refused = [0] * len(Reason)  # what was not sent, first attempts and retries
        self.would_refuse = [0] * len(Reason)  # in observe mode

    def snapshot(self) -> GuardSnapshot:
        """What a person would ask of it, all of one instant."""
        with self.lock:
            self.take_stock()
            now = self.now()
            pipeline = self.pipeline
            breaker, limiter, budget = pipeline.breaker, pipeline.limiter, pipeline.budget
            state = "closed" if breaker is None else str(breaker.state(now))
            outcomes = {o.name.lower(): n for o, n in zip(Outcome, self.outcomes, strict=True)}
            outcomes["success"] = self.ok - self.late - self.shared_ok
            return GuardSnapshot(
                name=self.name,
                started=self.started,
                ok=self.ok,
                failed=self.failed,
                rejected=self.rejected,
                fallback=self.fallback,
                attempts=self.started - self.unsent + self.retries,
                retries=self.retries,
                outcomes=outcomes,
                refused=_by_reason(self.refused),
                would_refuse=_by_reason(self.would_refuse),
                state="held" if pipeline.held else state,
                inflight=None if limiter is None else limiter.inflight,
                limit=None if limiter is None else limiter.limit,
                retry_tokens=None if budget is None else budget.tokens(now),
                shared=self.shared,
            )


def _by_reason(counts: list[int]) -> dict[str, int]:
    return {r.name.lower(): n for r, n in zip(Reason, counts, strict=True) if n}
