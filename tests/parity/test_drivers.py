"""One script, three shells: a blocking loop, asyncio and the simulator take the same steps.

The shells here are as small as shells can be, with clocks that a test moves. The script says of
each attempt how long its answer takes and what it is; everything else is decided by the machine,
so what was sent when, and how each call ended, must be the same to the nanosecond.
"""

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_asyncio import run

from tidegate.core.execution import ATTEMPT, WAIT, Execution, Step
from tidegate.core.outcome import FAILURE, OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.core.pipeline import Pipeline
from tidegate.settings.policies import (
    Backoff,
    Breaker,
    Budget,
    Gradient,
    Limit,
    RateLimit,
    Throttle,
    Vegas,
)
from tidegate.settings.system import Call, Client, Service, System
from tidegate.sim.parts.work import Request
from tidegate.sim.world import World
from tidegate.units import HOUR, MILLISECOND, SECOND

pytestmark = pytest.mark.slow  # a hundred scripts through three shells

MS = MILLISECOND
LAWS = st.sampled_from(
    [
        Limit(gradient=Gradient(start=3, samples=2, queue=1)),
        Limit(vegas=Vegas(start=3, samples=2)),
    ]
)
CALLS = st.builds(
    Call,
    attempts=st.integers(1, 4),
    timeout=st.none() | st.just(50 * MS),
    deadline=st.none() | st.sampled_from([40 * MS, 120 * MS]),
    backoff=st.none()
    | st.builds(
        Backoff,
        base=st.sampled_from([0, 20 * MS]),
        jitter=st.sampled_from(["full", "decorrelated"]),
    ),
    retry_on=st.sampled_from([("timeout",), ("timeout", "failure"), ("overloaded", "failure")]),
    budget=st.none() | st.builds(Budget, ratio=st.sampled_from([0.0, 0.1, 0.5])),
    throttle=st.none() | st.builds(Throttle, volume=st.integers(1, 5), most=st.just(0.6)),
    breaker=st.none() | st.builds(Breaker, volume=st.integers(1, 5), open_for=st.just(300 * MS)),
    limit=st.none() | st.builds(Limit, max=st.integers(1, 4)) | LAWS,
    rate_limit=st.none() | st.builds(RateLimit, rate=st.sampled_from([5.0, 50.0])),
)
# An odd number of nanoseconds, so that no answer comes at the very instant of a timeout.
ANSWERS = st.lists(
    st.tuples(
        st.integers(0, 100 * MS).map(lambda took: took * 2 + 1),
        st.sampled_from([SUCCESS, FAILURE, OVERLOADED]),
    ),
    min_size=4,
    max_size=4,
)
SCRIPTS = st.lists(st.tuples(st.integers(0, 400 * MS), ANSWERS), max_size=15)

Answers = list[tuple[int, Outcome]]
Script = list[tuple[int, Answers]]
Seen = list[tuple[int, str]]


def next_end(call: Execution, answers: Iterator[tuple[int, Outcome]]) -> tuple[int, Outcome]:
    """When the attempt that is out ends, for its caller, and how."""
    took, outcome = next(answers)
    if call.timeout is not None and took > call.timeout:
        return call.timeout, TIMEOUT
    return took, outcome


def ending(step: Step, call: Execution) -> str:
    return "good" if call.outcome is SUCCESS and step is Step.COMPLETE else "bad"


class Shell:
    def __init__(self, settings: Call) -> None:
        self.pipeline = Pipeline(settings, Random(7))
        self.seen: Seen = []

    def remembered(self) -> list[Any]:
        parts = ("budget", "throttle", "breaker", "limiter", "rate")
        policies = [getattr(self.pipeline, part) for part in parts]
        return [policy and policy.snapshot(HOUR) for policy in policies]


class Blocking(Shell):
    def play(self, script: Script) -> None:
        now = 0
        for pause, answers in script:
            now = self.call(now + pause, iter(answers))

    def call(self, now: int, answers: Iterator[tuple[int, Outcome]]) -> int:
        call = Execution(self.pipeline)
        step = call.start(now)
        while True:
            if step is ATTEMPT:
                self.seen.append((now, "sent"))
                took, outcome = next_end(call, answers)
                now += took
                step = call.settle(now, outcome)
            elif step is WAIT:
                now = call.until
                step = call.wake(now)
            else:
                self.seen.append((now, ending(step, call)))
                return now


class Asynchronous(Shell):
    def play(self, script: Script) -> None:
        run(self.calls(script))

    async def calls(self, script: Script) -> None:
        for pause, answers in script:
            await asyncio.sleep(pause)
            await self.call(iter(answers))

    async def call(self, answers: Iterator[tuple[int, Outcome]]) -> None:
        clock: Any = asyncio.get_running_loop().time
        call = Execution(self.pipeline)
        step = call.start(clock())
        while True:
            if step is ATTEMPT:
                self.seen.append((clock(), "sent"))
                took, outcome = next_end(call, answers)
                await asyncio.sleep(took)
                step = call.settle(clock(), outcome)
            elif step is WAIT:
                await asyncio.sleep(call.until - clock())
                step = call.wake(clock())
            else:
                self.seen.append((clock(), ending(step, call)))
                return


class Simulated(Shell):
    """A call site of the simulator, between an owner and a callee who follow the script."""

    cancels = False

    def __init__(self, settings: Call) -> None:
        super().__init__(settings)
        system = System(
            clients={"idle": Client(rate=1e-6, calls={"call": settings})},
            services={"call": Service()},
        )
        world = World(system, seed=7, horizon=HOUR)
        self.loop = world.loop
        self.tally = world.services["call"].tally  # late answers are counted there
        self.site = world.sites["call"][0]
        self.site.target, self.site.pipeline = self, self.pipeline

    def play(self, script: Script) -> None:
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


@given(CALLS, SCRIPTS)
def test_three_shells_take_the_same_steps_at_the_same_instants(
    settings: Call, script: Script
) -> None:
    shells = [shell(settings) for shell in (Blocking, Asynchronous, Simulated)]
    for shell in shells:
        shell.play(script)
    blocking, *others = shells
    for other in others:
        assert other.seen == blocking.seen, type(other).__name__
        assert other.remembered() == blocking.remembered(), type(other).__name__
    assert sum(what != "sent" for _, what in blocking.seen) == len(script)


def test_a_script_in_instants() -> None:
    """At 0 sent, at 50 ms given up, at 70 sent again, at 71 answered."""
    settings = Call(timeout=50 * MS, attempts=2, backoff=Backoff(base=20 * MS, jitter="none"))
    script: Script = [(0, [(SECOND, SUCCESS), (MS, SUCCESS)])]
    for shell in (Blocking(settings), Asynchronous(settings), Simulated(settings)):
        shell.play(script)
        assert shell.seen == [(0, "sent"), (70 * MS, "sent"), (71 * MS, "good")]
