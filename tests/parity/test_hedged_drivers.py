"""One script of hedged calls, two shells: the guard on asyncio and the simulator send the same.

The script says of each attempt how long its answer takes and whether it is good. What was sent
when, and how and when each call ended, must be the same to the microsecond: a loop of asyncio
counts in floats.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate
from tidegate.runtime.registry import _forget
from tidegate.settings.policies import Backoff, Breaker, Budget, Hedge, Limit
from tidegate.settings.system import Call, Client, Service, System
from tidegate.sim.parts.work import Request
from tidegate.sim.world import World
from tidegate.testing import ManualClock, run
from tidegate.units import HOUR, MICROSECOND, MILLISECOND, SECOND

pytestmark = pytest.mark.slow  # a hundred scripts through two shells

MS = MILLISECOND
ATTEMPTS_MAX = 16  # of a call: four attempts with three beside each
CALLS = st.builds(
    Call,
    attempts=st.integers(1, 4),
    timeout=st.none() | st.just(170 * MS),
    deadline=st.none() | st.sampled_from([80 * MS, 420 * MS]),
    backoff=st.none() | st.just(Backoff(base=20 * MS, jitter="none")),
    retry_on=st.sampled_from([("timeout", "failure"), ("timeout",)]),
    budget=st.none() | st.builds(Budget, ratio=st.sampled_from([0.0, 0.5, 9.0])),
    # Nothing is left to luck, of which each shell has its own.
    breaker=st.none()
    | st.builds(
        Breaker,
        volume=st.integers(1, 5),
        open_for=st.just(300 * MS),
        probes=st.integers(1, 2),
        ramp=st.just(0),
    ),
    limit=st.none() | st.builds(Limit, max=st.integers(1, 4)),
    hedge=st.builds(Hedge, after=st.just(50 * MS), max=st.integers(1, 3)),
)
# A third of a millisecond beside the whole ones: no answer comes at the instant of a timer.
ANSWERS = st.lists(
    st.tuples(st.integers(0, 300).map(lambda took: took * MS + MS // 3), st.booleans()),
    min_size=ATTEMPTS_MAX,
    max_size=ATTEMPTS_MAX,
)
SCRIPTS = st.lists(st.tuples(st.integers(0, 400).map(lambda n: n * MS), ANSWERS), max_size=8)

Script = list[tuple[int, list[tuple[int, bool]]]]
Seen = list[tuple[int, str]]


def simulated(settings: Call, script: Script) -> tuple[Seen, int]:
    """A call site of the simulator between an owner and a callee who follow the script."""
    system = System(
        clients={"idle": Client(rate=1e-6, calls={"call": settings})},
        services={"call": Service()},
    )
    world = World(system, seed=7, horizon=HOUR)
    site, seen, rest = world.sites["call"][0], [], iter(script)

    class Owner:
        cancels = False
        tally = world.services["call"].tally  # late answers are counted there

        def begin(self, now: int) -> None:
            pause, answers = next(rest, (0, None))
            if answers is not None:
                self.answers = iter(answers)
                world.loop.at(now + pause, site.begin, Request(self, now + pause))

        def arrive(self, now: int, attempt: Any) -> None:
            seen.append((now, "sent"))
            took, good = next(self.answers)
            world.loop.at(now + took, self.respond, (attempt, good))

        def respond(self, now: int, what: Any) -> None:
            attempt, good = what
            outcome = tidegate.Outcome.SUCCESS if good else tidegate.Outcome.FAILURE
            site.answer(now, attempt, outcome)

        def call_done(self, now: int, frame: Any, optional: bool, ok: bool) -> None:
            seen.append((now, "good" if ok else "bad"))
            self.begin(now)

    owner: Any = Owner()
    site.target = owner
    owner.begin(0)
    world.loop.run(HOUR)
    assert site.pipeline.budget is not None
    return seen, site.pipeline.budget.snapshot(HOUR).retried


def guarded(settings: Call, script: Script) -> tuple[Seen, int]:
    """The guard that runs in production, on a loop whose time a test moves."""
    clock, seen = ManualClock(), []

    def now() -> int:
        return round(clock.seconds * SECOND / MICROSECOND) * MICROSECOND

    async def main() -> int:
        guard = tidegate.guard(
            "call",
            **{
                name: getattr(settings, name)
                for name in ("attempts", "backoff", "budget", "breaker", "limit", "hedge")
            },
            retry_on=settings.retry_on,
            timeout=None if settings.timeout is None else settings.timeout / SECOND,
            deadline=None if settings.deadline is None else settings.deadline / SECOND,
        )
        for pause, answers in script:
            await clock.wait(pause)
            rest = iter(answers)

            async def answer(rest: Any = rest) -> None:
                seen.append((now(), "sent"))
                took, good = next(rest)
                await clock.wait(took)
                if not good:
                    raise ConnectionError

            try:
                await guard.acall(answer)
            except Exception:  # noqa: BLE001 - however it ends
                seen.append((now(), "bad"))
            else:
                seen.append((now(), "good"))
        return guard.dependency.pipeline.budget.snapshot(HOUR).retried

    _forget()
    try:
        retried = run(main(), clock)
    finally:
        _forget()
    return seen, retried


def microseconds(seen: Seen) -> Seen:
    return [(round(at / MICROSECOND) * MICROSECOND, what) for at, what in seen]


@given(CALLS, SCRIPTS)
def test_both_send_the_same_at_the_same_instants(settings: Call, script: Script) -> None:
    seen, retried = simulated(settings, script)
    assert guarded(settings, script) == (microseconds(seen), retried)
    assert sum(what != "sent" for _, what in seen) == len(script)


def test_a_script_in_instants() -> None:
    settings = Call(timeout=170 * MS, hedge=Hedge(after=50 * MS))
    slow, quick = (300 * MS, True), (10 * MS, True)
    script: Script = [(0, [slow, quick]), (100 * MS, [quick])]
    expected = [
        (0, "sent"), (50 * MS, "sent"), (60 * MS, "good"), (160 * MS, "sent"), (170 * MS, "good"),
    ]  # fmt: skip
    assert simulated(settings, script) == (expected, 1)
    assert guarded(settings, script) == (expected, 1)
