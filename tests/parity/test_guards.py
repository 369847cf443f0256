"""One system file, one script: the simulator and the real guard, plain and async, act alike.

The file is read by the simulator and by `tidegate.load`. The script says of each attempt how long
its answer takes and what it is; what was sent when, how each call ended and what the policies
remember must be the same to the nanosecond. `test_drivers` shows it of the bare machine; here it
is the code that users call.
"""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

import tidegate
from tidegate.core.outcome import FAILURE, OVERLOADED, SUCCESS, Outcome
from tidegate.core.pipeline import Pipeline
from tidegate.runtime.context import ambient
from tidegate.runtime.guard import Guard
from tidegate.runtime.registry import _forget
from tidegate.settings.dump import dump
from tidegate.settings.load import load
from tidegate.settings.policies import Backoff, Breaker, Budget, Limit, RateLimit
from tidegate.settings.system import Call, Client, Service, System
from tidegate.sim.parts.work import Request
from tidegate.sim.world import World
from tidegate.testing import ManualClock, instant, run
from tidegate.units import HOUR, MILLISECOND, SECOND

pytestmark = pytest.mark.slow  # a hundred scripts, each through a file and three shells

MS = MILLISECOND
NAME = "licences"
SEEDS = range(100)

Answers = list[tuple[int, Outcome]]
Script = list[tuple[int, Answers]]
Answer = tuple[int, Outcome]


class OverloadedError(Exception):
    status = 503


def done(outcome: Outcome) -> str:
    if outcome is SUCCESS:
        return "answer"
    raise OverloadedError if outcome is OVERLOADED else ConnectionError


class Shell:
    """What was seen of a script, from the file's settings and the same luck."""

    def __init__(self, file: Path) -> None:
        self.clock = ManualClock()
        self.seen: list[tuple[int, str]] = []
        self.file = file
        self.pipeline: Pipeline

    def remembered(self) -> list[Any]:
        parts = ("budget", "breaker", "limiter", "rate")
        policies = [getattr(self.pipeline, part) for part in parts]
        return [policy and policy.snapshot(HOUR) for policy in policies]

    def guard(self) -> Guard:
        _forget()
        assert tidegate.load(self.file) == (NAME,)
        guard = tidegate.guard(NAME)
        self.pipeline = guard.dependency.pipeline = Pipeline(guard.settings, Random(7))
        guard.renew()
        return guard

    def note(self, what: str) -> None:
        self.seen.append((self.clock.now(), what))


class Blocking(Shell):
    def play(self, script: Script) -> None:
        with instant(self.clock):
            guard = self.guard()
            call = guard(self.dependency)
            for pause, answers in script:
                self.clock.sleep(pause)
                try:
                    call(iter(answers))
                except Exception:  # noqa: BLE001 - whatever it is, the script goes on
                    self.note("bad")
                else:
                    self.note("good")

    def dependency(self, answers: Iterator[Answer]) -> str:
        """Like an adapter, it sets its socket's timeout by what remains."""
        self.note("sent")
        took, outcome = next(answers)
        timeout = self.pipeline.timeout
        until = ambient().deadline
        left = [HOUR if timeout is None else timeout]
        left += [] if until is None else [until - self.clock.now()]
        if took > min(left):
            self.clock.sleep(min(left))
            raise TimeoutError
        self.clock.sleep(took)
        return done(outcome)


class Asynchronous(Shell):
    def play(self, script: Script) -> None:
        run(self.calls(script), self.clock)

    async def calls(self, script: Script) -> None:
        call = self.guard()(self.dependency)
        for pause, answers in script:
            await self.clock.wait(pause)
            try:
                await call(iter(answers))
            except Exception:  # noqa: BLE001 - whatever it is, the script goes on
                self.note("bad")
            else:
                self.note("good")

    async def dependency(self, answers: Iterator[Answer]) -> str:
        self.note("sent")
        took, outcome = next(answers)
        await self.clock.wait(took)
        return done(outcome)


class Simulated(Shell):
    """A call site of the simulator, between an owner and a callee who follow the script."""

    cancels = False

    def play(self, script: Script) -> None:
        world = World(load(self.file).system(), seed=7, horizon=HOUR)
        self.loop = world.loop
        self.tally = world.services[NAME].tally  # late answers are counted there
        self.site = world.sites[NAME][0]
        self.site.target = self
        self.pipeline = self.site.pipeline = Pipeline(self.site.pipeline.settings, Random(7))
        self.script = iter(script)
        self.next_call(0)
        self.loop.run(HOUR)

    def next_call(self, now: int) -> None:
        pause, answers = next(self.script, (0, None))
        if answers is not None:
            self.answers = iter(answers)
            self.loop.at(now + pause, self.site.begin, Request(self, now + pause))

    def arrive(self, now: int, attempt: Any) -> None:
        self.seen.append((now, "sent"))
        took, outcome = next(self.answers)
        self.loop.at(now + took, self.respond, (attempt, outcome))

    def respond(self, now: int, what: Any) -> None:
        attempt, outcome = what
        if outcome is SUCCESS and attempt.frame is not None:
            self.site.succeed(now, attempt)
        else:
            self.site.reply(now, attempt, outcome)

    def call_done(self, now: int, frame: Any, optional: bool, ok: bool) -> None:
        self.seen.append((now, "good" if ok else "bad"))
        self.next_call(now)


