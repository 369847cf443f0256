"""How do the policies of one process learn what the other processes of the host have seen?

A `Lane` joins the pipeline of one guard to its row in the guard's table. The guard has read the
clock already for its own decision, so it asks `now >= lane.look_at`, and ten times in a second the
answer is yes: then `look` writes what this process has counted into its row, and reads what the
others have. There is no thread and no timer, and a guard that nobody calls does nothing.

What must not wait for the next look is exchanged in its own moment, by the four that stand in the
places of the policies: the token of a retry, the place of a probe, a place under a fixed limit, a
turn at a rate. So the host never makes more retries than its budget allows, whatever its number of
processes.

Called under the lock of the guard. Nothing here waits, but for a row, once, a few milliseconds.
"""

import atexit
import logging
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, cast, final
from weakref import WeakSet

from tidegate.core.circuit_breaker import CircuitBreaker
from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.pipeline import Pipeline
from tidegate.core.retry_budget import RetryBudget
from tidegate.core.token_bucket import TokenBucket
from tidegate.errors import InputError
from tidegate.runtime.clock import MONOTONIC
from tidegate.runtime.shared import place, remote
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.host_breaker import HostBreaker
from tidegate.runtime.shared.host_budget import HostBudget
from tidegate.runtime.shared.host_limiter import HostLimiter
from tidegate.runtime.shared.host_rate import HostRate
from tidegate.runtime.shared.owner import Owner, this_process
from tidegate.runtime.shared.row import Row
from tidegate.runtime.shared.table import Hold, Table
from tidegate.units import MILLISECOND, SECOND, Instant

__all__ = ["EVERY", "Lane", "attach"]

_log: Final = logging.getLogger("tidegate")

EVERY: Final = 100 * MILLISECOND
"""How often a process looks, at most. What is not exchanged at once is so much out of date."""

_COMPANY: Final = 10 * SECOND
"""Who has called within this time shares an adaptive limit; as long as a budget remembers."""

_CHECK_EVERY: Final = SECOND  # is the file still the one that others open?


@final
class Lane:
    """The way between one guard and the host. `hold` is the hold that is in force, or None."""

    __slots__ = (
        "__weakref__",
        "_breaker",
        "_budget",
        "_check_at",
        "_claims",
        "_hold_seen",
        "_limiter",
        "_pipelines",
        "_rate",
        "_row",
        "hold",
        "look_at",
    )

    def __init__(
        self,
        table: Table,
        pipelines: Callable[[], Iterable[Pipeline]],
        now: Instant,
        *,
        who: Callable[[], Owner] = this_process,
    ) -> None:
        """`pipelines` gives the guard's own pipeline first, then others that share its policies."""
        self.look_at: Instant = now
        self.hold: Hold | None = None
        self._pipelines: Final = pipelines
        self._row: Final = Row(table, who=who)
        self._claims = 0
        self._check_at: Instant = now + _CHECK_EVERY
        self._hold_seen = -1
        self._budget: HostBudget | None = None
        self._breaker: HostBreaker | None = None
        self._limiter: HostLimiter | None = None
        self._rate: HostRate | None = None
        self.bind(now)
        _lanes.add(self)

    def bind(self, now: Instant) -> None:
        """Take the policies that the pipelines have by now, and stand in their places.

        To be called when a pipeline has been given other policies, before it is used.
        """
        first, *more = self._pipelines()
        settings, row = first.settings, self._row
        budget, breaker, limiter, rate = _originals(first)
        self._budget = self._breaker = self._limiter = None
        self._rate = None if rate is None else HostRate(rate, row)
        if budget is not None and settings.budget is not None:
            self._budget = HostBudget(budget, settings.budget.window, row)
        if breaker is not None and settings.breaker is not None:
            self._breaker = HostBreaker(breaker, settings.breaker.window, row)
        if limiter is not None and settings.limit is not None and settings.limit.max is not None:
            self._limiter = HostLimiter(limiter, settings.limit.max, row)
        for pipeline in (first, *more):
            # They do what their originals do, and have all that a pipeline asks of them.
            pipeline.budget = cast("RetryBudget | None", self._budget)
            pipeline.breaker = cast("CircuitBreaker | None", self._breaker)
            pipeline.rate = cast("TokenBucket | None", self._rate)
            if self._limiter is not None:
                pipeline.limiter = cast("ConcurrencyLimiter", self._limiter)
        self._claims = 0
        row.leave()  # what it holds is not what these policies have counted
        self._obey(now)
        self.look(now)

    def look(self, now: Instant) -> None:
        """See what the other processes have done, and let them see what this one has."""
        self.look_at = now + EVERY
        for pipeline in self._pipelines():
            pipeline.end_calm()  # what is heard may be more than a count
        if now >= self._check_at:
            self._check_file(now)
        self._see_hold(now)
        if self._row.is_ours(now):
            self._exchange(now)
            self._row.look_after_one(now)
        if self._breaker is not None:
            self._breaker.aim(now)

    def _exchange(self, now: Instant) -> None:
        row = self._row
        budget, breaker, limiter = self._budget, self._breaker, self._limiter
        if breaker is not None and self._claims != row.claims:
            breaker.take_over(now)
        self._claims = row.claims
        row.words[row.at + t.AT] = now
        if budget is not None:
            budget.tell(now)
            budget.hear(now)
        if breaker is not None:
            breaker.exchange(now)
        if self._rate is not None:
            self._rate.tell()
        if limiter is not None:
            limiter.tell()
            row.words[row.at + t.LIMIT] = limiter.limit
        else:
            self._share_own_limit(now)

    def _share_own_limit(self, now: Instant) -> None:
        """A limit that finds itself: it hears who else has one, and people see it."""
        limiter = next(iter(self._pipelines())).limiter
        if limiter is not None:
            row = self._row
            limiter.on_others(now, row.companions(now, _COMPANY))
            row.words[row.at + t.INFLIGHT] = limiter.inflight
            row.words[row.at + t.LIMIT] = limiter.limit

    def _check_file(self, now: Instant) -> None:
        """Once in a while: a file that was removed or replaced is not where the others meet."""
        self._check_at = now + _CHECK_EVERY
        old = self._row.table
        if old.is_current():
            return
        try:
            table = Table.open(old.directory, old.name)
        except (InputError, OSError) as error:
            _tell_once(str(error))
            return
        self._row.leave(table)
        self._hold_seen = -1
        old.close()
        _say(f"{table.name}: the state shared by this host's processes began anew")

    # The hold.

    def _see_hold(self, now: Instant) -> None:
        table, hold = self._row.table, self.hold
        version = table.hold_version
        if version != self._hold_seen and not version & 1:
            hold = table.hold()
            if table.hold_version != version:
                return  # it has just changed again: at the next look
            self._hold_seen = version
        if hold is not None and hold.until and now >= hold.until:
            hold = None
        if hold != self.hold:
            self.hold = hold
            self._obey(now)

    def _obey(self, now: Instant) -> None:
        hold = self.hold
        for pipeline in self._pipelines():
            if hold is not None:
                pipeline.hold()
            elif pipeline.held:
                pipeline.free()
        if self._breaker is not None and hold is not None:
            self._breaker.hold(now, f"held by {hold.author}: {hold.reason}")
        elif self._breaker is not None:
            self._breaker.free(now)

    def _end(self) -> None:
        if self._row.at:
            now = MONOTONIC.now()
            for pipeline in self._pipelines():
                pipeline.end_calm()
            if self._row.is_ours(now):
                self._exchange(now)
                self._row.give_up()

    def _forked(self) -> None:
        self._row.leave()
        self.look_at = 0


