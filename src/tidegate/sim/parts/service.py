"""How does a service treat what arrives: admit, queue, work, call others, answer?

A `Replica` has its own workers and queue; a `Service` is its replicas behind a balancer. Own work
comes first, then the calls as written. A blocking replica holds the worker until its answer,
through calls and backoff; another frees it after its own work. What its callers have abandoned is
still done, unless the service skips or cancels it.

A freeze, a cut of capacity and a restart are rare, so they rearrange the pending events and the
worker count; the path of a request does not look for them.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappush
from random import Random
from typing import Any, Final, final

from tidegate.core.codel import CoDel
from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.outcome import FAILURE, OVERLOADED, SUCCESS, Outcome
from tidegate.core.queue_order import can_finish, takes_newest
from tidegate.core.token_bucket import TokenBucket
from tidegate.settings import system as settings
from tidegate.settings.policies import RateLimit
from tidegate.sim.log import EventLog
from tidegate.sim.loop import Loop
from tidegate.sim.measure import ServiceTally
from tidegate.sim.parts.steps import Steps
from tidegate.sim.parts.work import NEVER, Attempt, Frame
from tidegate.units import SECOND, Duration, Instant

__all__ = ["Replica", "Service"]

_INFINITE: Final = 1 << 60  # workers of a service that has no limit


@final
class _Cancelled:
    """Marks the work of an attempt that was cancelled while a worker had it."""


_CANCELLED: Final = _Cancelled()
_WORKING: Final = object()


@final
class Replica:
    """One replica: workers, a queue, and the policies at its door."""

    __slots__ = (
        "_arrived",
        "_blocking",
        "_calling",
        "_cancels",
        "_draw",
        "_gone",
        "_guarded",
        "_heap",
        "_log",
        "_loop",
        "_luck",
        "_mean",
        "_next",
        "_paused",
        "_plain_finish",
        "_plain_queue",
        "_plain_start",
        "_refusals",
        "_served",
        "_settings",
        "_skips",
        "_workers_thawed",
        "busy",
        "codel",
        "down",
        "errors",
        "extra_latency",
        "frozen",
        "in_system",
        "limiter",
        "pool",
        "queue",
        "queue_limit",
        "slowdown",
        "steps",
        "stuck",
        "tally",
        "workers",
        "workers_full",
    )

    def __init__(
        self,
        pool: "Service",
        service: settings.Service,
        *,
        workers: int | None,
        queue_limit: int | None,
        draw: Callable[[], float],
        steps: Steps,
        loop: Loop,
        luck: Random,
        log: EventLog | None,
    ) -> None:
        self.pool: Final = pool
        self.tally: Final = pool.tally
        self.steps: Final = steps
        self.workers_full: Final = _INFINITE if workers is None else workers
        self.workers = self._workers_thawed = self.workers_full
        self.queue_limit: Final = _INFINITE if queue_limit is None else queue_limit
        self.queue: Final[deque[Attempt]] = deque()
        self.busy = 0
        self.in_system = 0  # holding a worker, waiting, or between calls
        self.slowdown = 1.0
        self.errors = service.errors
        self.extra_latency: Duration = 0
        self.frozen = False
        self.stuck = False
        self.down = False
        self.codel = CoDel(service.queue.codel) if service.queue.codel else None
        self.limiter = ConcurrencyLimiter(service.limit) if service.limit else None
        self._settings: Final = service
        self._draw: Final = draw
        self._mean: Final = int(service.time.average) if service.time else 0
        self._blocking: Final = service.blocking
        self._calling: Final[set[Frame] | None] = set() if service.restart else None
        self._cancels: Final = service.abandoned == "cancel"
        self._skips: Final = service.abandoned in {"skip", "cancel"}
        self._plain_queue: Final = (
            service.queue.order == "fifo"
            and self.codel is None
            and not service.queue.late
            and not self._skips
        )
        self._refusals: Final[deque[Attempt]] = deque()
        self._paused: list[tuple[Duration, Callable[[Instant, Any], None], Any]] = []
        self._gone = 0  # cancelled, but still standing in the queue
        self._loop: Final = loop
        self._heap: Final = loop.heap
        self._next: Final = loop.next
        self._luck: Final = luck.random
        self._log: Final = log
        self._arrived: Final = pool.tally.arrived
        self._served: Final = pool.tally.served
        self.settle_in()

    # What callers do.

    def arrive(self, now: Instant, attempt: Attempt) -> None:
        """An attempt reaches the door."""
        self._arrived[now // SECOND] += 1
        if self._guarded and not self._admit(now, attempt):
            return
        self.in_system += 1
        if self._cancels:
            attempt.replica, attempt.work = self, None
        if self.busy < self.workers:
            self.busy += 1
            self._start(now, attempt)
        elif len(self.queue) - self._gone < self.queue_limit:
            self.queue.append(attempt)
        else:
            self._full(now, attempt)

    def abandoned(self, now: Instant, attempt: Attempt) -> None:
        """The caller of `attempt` has left, and this service stops what it abandoned."""
        work, attempt.work = attempt.work, _CANCELLED
        self.tally.cancelled += 1
        if type(work) is Frame:
            self._cancel_frame(now, work)
            return
        self._leave(now, attempt)
        if work is _WORKING:
            self._free_worker(now)
        else:
            self._gone += 1  # its place is free at once; the queue skips it at its turn

    # What the loop and the calls report back.

    def worked(self, now: Instant, attempt: Attempt) -> None:
        """Own work is done.

        The first branch is `_finish` and `_free_worker` written flat: nine in ten events of most
        runs pass here, and the calls cost a fifth of a run.
        """
        if self._plain_finish:
            second = now // SECOND
            self._served[second] += 1
            self.in_system -= 1
            if attempt.frame is None:
                self.tally.late[second] += 1
            else:
                attempt.site.succeed(now, attempt)
            if (
                self.queue
                and self._plain_queue
                and not self._refusals
                and (self.busy <= self.workers)
            ):
                self._start(now, self.queue.popleft())
            else:
                self._free_worker(now)
            return
        if self._cancels and attempt.work is _CANCELLED:
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
        if verdict is None:
            return
        attempt = frame.attempt
        assert attempt is not None
        if frame.degraded:
            self.tally.degraded += 1
        if self._calling is not None:
            self._calling.discard(frame)
        self._finish(now, attempt, SUCCESS if verdict else FAILURE, held=self._blocking)

    def refused(self, now: Instant, attempt: Attempt) -> None:
        """A worker has finished saying no."""
        self._free_worker(now)
        attempt.site.reply(now, attempt, OVERLOADED)

    # What faults and actions do.

    def _set_workers(self, now: Instant, workers: int) -> None:
        """Give or take workers; running work finishes."""
        self.workers = workers
        while self.busy < self.workers and (self.queue or self._refusals):
            self.busy += 1
            self._free_worker(now)

    def resume(self, now: Instant, workers: int, *, frozen: bool) -> None:
        """Have so many workers, all of them frozen or none.

        A freeze stops all progress: what is in hand stays there, what arrives queues. A replica
        that is stuck stays frozen whatever the faults say.
        """
        if (frozen or self.stuck) and not self.frozen:
            self.frozen = True
            pending = self._loop.take(self)
            self._paused = [(when - now, call, what) for when, _, call, what in pending]
        elif self.frozen and not (frozen or self.stuck):
            self.frozen = False
            for left, callback, argument in self._paused:
                self._loop.at(now + left, callback, argument)
            self._paused = []
        self._workers_thawed = workers
        self.settle_in()
        self._set_workers(now, 0 if self.frozen else workers)

    def reset(self, now: Instant) -> None:
        """Somebody has freed what was stuck."""
        self.stuck = False
        self.resume(now, self._workers_thawed, frozen=False)

    def stick(self, now: Instant) -> None:
        """Accept everything and finish nothing, until `reset`."""
        self.stuck = True
        self.resume(now, self._workers_thawed, frozen=True)

    def drop_all(self, now: Instant) -> None:
        """Lose everything held: callers see a broken connection."""
        held = [*self.queue, *(what for _, _, call, what in self._loop.take(self))]
        held += [what for _, _, what in self._paused if type(what) is Attempt]
        for frame in sorted(self._calling or (), key=_born):
            frame.done = True
            held.append(frame.attempt)
        refused = [*self._refusals]
        for pile in (self.queue, self._refusals, self._paused, self._calling or set()):
            pile.clear()
        self.busy = self._gone = 0
        for attempt in held:
            self._leave(now, attempt)
            self.tally.dropped += 1
            attempt.site.reply(now, attempt, FAILURE)
        for attempt in refused:
            attempt.site.reply(now, attempt, OVERLOADED)

    def flush(self, now: Instant) -> None:
        """Empty the queue: callers see an error."""
        held = list(self.queue)
        self.queue.clear()
        for attempt in held:
            self._leave(now, attempt)
            self.tally.dropped += 1
            attempt.site.reply(now, attempt, FAILURE)

    def settle_in(self) -> None:
        """Work out which of the short paths still hold, after something has changed."""
        service = self._settings
        self._guarded = bool(self.pool.rate or self.limiter or service.restart)
        self._plain_start = not (
            self._cancels
            or service.thrash
            or service.contention
            or self.slowdown != 1.0
            or (self._mean == 0 and self.workers_full == _INFINITE)
        )
        self._plain_finish = (
            self.steps.empty
            and not self._cancels
            and self.limiter is None
            and not self.errors
            and not self.extra_latency
        )

    # Private parts: the door.

    def _admit(self, now: Instant, attempt: Attempt) -> bool:
        if self.down:
            attempt.site.reply(now, attempt, FAILURE)
            self.tally.dropped += 1
            return False
        if self.pool.rate is not None and not self.pool.rate.try_acquire(now):
            self._refuse(now, attempt)
            return False
        if self.limiter is not None and not self.limiter.try_acquire(now):
            self._refuse(now, attempt)
            return False
        restart = self._settings.restart
        # What is stuck has protected itself already: it waits for somebody, not for its backlog.
        if restart is not None and not self.stuck and len(self.queue) >= restart.backlog:
            self._restart(now, restart)
            attempt.site.reply(now, attempt, FAILURE)
            self.tally.dropped += 1
            return False
        return True

    def _full(self, now: Instant, attempt: Attempt) -> None:
        self._leave(now, attempt)
        if self._settings.queue.full == "silence":
            self.tally.dropped += 1
        else:
            self._refuse(now, attempt)

    def _refuse(self, now: Instant, attempt: Attempt) -> None:
        """Say no: at once, or by a worker for a share of the usual time, before queued work."""
        self.tally.refused[now // SECOND] += 1
        if self._log is not None:
            self._log.line(now, self.pool.name, "refused")
        if not self._settings.refusal_cost or self.workers_full == _INFINITE:
            attempt.site.reply(now, attempt, OVERLOADED)
        elif self.busy < self.workers:
            self.busy += 1
            self._start_refusal(now, attempt)
        else:
            self._refusals.append(attempt)

    def _start_refusal(self, now: Instant, attempt: Attempt) -> None:
        cost = self._draw() * self.slowdown * self._settings.refusal_cost
        heappush(self._heap, (now + int(cost), self._next(), self.refused, attempt))

    def _restart(self, now: Instant, restart: settings.Restart) -> None:
        if self._log is not None:
            self._log.line(now, self.pool.name, "restarts")
        self.down = True
        self.drop_all(now)
        self._loop.at(now + restart.down, _restarted, (self, restart))

    # Private parts: workers.

    def _start(self, now: Instant, attempt: Attempt) -> None:
        """A worker takes `attempt` and begins its own work."""
        if self._plain_start:
            heappush(self._heap, (now + int(self._draw()), self._next(), self.worked, attempt))
            return
        if self._mean == 0 and self.workers_full == _INFINITE:
            self.worked(now, attempt)
            return
        service = self._settings
        time = self._draw()
        if self.slowdown != 1.0:
            time *= self.slowdown
        if service.thrash:
            time *= 1 + service.thrash * len(self.queue)
        if service.contention is not None:
            time += service.contention * self.in_system
        if self._cancels:
            attempt.work = _WORKING
        heappush(self._heap, (now + int(time), self._next(), self.worked, attempt))

    def _free_worker(self, now: Instant) -> None:
        """The worker of something finished takes the next in line, or rests."""
        if self.busy > self.workers:
            self.busy -= 1
        elif self._refusals:
            self._start_refusal(now, self._refusals.popleft())
        elif self.queue:
            if self._plain_queue:
                self._start(now, self.queue.popleft())
            else:
                self._take_next(now)
        else:
            self.busy -= 1

    def _take_next(self, now: Instant) -> None:
        """As `_free_worker`, where the queue has an order or drops what is not worth doing."""
        queue = self.queue
        order = self._settings.queue.order
        while queue:
            newest = takes_newest(order, len(queue), self.workers)
            attempt = queue.pop() if newest else queue.popleft()
            if self._cancels and attempt.work is _CANCELLED:
                self._gone -= 1
                continue
            if self._worth_doing(now, attempt):
                self._start(now, attempt)
                return
            self._leave(now, attempt)
            self.tally.dropped += 1
            if attempt.frame is not None:
                attempt.site.reply(now, attempt, OVERLOADED)
        self.busy -= 1

    def _worth_doing(self, now: Instant, attempt: Attempt) -> bool:
        if self._skips and attempt.frame is None:
            return False
        if self._settings.queue.late and not can_finish(now, attempt.leaves_at, self._mean):
            return False
        return self.codel is None or self.codel.on_dequeue(now, attempt.sent, not self.queue)

    def _call_others(self, now: Instant, attempt: Attempt) -> None:
        deadline = attempt.leaves_at if attempt.site.propagate else NEVER
        frame = Frame(self, attempt, now, attempt.depth, deadline)
        if self._cancels:
            attempt.work = frame
            frame.children = set()
        if self._calling is not None:
            self._calling.add(frame)
        if not self._blocking:
            self._free_worker(now)
        if self.steps.begin(now, frame):
            self._finish(now, attempt, SUCCESS, held=self._blocking)

    def _finish(
        self, now: Instant, attempt: Attempt, outcome: Outcome, *, held: bool = True
    ) -> None:
        """Answer, and free the worker if it is still `held`."""
        self._served[now // SECOND] += 1
        self.in_system -= 1
        if self.limiter is not None:
            self.limiter.release(now, now - attempt.sent, outcome)
        if attempt.frame is None:
            self.tally.late[now // SECOND] += 1
        elif self.extra_latency:
            self._loop.at(now + self.extra_latency, _late_reply, (attempt, outcome))
        elif outcome is SUCCESS:
            attempt.site.succeed(now, attempt)
        else:
            attempt.site.reply(now, attempt, outcome)
        if held:
            self._free_worker(now)

    def _leave(self, now: Instant, attempt: Attempt) -> None:
        """`attempt` is gone without an answer of its own."""
        self.in_system -= 1
        if self.limiter is not None:
            self.limiter.release(now, now - attempt.sent, OVERLOADED)

    def _cancel_frame(self, now: Instant, frame: Frame) -> None:
        frame.done = True
        for child in tuple(frame.children or ()):
            if child.frame is not None:
                child.site.abandon(now, child)
        assert frame.attempt is not None
        self._leave(now, frame.attempt)
        if self._calling is not None:
            self._calling.discard(frame)
        if self._blocking:
            self._free_worker(now)

    def _call_resumed(self, now: Instant, what: tuple[Frame, bool, bool]) -> None:
        self.call_done(now, *what)


def _restarted(now: Instant, what: tuple[Replica, settings.Restart]) -> None:
    """Back after a restart: accepting, and stuck if that is how it comes back.

    No method, so that a freeze of the replica does not hold up its restart.
    """
    replica, restart = what
    replica.down = False
    if restart.stuck:
        replica.stick(now)


def _late_reply(now: Instant, what: tuple[Attempt, Outcome]) -> None:
    attempt, outcome = what
    attempt.site.reply(now, attempt, outcome)


@final
class Service:
    """The replicas of one service behind their balancer, and the rate limit that they share."""

    __slots__ = (
        "_balance",
        "_luck",
        "_turn",
        "arrive",
        "cancels",
        "name",
        "rate",
        "replicas",
        "tally",
    )

    def __init__(
        self, name: str, service: settings.Service, luck: Random, tally: ServiceTally
    ) -> None:
        self.name: Final = name
        self.replicas: Final[list[Replica]] = []
        self.tally: Final = tally
        self.cancels: Final = service.abandoned == "cancel"
        self.rate = TokenBucket(service.rate_limit) if service.rate_limit else None
        self._balance: Final = service.balance
        self._luck: Final = luck
        self._turn = 0
        self.arrive: Callable[[Instant, Attempt], None] = self._spread

    def add(self, replica: Replica) -> None:
        """Put one more replica behind the balancer; a single one needs none."""
        self.replicas.append(replica)
        self.arrive = self.replicas[0].arrive if len(self.replicas) == 1 else self._spread

    def limit_rate(self, now: Instant, rate: RateLimit | None) -> None:
        """Change the rate limit while requests are under way."""
        if rate is None or self.rate is None:
            self.rate = None if rate is None else TokenBucket(rate)
        else:
            self.rate.reconfigure(now, rate)
        for replica in self.replicas:
            replica.settle_in()

    def abandoned(self, now: Instant, attempt: Attempt) -> None:
        """The caller of `attempt` has left, and this service cancels what it abandoned."""
        if attempt.work is not _CANCELLED:
            attempt.replica.abandoned(now, attempt)

    def _spread(self, now: Instant, attempt: Attempt) -> None:
        replicas = self.replicas
        if self._balance == "round_robin":
            self._turn = (self._turn + 1) % len(replicas)
            replica = replicas[self._turn]
        elif self._balance == "random":
            replica = replicas[int(self._luck.random() * len(replicas))]
        else:
            replica = min(replicas, key=_in_system)
        replica.arrive(now, attempt)


def _in_system(replica: Replica) -> int:
    return replica.in_system


def _born(frame: Frame) -> Instant:
    return frame.born