class AsynchronousTogether(Asynchronous):
    """Calls begin at their instants, whether those before are over or not."""

    async def calls(self, script: Script) -> None:
        guard = self.guard()
        at = 0
        async with asyncio.TaskGroup() as tasks:
            for number, (pause, answers) in enumerate(script):
                at += pause
                tasks.create_task(self.one(guard, number, at, iter(answers)))

    async def one(self, guard: Guard, number: int, at: int, answers: Iterator[Answer]) -> None:
        await self.clock.wait(at)

        async def dependency() -> str:
            self.note(f"{number} sent")
            took, outcome = next(answers)
            await self.clock.wait(took)
            return done(outcome)

        try:
            await guard.acall(dependency)
        except Exception:  # noqa: BLE001 - whatever it is, the others go on
            self.note(f"{number} bad")
        else:
            self.note(f"{number} good")


class SimulatedTogether(Simulated):
    def next_call(self, now: int) -> None:
        at = now
        self.calls: dict[int, tuple[int, Iterator[Answer], Request]] = {}
        for number, (pause, answers) in enumerate(self.script):
            at += pause
            request = Request(self, at)
            self.calls[id(request)] = number, iter(answers), request
            self.loop.at(at, self.site.begin, request)

    def arrive(self, now: int, attempt: Any) -> None:
        number, answers, _ = self.calls[id(attempt.frame)]
        self.seen.append((now, f"{number} sent"))
        took, outcome = next(answers)
        self.loop.at(now + took, self.respond, (attempt, outcome))

    def call_done(self, now: int, frame: Any, optional: bool, ok: bool) -> None:
        number = self.calls[id(frame)][0]
        self.seen.append((now, f"{number} {'good' if ok else 'bad'}"))


SHELLS: tuple[Callable[[Path], Any], ...] = (Simulated, Blocking, Asynchronous)


TOGETHER: tuple[Callable[[Path], Any], ...] = (SimulatedTogether, AsynchronousTogether)


def played(
    settings: Call, script: Script, by: tuple[Callable[[Path], Any], ...] = SHELLS
) -> list[Any]:
    system = System(
        clients={"idle": Client(rate=1e-6, calls={NAME: settings})}, services={NAME: Service()}
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "system.yaml")
        file.write_text(dump(system))
        shells = [shell(file) for shell in by]
        for shell in shells:
            shell.play(script)
    _forget()
    return shells


def drawn(luck: Random, *, pause: int = 200 * MS, calls: int = 15) -> tuple[Call, Script]:
    """A call with some policies and a script that leads it into most of them."""

    def maybe(policy: Any) -> Any:
        return policy if luck.random() < 0.5 else None

    settings = Call(
        attempts=luck.randint(1, 4),
        timeout=maybe(50 * MS),
        deadline=maybe(luck.choice([60 * MS, 120 * MS])),
        backoff=maybe(Backoff(base=20 * MS)),
        retry_on=luck.choice([("timeout",), ("timeout", "failure"), ("overloaded", "failure")]),
        budget=maybe(Budget(ratio=luck.choice([0.1, 0.5]))),
        breaker=maybe(Breaker(volume=luck.randint(2, 5), open_for=300 * MS)),
        limit=maybe(Limit(max=luck.randint(1, 4))),
        rate_limit=maybe(RateLimit(rate=luck.choice([5.0, 50.0]))),
    )
    script = []
    for _ in range(calls):
        # An odd number of nanoseconds, so that no answer comes at the instant of a timeout.
        answers = [
            (luck.randint(0, 40 * MS) * 2 + 1, luck.choice([SUCCESS, FAILURE, OVERLOADED]))
            for _ in range(4)
        ]
        script.append((luck.randint(0, pause), answers))
    return settings, script


def test_the_simulator_and_the_guard_act_alike_at_the_same_instants() -> None:
    retries = refused = 0
    for seed in SEEDS:
        settings, script = drawn(Random(seed))
        simulated, *real = played(settings, script)
        for shell in real:
            where = f"seed {seed}, {type(shell).__name__}"
            assert shell.pipeline.settings == simulated.pipeline.settings, where
            assert shell.seen == simulated.seen, where
            assert shell.remembered() == simulated.remembered(), where
        steps = [what for _, what in simulated.seen]
        assert len(steps) - steps.count("sent") == len(script)
        retries += sum(pair == ("sent", "sent") for pair in pairwise(steps))
        refused += sum("sent" not in pair for pair in pairwise(steps))
    assert retries > 100  # else the scripts would not lead where it is difficult
    assert refused > 100


def test_the_same_of_calls_that_are_out_together() -> None:
    most = refused = 0
    for seed in SEEDS:
        settings, script = drawn(Random(seed), pause=20 * MS, calls=40)
        simulated, real = played(settings, script, TOGETHER)
        assert real.seen == simulated.seen, f"seed {seed}"
        assert real.remembered() == simulated.remembered(), f"seed {seed}"
        out = sent = 0
        begun = set()
        for _, what in simulated.seen:
            number, step = what.split()
            sent += step == "sent"
            out += (step == "sent" and number not in begun) - (step != "sent" and number in begun)
            begun |= {number} if step == "sent" else set()
            most = max(most, out)
        assert len(simulated.seen) - sent == len(script)
        refused += len(script) - len(begun)
    assert most >= 8  # else they would not have been together
    assert refused > 100


def test_a_script_in_instants() -> None:
    """At 0 sent, at 50 ms given up, at 70 sent again, at 71 answered."""
    settings = Call(timeout=50 * MS, attempts=2, backoff=Backoff(base=20 * MS, jitter="none"))
    for shell in played(settings, [(0, [(SECOND, SUCCESS), (MS, SUCCESS)])]):
        assert shell.seen == [(0, "sent"), (70 * MS, "sent"), (71 * MS, "good")]