def _originals(
    pipeline: Pipeline,
) -> tuple[
    RetryBudget | None, CircuitBreaker | None, ConcurrencyLimiter | None, TokenBucket | None
]:
    """The policies themselves, also where ours stand in their places already."""
    budget: object = pipeline.budget
    breaker: object = pipeline.breaker
    limiter: object = pipeline.limiter
    rate: object = pipeline.rate
    return (
        budget.original if isinstance(budget, HostBudget) else pipeline.budget,
        breaker.original if isinstance(breaker, HostBreaker) else pipeline.breaker,
        limiter.original if isinstance(limiter, HostLimiter) else pipeline.limiter,
        rate.original if isinstance(rate, HostRate) else pipeline.rate,
    )


def attach(name: str, pipelines: Callable[[], Iterable[Pipeline]], now: Instant) -> Lane | None:
    """Join a guard to the other processes of this host; None where that cannot be.

    To be asked where `place.can_share`.
    `now` is the machine's monotonic clock, in nanoseconds. Why it cannot be is logged, once.
    """
    try:
        directory = place.base()
        if directory is None:
            return None
        table = Table.open(directory, name)
    except (InputError, OSError) as error:
        _tell_once(str(error))
        return None
    url = os.environ.get(remote.VARIABLE)
    if url:
        remote.speak(name, directory, url)
    if table.replaced:
        _say(f"{name}: the shared state was damaged and begins anew: {table.replaced}")
    return Lane(table, pipelines, now)


_told: Final[set[str]] = set()


def _tell_once(fault: str) -> None:
    if fault not in _told and len(_told) < 100:
        _told.add(fault)
        _say(f"this process shares nothing with others of its host: {fault}")


def _say(message: str) -> None:
    """To the log, from a thread of its own: we are under a guard's lock, and a handler of the log
    may send what it is told through that very guard.
    """
    say = threading.Thread(target=_log.warning, args=("%s", message), daemon=True)
    with suppress(RuntimeError):  # at the end of the process no more threads are to be had
        say.start()


_lanes: Final[WeakSet[Lane]] = WeakSet()


def _after_fork() -> None:
    """A child has its parent's memory, and must write into no row of his."""
    for lane in _lanes:
        lane._forked()


@atexit.register
def _at_exit() -> None:
    """What was counted since the last look is told; a process that is killed takes it along."""
    for lane in _lanes:
        lane._end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
