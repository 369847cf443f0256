"""What happens in a simulated run of a system under one trigger, and how do runs share cores?

A run settles, suffers its trigger, and is then watched for as long as its verdict is open: it
stops as soon as every client is well again, and at the latest when the objective has been missed
and the backlog's drift is known. Runs are independent and each is a function of its `Spec`, so they
are spread over processes and the answer does not depend on how many there are.
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from threading import Thread
from typing import Final, NamedTuple, NoReturn, Self, TypeVar

import msgspec

from tidegate.analysis.outcome import Watch, verdict_of
from tidegate.analysis.scale import scaled
from tidegate.errors import InvariantError, WorkerLost
from tidegate.findings import Outcome
from tidegate.settings.system import System
from tidegate.sim.invariants import check as check_invariants
from tidegate.sim.world import World
from tidegate.units import SECOND, Duration, Instant

__all__ = ["ClientRun", "Run", "Runner", "ServiceRun", "Spec", "execute", "execute_choices"]

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")

PATIENCE_MAX: Final = 60 * SECOND
"""A request without a timeout that has waited so long counts as not served."""

RECOVERED_FOR: Final = 30 * SECOND
"""So long a client must be served well without a break before it counts as recovered."""

_ACT_AFTER: Final = 60 * SECOND  # people act when they see that it does not come back by itself
_LAST_MINUTE: Final = 60 * SECOND
_LOOK_EVERY: Final = 5 * SECOND
_DRAIN_WATCH: Final = 600 * SECOND  # how long a falling backlog is followed beyond the objective

_TELL_EVERY: Final = 1.0  # seconds of real time between two words of progress

_ENDED: Final = (
    "was ended from outside, perhaps for want of memory; fewer at a time need less: --processes 1"
)


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """One run: which system, which trigger, which luck. `hold` is for triggers without an end.

    `choices` are sets of actions, each to be tried from the stuck state.
    """

    system: System
    trigger: str | None
    seed: int
    divisor: int = 1
    settle: Duration = 30 * SECOND
    hold: Duration = 300 * SECOND
    choices: tuple[tuple[str, ...], ...] = ()
    watch_drain: bool = True


class ClientRun(msgspec.Struct, frozen=True):
    """Requests of one client by the second of their arrival."""

    offered: list[int]
    good: list[int]
    eventual: list[int]


class ServiceRun(msgspec.Struct, frozen=True):
    """One service by the second of the event; `backlog` is sampled at each second."""

    arrived: list[int]
    served: list[int]
    late: list[int]
    refused: list[int]
    backlog: list[int]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a run showed. Instants are whole seconds; `end` is the trigger's, or of the actions."""

    spec_seed: int
    start: int
    end: int
    stopped: int
    known: int  # requests that came from this second on are too young to judge
    clients: dict[str, ClientRun]
    services: dict[str, ServiceRun]
    attempts: dict[str, list[int]]
    calls: dict[str, list[int]]
    repeated: dict[str, int]
    outcome: Outcome
    by_client: dict[str, Outcome]
    recovered_after: dict[str, float | None]
    finishes_after: float | None


def execute(spec: Spec) -> Run:
    """Run it. The same spec gives the same run, anywhere."""
    world, plan = _begin(spec)
    world.run(plan.end)
    if spec.trigger is None:  # left alone: nothing to come back from, so its last minute is judged
        last_minute = max(plan.start, plan.end - plan.lag - _LAST_MINUTE)
        watch = Watch(world, start=plan.start, end=last_minute, lag=plan.lag)
    else:
        watch = Watch(world, start=plan.start, end=plan.end, lag=plan.lag)
        _follow(world, watch, plan.last, drain=spec.watch_drain)
    return _report(world, watch, spec)


def execute_choices(spec: Spec) -> list[Run]:
    """One run for each of `spec.choices`: its actions taken together from the very same state.

    The state is reached once: a trigger without an end has held for `hold` by then, one with an end
    has been over for a minute. Each choice goes on in a copy of the process; where there is no
    fork, the way there is run again.
    """
    if not hasattr(os, "fork"):
        return [_continue(*_stuck(spec), spec, choice) for choice in spec.choices]
    world, plan = _stuck(spec)
    return [_in_a_copy(world, plan, spec, choice) for choice in spec.choices]


