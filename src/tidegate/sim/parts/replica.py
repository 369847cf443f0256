"""How does one replica treat what arrives: admit, queue, work, call others, answer?

Own work comes first, then the calls as written. A blocking replica holds the worker until its
answer, through calls and backoff; another frees it after its own work. What its callers have
abandoned is still done, unless the service skips or cancels it. A worker is free again before its
answer leaves, so that whoever hears it may come back at once.

A freeze, a cut of capacity and a restart are rare, so they rearrange the pending events and the
worker count; the path of a request does not look for them.
"""

from collections.abc import Callable
from heapq import heappush
from random import Random
from typing import Any, Final, Protocol, final

from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.fair_queue import Waiting
from tidegate.core.outcome import FAILURE, IGNORED, OVERLOADED, SUCCESS, Outcome
from tidegate.core.token_bucket import TokenBucket
from tidegate.settings import system as settings
from tidegate.sim.log import EventLog
from tidegate.sim.loop import Callback, Event, Loop
from tidegate.sim.measure import ServiceTally
from tidegate.sim.parts.door import Door
from tidegate.sim.parts.line import Line
from tidegate.sim.parts.steps import Steps
from tidegate.sim.parts.work import NEVER, OVER, Attempt, Frame
from tidegate.sim.spans import SpanRecorder
from tidegate.units import Duration, Instant

__all__ = ["INFINITE", "Pool", "Replica"]

INFINITE: Final = 1 << 60  # workers of a service that has no limit


class Pool(Protocol):
    """What the replicas of one service share."""

    rate: TokenBucket | None

    @property
    def name(self) -> str:
        """The service's."""
        ...

    @property
    def replicas(self) -> "list[Replica]":
        """All of them."""
        ...

    @property
    def tally(self) -> ServiceTally:
        """Where all replicas count."""
        ...


