"""One script of requests through a simulated service and through the real middleware: same answers.

Both ask the same `Admission`; what is compared is what each shell makes of it: who is served, who
is refused, and when. Instants are microseconds apart, so that nothing hangs on who is first in one.
"""

import asyncio
from typing import Any

import pytest
from asgi_client import Exchange, answer
from hypothesis import given, settings
from hypothesis import strategies as st
from stories import Story
from virtual_seconds import SecondsClock, SecondsLoop, run

from tidegate.core.outcome import Outcome
from tidegate.runtime import clock
from tidegate.server.asgi import LoadShedder
from tidegate.settings.admission import Admission
from tidegate.settings.policies import Adaptive, CoDel, Limit
from tidegate.settings.system import Call, Service, Time
from tidegate.sim.parts.work import Attempt, Request
from tidegate.units import MICROSECOND, MILLISECOND, SECOND

WORK = 10 * MILLISECOND
Script = list[tuple[int, int, int | None]]
"""When each comes, how many retries deep, and after how many milliseconds its caller leaves."""

Told = dict[int, tuple[bool, int]]
"""Of each request by its number whether it was served, and the microsecond of its answer."""

requests = st.lists(
    st.tuples(
        st.integers(0, 8_000),
        st.integers(0, 2),
        st.one_of(st.none(), st.integers(20, 200)),
    ),
    min_size=1,
    max_size=40,
)
doors = st.builds(
    Admission,
    limit=st.one_of(
        st.integers(1, 5).map(lambda most: Limit(max=most)),
        st.just(Limit(adaptive=Adaptive(start=3, latency=2 * WORK))),
    ),
    queue=st.integers(0, 10),
    wait=st.integers(5, 60).map(lambda n: n * MILLISECOND + 300),
    order=st.sampled_from(["fifo", "lifo", "adaptive_lifo"]),
    codel=st.just(CoDel(target=3 * MILLISECOND, interval=15 * MILLISECOND)),
)


class Caller:
    """Notes what a simulated service answers."""

    propagate = True
    name = "ask"

    def __init__(self, number: int, told: Told) -> None:
        self.number, self.told = number, told

    def succeed(self, now: int, attempt: Attempt) -> None:
        self.told[self.number] = (True, round(now / MICROSECOND))

    def reply(self, now: int, attempt: Attempt, outcome: Outcome, latency: int = 0) -> None:
        self.told[self.number] = (False, round(now / MICROSECOND))


def script_of(drawn: Script) -> Script:
    """One after another, at least 7 us apart and never at a multiple of the work."""
    at, script = 0, []
    for gap, depth, patience in drawn:
        at += gap + 7
        script.append((at * MICROSECOND, depth, patience))
    return script


def simulated(door: Admission, script: Script) -> Told:
    told: Told = {}
    service = Service(time=Time(constant=WORK), admission=door)
    story = Story({"shop": service}, {"ask": Call(to="shop", timeout=SECOND)})
    shop, me = story.world.services["shop"], story.world.clients["me"]
    for number, (at, depth, patience) in enumerate(script):
        leaves_at = 1 << 62 if patience is None else at + patience * MILLISECOND
        request = Request(me, at, depth)
        attempt: Any = Attempt(Caller(number, told), request, at, leaves_at, depth, None)
        story.world.loop.at(at, shop.arrive, attempt)
    story.world.run(100 * SECOND)
    return told


def live(door: Admission, script: Script) -> Told:
    told: Told = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(WORK / SECOND)
        await answer(send)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SecondsLoop)
        shedder = LoadShedder(app, admission=door, trusted="*", cancel_on_disconnect=False)

        async def one(number: int, at: int, depth: int, patience: int | None) -> None:
            await asyncio.sleep(at / SECOND)
            headers = {"Tidegate-Retry-Depth": str(depth)}
            if patience is not None:
                headers["Tidegate-Remaining-Ms"] = str(patience)
            exchange = Exchange(headers=headers)
            await exchange.start(shedder)
            told[number] = (exchange.status == 200, round(loop.now / MICROSECOND))

        await asyncio.gather(*(one(number, *said) for number, said in enumerate(script)))

    before = clock.use(SecondsClock())
    try:
        run(main())
    finally:
        clock.use(before)
    return told


@pytest.mark.slow  # two hundred scripts, each through two shells
@settings(max_examples=200)
@given(doors, requests)
def test_the_same_requests_are_served_and_refused_at_the_same_instants(
    door: Admission, drawn: Script
) -> None:
    script = script_of(drawn)
    there, here = simulated(door, script), live(door, script)
    assert there.keys() == here.keys() == set(range(len(script)))
    assert [there[n][0] for n in sorted(there)] == [here[n][0] for n in sorted(here)]
    # The loop of asyncio counts in floats of seconds.
    assert all(abs(there[n][1] - here[n][1]) <= 3 for n in there)


def test_scripts_refuse_serve_and_let_wait() -> None:
    door = Admission(limit=Limit(max=1), queue=1, wait=15 * MILLISECOND)
    told = simulated(door, [(at * MICROSECOND, 0, None) for at in (7, 14, 21, 30_000)])
    assert told == live(door, [(at * MICROSECOND, 0, None) for at in (7, 14, 21, 30_000)])
    assert [served for served, _ in told.values()].count(True) == 3