class _Plan(NamedTuple):
    """The instants of a run: the trigger's, and when nobody waits for a recovery any longer."""

    start: Instant
    end: Instant
    last: Instant
    lag: Duration


def _begin(spec: Spec, *, acting: Duration = 0) -> tuple[World, _Plan]:
    """The world with its trigger planned; `acting` is how long after it something is done."""
    system = scaled(spec.system, spec.divisor)
    trigger = system.triggers[spec.trigger] if spec.trigger else None
    start = spec.settle if trigger is None or trigger.at is None else trigger.at
    end = start + spec.hold
    if trigger is not None and trigger.for_ is not None:
        end = start + trigger.for_ + acting
    lag = _lag(system)
    last = end + system.objective.within + RECOVERED_FOR + lag
    horizon = _whole(last + _DRAIN_WATCH + lag) + SECOND
    world = World(system, seed=spec.seed, horizon=horizon)
    if trigger is not None and spec.trigger is not None:
        world.plan(spec.trigger, trigger, start)
    return world, _Plan(start, end, last, lag)


def _stuck(spec: Spec) -> tuple[World, _Plan]:
    world, plan = _begin(spec, acting=_ACT_AFTER)
    world.run(plan.end)
    return world, plan


def _continue(world: World, plan: _Plan, spec: Spec, choice: tuple[str, ...]) -> Run:
    for name in choice:
        world.act(name, world.system.actions[name])
    watch = Watch(world, start=plan.start, end=plan.end, lag=plan.lag)
    _follow(world, watch, plan.last, drain=spec.watch_drain)
    return _report(world, watch, spec)


def _in_a_copy(world: World, plan: _Plan, spec: Spec, choice: tuple[str, ...]) -> Run:
    """Go on in a forked process, which hands its run back through a pipe and ends.

    It also holds the far end of a lifeline, which breaks when this process lets go of it in any
    way, killed or interrupted: the copy then ends at once, since nobody would read its answer.
    """
    reader, writer = os.pipe()
    lifeline, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.close(held)
        Thread(target=_end_with, args=(lifeline,), daemon=True).start()
        _answer(writer, lambda: _continue(world, plan, spec, choice))
    os.close(writer)
    os.close(lifeline)
    try:
        with open(reader, "rb") as pipe:  # noqa: PTH123 - a descriptor, not a path
            answer = pipe.read()
    finally:
        os.close(held)
        os.waitpid(child, 0)
    if not answer:
        raise WorkerLost(f"the process that tried {' + '.join(choice)} (seed {spec.seed}) {_ENDED}")
    found = msgspec.msgpack.decode(answer, type=Run | str)
    if isinstance(found, str):
        raise InvariantError(f"seed {spec.seed}, after {' + '.join(choice)}: {found}")
    return found


def _end_with(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)


def _answer(writer: int, run: Callable[[], Run]) -> NoReturn:
    """Write the run, or in words what went wrong, and end without a trace of the copied process."""
    try:
        try:
            said: Run | str = run()
        except Exception as error:  # noqa: BLE001 - it is told where it can be raised again
            said = f"{type(error).__name__}: {error}"
        with open(writer, "wb") as pipe:
            pipe.write(msgspec.msgpack.encode(said))
    finally:
        os._exit(0)


def _follow(world: World, watch: Watch, last: Instant, *, drain: bool) -> None:
    """Go on until all clients are well again, or until nothing more can be learned."""
    now = world.now
    first_look = now + RECOVERED_FOR + watch.lag
    while now < last:
        now = min(last, max(now + _LOOK_EVERY, first_look))
        world.run(now)
        if watch.all_recovered() or watch.hopeless():
            return
    limit = last + _DRAIN_WATCH
    while drain and now < limit and watch.draining():
        now = min(limit, now + 6 * _LOOK_EVERY)
        world.run(now)
        if watch.all_recovered():
            return