@final
class Replica:
    """One replica: workers, a line before them, and the policies at its door.

    `busy` workers hold a request or, `refusing` of them, say no; `calling` requests wait for calls
    without a worker.
    """

    __slots__ = (
        "_arrivals",
        "_blocking",
        "_calling",
        "_cancels",
        "_draw",
        "_finished",
        "_guarded",
        "_heap",
        "_instant",
        "_keeps_frames",
        "_log",
        "_loop",
        "_luck",
        "_next",
        "_opening",
        "_paused",
        "_plain_finish",
        "_plain_line",
        "_plain_start",
        "_queue",
        "_settings",
        "_spans",
        "_unbounded",
        "_waking",
        "_worked_event",
        "busy",
        "calling",
        "door",
        "down",
        "errors",
        "extra_latency",
        "frozen",
        "limiter",
        "line",
        "pool",
        "refusing",
        "slowdown",
        "steps",
        "stuck",
        "tally",
        "workers",
        "workers_full",
    )

    def __init__(
        self,
        pool: Pool,
        service: settings.Service,
        *,
        line: Line,
        limiter: ConcurrencyLimiter | None,
        door: Door | None = None,
        draw: Callable[[], float],
        steps: Steps,
        loop: Loop,
        luck: Random,
        log: EventLog | None,
        spans: SpanRecorder | None,
    ) -> None:
        self.pool: Final = pool
        self.tally: Final = pool.tally
        self.steps: Final = steps
        self.line: Final = line
        self.limiter: Final = limiter
        self.door: Final = door
        self._waking = False  # somebody will look at the door in time
        self._opening = False  # somebody is at it now
        self.workers_full: Final = INFINITE if service.workers is None else service.workers
        self.workers = self.workers_full
        line.workers += self.workers
        self.busy = 0
        self.refusing = 0
        self.calling = 0
        self.slowdown = 1.0
        self.errors = service.errors
        self.extra_latency: Duration = 0
        self.frozen = False
        self.stuck = False
        self.down = False
        self._settings: Final = service
        self._draw: Final = draw
        self._blocking: Final = service.blocking
        self._cancels: Final = service.abandoned == "cancel"
        self._keeps_frames: Final = self._cancels or service.restart is not None
        # The frames that a restart would lose, in their order.
        self._calling: Final[dict[Frame, None]] = {}
        self._paused: list[tuple[Duration, Callback, Any]] = []
        self._unbounded: Final = line.places is None and service.restart is None
        self._plain_line: Final = line.plain and not service.refusal_cost
        self._instant: Final = (
            service.workers is None
            and (service.time is None or service.time.average == 0)
            and not service.contention
        )
        self._queue: Final = line.items
        self._loop: Final = loop
        self._heap: Final[list[Event]] = loop.heap
        self._next: Final = loop.next
        self._luck: Final = luck.random
        self._log: Final = log
        self._spans: Final = spans
        self._arrivals: Final = pool.tally.arrivals
        self._finished: Final = pool.tally.finished
        self._worked_event: Final[Callback] = self.worked
        self.settle_in()

    @property
    def in_system(self) -> int:
        """Requests that hold a worker, make their calls, or wait, in its line or at its door."""
        at_door = self.door.waiting if self.door is not None else 0
        return self.inside + at_door

    @property
    def inside(self) -> int:
        """Requests that hold a worker, wait in its line, or make their calls."""
        return self.holding + self.line.waiting

    @property
    def holding(self) -> int:
        """Requests that have left the line and are not answered yet."""
        return self.busy - self.refusing + self.calling

    # What callers do.

    def arrive(self, now: Instant, attempt: Attempt) -> None:
        """An attempt reaches the door."""
        self._arrivals.count += 1
        if self._guarded and not self._admit(now, attempt):
            return
        if self.busy < self.workers:
            self.busy += 1
            if self._plain_start:
                when = now + int(self._draw())
                heappush(self._heap, (when, self._next(), self._worked_event, attempt))
            elif self._instant:
                self.worked(now, attempt)
            else:
                self._start(now, attempt)
        elif self._unbounded:
            self._queue.append(attempt)
        else:
            self._wait(now, attempt)

    def abandoned(self, now: Instant, attempt: Attempt) -> None:
        """The caller of `attempt` has left, and this service stops what it abandoned."""
        frame, attempt.work = attempt.work, OVER
        self.tally.cancelled += 1
        if type(frame) is Waiting:
            assert self.door is not None
            self.door.leave(now, frame)
            return
        if frame is None:
            self.line.leave()
        elif frame is _WORKING:
            self._free_worker(now)
        else:
            self._call_off(now, frame)
            self._let_go(now)
        self._release(now, attempt, IGNORED)

    # What the loop and the calls report back.

    def worked(self, now: Instant, attempt: Attempt) -> None:
        """Own work is done.

        The first branch is `_finish` and `_free_worker` written flat: nine in ten events of most
        runs pass here, and the calls cost a fifth of a run.
        """
        if self._plain_finish:
            self._finished.count += 1
            if self._queue and self._plain_line and self.busy <= self.workers:
                self._start(now, self._queue.popleft())
            else:
                self._free_worker(now)
            if attempt.frame is None:
                self.tally.wasted.count += 1
            else:
                attempt.site.succeed(now, attempt)
            return
        if attempt.work is OVER:  # cancelled meanwhile
            return
        if self.errors and self._luck() < self.errors:
            self._finish(now, attempt, FAILURE)
        elif self.steps.empty:
            self._finish(now, attempt, SUCCESS)
        else:
            self._call_others(now, attempt)

    def call_done(self, now: Instant, frame: Frame, optional: bool, ok: bool) -> None:
        """One call of `frame` is over."""
        if self.frozen:
            self._paused.append((0, self._call_resumed, (frame, optional, ok)))
            return
        verdict = self.steps.after(now, frame, optional, ok)
        if verdict is not None:
            self._answer(now, frame, ok=verdict)

    def refused(self, now: Instant, attempt: Attempt) -> None:
        """A worker has finished saying no."""
        self.refusing -= 1
        self._free_worker(now)
        attempt.site.reply(now, attempt, OVERLOADED)

    # What faults and actions do.

    def resume(self, now: Instant, workers: int, *, frozen: bool) -> None:
        """Have so many workers, all of them frozen or none.

        A freeze stops all progress: what is in hand stays there, what arrives queues, what fails
        is not tried again. A replica that is stuck stays frozen whatever the faults say.
        """
        if (frozen or self.stuck) and not self.frozen:
            self._freeze(now)
        elif self.frozen and not (frozen or self.stuck):
            self._thaw(now)
        self.settle_in()
        self._set_workers(now, 0 if self.frozen else workers)

    def restart(self, now: Instant, down: Duration) -> None:
        """Lose everything held, so that callers see a broken connection, and be away so long."""
        if self._log is not None:
            self._log.line(now, self.pool.name, "restarts")
        self.down = True
        self._clear_door(now)
        held = self.line.clear(now)
        refused = [*self.line.refusals]
        self.line.refusals.clear()
        pending = [(call, what) for _, _, call, what in self._loop.take(self)]
        pending += [(call, what) for _, call, what in self._paused]
        self._paused = []
        self._waking = False
        for callback, what in pending:
            if callback == self._worked_event and what.work is not OVER:
                held.append(what)
            elif callback == self.refused:
                refused.append(what)
        for frame in tuple(self._calling):
            self._call_off(now, frame)
            assert frame.attempt is not None
            held.append(frame.attempt)
        self.busy = self.refusing = self.calling = 0
        for attempt in held:
            self._drop(now, attempt)
        for attempt in refused:
            attempt.site.reply(now, attempt, OVERLOADED)
        self._loop.at(now + down, _restarted, self)

    def come_back(self, now: Instant) -> None:
        """Accept again after a restart. Who comes back stuck finishes nothing until it is reset.

        To reset it, take `stuck` away and let it `resume`.
        """
        self.down = False
        restart = self._settings.restart
        if restart is not None and restart.stuck:
            self.stuck = True
            self.resume(now, self.workers, frozen=True)

    def flush(self, now: Instant) -> None:
        """Empty the line, and send away who waits at the door: callers see an error."""
        self._clear_door(now)
        for attempt in self.line.clear(now):
            self._drop(now, attempt)

    def settle_in(self) -> None:
        """Work out which of the short paths still hold, after something has changed."""
        service = self._settings
        self._guarded = bool(
            self.pool.rate
            or self.limiter
            or self.door
            or service.restart
            or service.abandoned != "finish"
        )
        self._plain_start = not (
            self._instant
            or self._cancels
            or service.thrash
            or service.contention
            or self.slowdown != 1.0
        )
        self._plain_finish = (
            self.steps.empty
            and not self._cancels
            and self.limiter is None
            and self.door is None
            and not self.errors
            and not self.extra_latency
            and self._spans is None
        )

    # Private parts: the door.

    def _admit(self, now: Instant, attempt: Attempt) -> bool:
        if attempt.frame is None and self._settings.abandoned != "finish":
            self._turn_away(attempt)  # its caller has left while it was on its way
            return False
        if self._cancels:
            attempt.replica = self
        if self.down:
            self.tally.dropped += 1
            attempt.work = OVER
            attempt.site.reply(now, attempt, FAILURE)
            return False
        if self.pool.rate is not None and not self.pool.rate.try_acquire(now):
            self._refuse(now, attempt)
            return False
        if self.limiter is not None and not self.limiter.try_acquire(now):
            self._refuse(now, attempt)
            return False
        return self.door is None or self._knock(now, self.door, attempt)

    def _knock(self, now: Instant, door: Door, attempt: Attempt) -> bool:
        """Whether the door lets `attempt` in now."""
        answer = door.ask(now, attempt)
        if answer is False:
            self._refuse(now, attempt)
        elif answer is None:
            self._wake_in_time(now, door)
        self._open_door(now)  # somebody may have had to make room
        return answer is True

    def _open_door(self, now: Instant) -> None:
        """Let in or send away all who have waited and are decided.

        Who comes in may find the line full and go out again, which decides about the next: that is
        for the same round.
        """
        if self.door is None or self._opening:
            return
        self._opening = True
        for attempt, admitted in self.door.decided(now):
            if not admitted:
                self._refuse(now, attempt)
            elif attempt.frame is None and self._settings.abandoned != "finish":
                self._turn_away(attempt)
                self.door.done(now, attempt, IGNORED)
            else:
                self._one_with_a_worker().enter(now, attempt)
        self._opening = False

    def _one_with_a_worker(self) -> "Replica":
        """Of those who have this line, one that can begin; else this one: they have one line."""
        if self.busy < self.workers or self.line.replicas == 1:
            return self
        return next((one for one in self.pool.replicas if one.busy < one.workers), self)

    def enter(self, now: Instant, attempt: Attempt) -> None:
        """`attempt` comes in from the door."""
        if self.busy < self.workers:
            self.busy += 1
            self._start(now, attempt)
        else:
            self._wait(now, attempt)

    def _wake_in_time(self, now: Instant, door: Door) -> None:
        due = door.wakes_at()
        if due is not None and not self._waking:
            self._waking = True
            self._loop.at(max(now, due), self._woken)  # it may have passed in a freeze

    def _woken(self, now: Instant, _: None) -> None:
        """Somebody at the door may have waited too long."""
        assert self.door is not None
        self._waking = False
        self.door.wake(now)
        self._open_door(now)
        self._wake_in_time(now, self.door)

    def _clear_door(self, now: Instant) -> None:
        if self.door is not None:
            for attempt in self.door.clear(now):
                self._lose(now, attempt)

    def _release(self, now: Instant, attempt: Attempt, outcome: Outcome) -> None:
        """`attempt` is out: give its place back to the limit, or to who is next at the door."""
        if self.limiter is not None:
            self.limiter.release(now, now - attempt.sent, outcome)
        elif self.door is not None:
            self.door.done(now, attempt, outcome)
            self._open_door(now)

    def _turn_away(self, attempt: Attempt) -> None:
        if self._cancels:
            self.tally.cancelled += 1
        else:
            self.tally.dropped += 1
        attempt.work = OVER

    def _wait(self, now: Instant, attempt: Attempt) -> None:
        """Join the line, if it has a place; it may be the one too many that breaks the replica."""
        if self.line.full():
            self._release(now, attempt, OVERLOADED)
            if self._settings.queue.full == "silence":
                self.tally.dropped += 1
                attempt.work = OVER
            else:
                self._refuse(now, attempt)
            return
        self._queue.append(attempt)
        restart = self._settings.restart
        # What is stuck has protected itself already: it waits for somebody, not for its backlog.
        if restart is None or self.stuck:
            return
        if self.line.waiting > restart.backlog * self.line.replicas:
            for replica in self.pool.replicas:
                if replica.line is self.line:
                    replica.restart(now, restart.down)

    def _refuse(self, now: Instant, attempt: Attempt) -> None:
        """Say no: at once, or by a worker for a share of the usual time, before queued work.

        That takes a worker or a place to wait for one; without either nothing is said.
        """
        attempt.work = OVER
        if not self._settings.refusal_cost or self.workers_full == INFINITE:
            attempt.site.reply(now, attempt, OVERLOADED)
        elif self.busy < self.workers:
            self.busy += 1
            self._start_refusal(now, attempt)
        elif not self.line.full():
            self.line.refusals.append(attempt)
        else:
            self.tally.dropped += 1
            return
        self.tally.refusals.count += 1
        if self._log is not None:
            self._log.line(now, self.pool.name, "refused", attempt.site.name)

    def _start_refusal(self, now: Instant, attempt: Attempt) -> None:
        self.refusing += 1
        cost = self._draw() * self.slowdown * self._settings.refusal_cost
        self._loop.at(now + int(cost), self.refused, attempt)

    # Private parts: workers.

    def _start(self, now: Instant, attempt: Attempt) -> None:
        """A worker takes `attempt` and begins its own work."""
        if self._plain_start:
            when = now + int(self._draw())
            heappush(self._heap, (when, self._next(), self._worked_event, attempt))
            return
        service = self._settings
        time = self._draw()
        if self.slowdown != 1.0:
            time *= self.slowdown
        if service.thrash:
            time *= 1 + service.thrash * self.line.waiting
        if service.contention is not None:
            time += service.contention * self.inside
        if self._cancels:
            attempt.replica, attempt.work = self, _WORKING
        heappush(self._heap, (now + int(time), self._next(), self._worked_event, attempt))

    def _free_worker(self, now: Instant) -> None:
        """A worker takes the next in line, or rests."""
        line = self.line
        if self.busy > self.workers:
            self.busy -= 1
        elif line.refusals:
            self._start_refusal(now, line.refusals.popleft())
        elif line.plain:
            if line.items:
                self._start(now, line.items.popleft())
            else:
                self.busy -= 1
        else:
            self._take_next(now)

    def _take_next(self, now: Instant) -> None:
        """As `_free_worker`, where the line has an order or drops what is not worth doing."""
        while (attempt := self.line.next()) is not None:
            if self.line.worth_serving(now, attempt):
                self._start(now, attempt)
                return
            self._release(now, attempt, OVERLOADED)
            self.tally.dropped += 1
            attempt.work = OVER
            attempt.site.reply(now, attempt, OVERLOADED)
        self.busy -= 1

    def _let_go(self, now: Instant) -> None:
        """The calls of a request are over: free what it held meanwhile."""
        if self._blocking:
            self._free_worker(now)
        else:
            self.calling -= 1

    def _set_workers(self, now: Instant, workers: int) -> None:
        """Give or take workers; running work finishes."""
        self.line.workers += workers - self.workers
        self.workers = workers
        while self.busy < self.workers and (self.line.waiting or self.line.refusals):
            self.busy += 1
            self._free_worker(now)

    # Private parts: calls and answers.

    def _call_others(self, now: Instant, attempt: Attempt) -> None:
        deadline = attempt.leaves_at if attempt.site.propagate else NEVER
        frame = Frame(self, attempt, now, attempt.depth, deadline)
        if self._keeps_frames:
            attempt.work = frame
            frame.children = {}
            self._calling[frame] = None
        if not self._blocking:
            self.calling += 1
            self._free_worker(now)
        if self.steps.begin(now, frame):
            self._answer(now, frame, ok=True)

    def _answer(self, now: Instant, frame: Frame, *, ok: bool) -> None:
        """The calls of `frame` are over, and so is its request."""
        attempt = frame.attempt
        assert attempt is not None
        if self._keeps_frames:
            self._call_off(now, frame)
        if not self._blocking:
            self.calling -= 1
        self.tally.degraded += ok and frame.degraded
        self._finish(now, attempt, SUCCESS if ok else FAILURE, held=self._blocking)

    def _finish(
        self, now: Instant, attempt: Attempt, outcome: Outcome, *, held: bool = True
    ) -> None:
        """Free the worker if it is still `held`, and answer."""
        self._finished.count += 1
        attempt.work = OVER
        if self._spans is not None:
            self._spans.served(now, attempt, self, outcome)
        if self.limiter is not None:
            self.limiter.release(now, now - attempt.sent, outcome)
        if held:
            self._free_worker(now)
        if self.door is not None:  # after the worker: whoever comes in now may take it
            self._release(now, attempt, outcome)
        if attempt.frame is None:
            self.tally.wasted.count += 1
        elif outcome is SUCCESS and not self.extra_latency:
            attempt.site.succeed(now, attempt)
        else:
            attempt.site.reply(now, attempt, outcome, self.extra_latency)

    def _call_off(self, now: Instant, frame: Frame) -> None:
        """`frame` is over: call back those of its attempts that are still out."""
        frame.done = True
        self._calling.pop(frame, None)
        for child in tuple(frame.children or ()):
            if child.frame is not None:
                child.site.abandon(now, child)

    def _call_resumed(self, now: Instant, what: tuple[Frame, bool, bool]) -> None:
        self.call_done(now, *what)

    # Private parts: freezing and losing.

    def _freeze(self, now: Instant) -> None:
        self.frozen = True
        pending = self._loop.take(self)
        self._paused = [(when - now, callback, what) for when, _, callback, what in pending]
        for step in self.steps.entries:
            step.site.pause()

    def _thaw(self, now: Instant) -> None:
        self.frozen = False
        paused, self._paused = self._paused, []
        for left, callback, argument in paused:
            self._loop.at(now + left, callback, argument)
        for step in self.steps.entries:
            step.site.unpause(now)

    def _drop(self, now: Instant, attempt: Attempt) -> None:
        """`attempt` is lost, and its caller sees an error."""
        self._release(now, attempt, OVERLOADED)
        self._lose(now, attempt)

    def _lose(self, now: Instant, attempt: Attempt) -> None:
        """As `_drop`, of one who was never let in."""
        attempt.work = OVER
        self.tally.dropped += 1
        attempt.site.reply(now, attempt, FAILURE)


@final
class _Working:
    """The state of an attempt in a worker's hands, where that must be known."""


_WORKING: Final = _Working()


def _restarted(now: Instant, replica: Replica) -> None:
    """Back after a restart.

    No method, so that a freeze of the replica does not hold up its restart.
    """
    replica.come_back(now)