def _report(world: World, watch: Watch, spec: Spec) -> Run:
    check_invariants(world)
    seconds = world.now // SECOND
    verdict = verdict_of(watch)
    return Run(
        spec_seed=spec.seed,
        start=watch.start,
        end=watch.end,
        stopped=seconds,
        known=watch.seconds_known(),
        clients={
            name: ClientRun(
                client.tally.offered[:seconds],
                client.tally.good[:seconds],
                client.tally.eventual[:seconds],
            )
            for name, client in world.clients.items()
        },
        services={
            name: ServiceRun(
                service.tally.arrived[:seconds],
                service.tally.served[:seconds],
                service.tally.late[:seconds],
                service.tally.refused[:seconds],
                service.tally.backlog[:seconds],
            )
            for name, service in world.services.items()
        },
        attempts={name: tally.attempts[:seconds] for name, tally in world.calls.items()},
        calls={name: tally.calls[:seconds] for name, tally in world.calls.items()},
        repeated={name: tally.repeated for name, tally in world.calls.items()},
        outcome=verdict.outcome,
        by_client=verdict.by_client,
        recovered_after=verdict.recovered_after,
        finishes_after=verdict.finishes_after,
    )


def _lag(system: System) -> Duration:
    """After so long a request's fate is known: the longest that any client waits."""
    waits = [SECOND]
    for client in system.clients.values():
        total = 0
        for call in client.calls.values():
            limit = call.deadline if call.deadline is not None else call.timeout
            total += PATIENCE_MAX if limit is None else limit
        waits.append(min(total, PATIENCE_MAX))
    return _whole(max(waits))


def _whole(duration: Duration) -> Duration:
    """Up to the next whole second, since everything is counted by the second."""
    return -(-duration // SECOND) * SECOND


class Runner:
    """Runs specs on all cores, in order, and stops at once when interrupted.

    `progress` is told in words what is being run. With one worker nothing is started.
    """

    def __init__(
        self,
        workers: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.workers: Final = workers if workers is not None else os.cpu_count() or 1
        self._progress: Final = progress
        self._pool: ProcessPoolExecutor | None = None
        self.cpu_seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def map(self, specs: Sequence[Spec], what: str) -> list[Run]:
        """Execute all and return them in the order of `specs`."""
        return self.each(execute, specs, what)

    def choices(self, specs: Sequence[Spec], what: str) -> list[list[Run]]:
        """As `map`, with one run for each of a spec's choices."""
        return self.each(execute_choices, specs, what)

    def each(
        self, call: Callable[[_Asked], _Answer], specs: Sequence[_Asked], what: str
    ) -> list[_Answer]:
        """`call` of each, in order; it and its arguments travel to other processes."""
        self._tell(what, 0, len(specs))
        # One alone is not worth a start; but once there are threads, nothing here may fork.
        if self.workers == 1 or (len(specs) == 1 and self._pool is None):
            answers = []
            for spec in specs:
                answers.append(self._counted(_timed(call, spec)))
                self._tell(what, len(answers), len(specs))
            return answers
        try:
            pool = self._started()
            with _interrupts_held():
                futures = [pool.submit(_timed, call, spec) for spec in specs]
            pending = set(futures)
            while pending:
                ended, pending = wait(pending, _TELL_EVERY, FIRST_COMPLETED)
                for future in ended:
                    future.result()  # the first that fails is the last that is waited for
                self._tell(what, len(specs) - len(pending), len(specs))
            return [self._counted(future.result()) for future in futures]
        except BrokenProcessPool:
            raise WorkerLost(f"a process at work on {what} {_ENDED}") from None

    def close(self) -> None:
        """End the workers, whatever they are at."""
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _started(self) -> ProcessPoolExecutor:
        """The pool, without a process yet; Python's own tracker starts here, and lifts the mask."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"))
        return self._pool

    def _counted(self, timed: tuple[_Answer, float]) -> _Answer:
        answer, cpu_seconds = timed
        self.cpu_seconds += cpu_seconds
        return answer

    def _tell(self, what: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(f"{what}: {done} of {total}")


def _timed(call: Callable[[_Asked], _Answer], asked: _Asked) -> tuple[_Answer, float]:
    """The answer, and the processor time of this process and of those that it forked for it."""
    before = os.times()
    answer = call(asked)
    after = os.times()
    return answer, sum(after[:4]) - sum(before[:4])


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits until the end of the block.

    It waits for good in the processes started within, which inherit the mask: the key reaches all
    processes of a terminal, and is for the one alone that ends the others.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
