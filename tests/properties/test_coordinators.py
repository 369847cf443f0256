"""Any fleet over any network: a lease never has two holders, and a fence never comes twice.

Held to it are the ledger in memory and the leases on a server, here one whose network is late and
loses questions and answers.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import NamedTuple

import pytest
from flaky_store import FlakyStore, Records
from hypothesis import given
from hypothesis import settings as Examples  # noqa: N812 - ours are called settings as well
from hypothesis import strategies as st
from turn_witness import Watched, Witness
from virtual_seconds import told

from tidegate.core.leases import Leases
from tidegate.spooler.coordinators.alone import Alone
from tidegate.spooler.coordinators.coordinator import Coordinator, CoordinatorLost
from tidegate.spooler.coordinators.on_server import OnServer
from tidegate.units import SECOND

TTL = 2 * SECOND
SLOTS = 2


class Step(NamedTuple):
    """One thing that a collector does after so many milliseconds."""

    wait: int
    does: str
    slot: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from([10, 300, 700, 1500, 2500]),
        st.sampled_from(["take", "take", "renew", "renew", "release", "publish", "crash"]),
        st.integers(0, SLOTS - 1),
    ),
    min_size=8,
    max_size=40,
)
FLEETS = st.lists(STEPS, min_size=2, max_size=3)


def alone(_: Random) -> Callable[[str], Coordinator]:
    leases = Leases()
    return lambda who: Alone(who, leases)


def on_server(luck: Random) -> Callable[[str], Coordinator]:
    records = Records()
    return lambda who: OnServer(FlakyStore(records, luck, trouble=0.15), who)


WORLDS = pytest.mark.parametrize("world", [alone, on_server])


async def live(
    who: str, join: Callable[[str], Coordinator], steps: list[Step], seen: Witness
) -> None:
    collector = Watched(who, join(who), seen)
    for life, step in enumerate(steps):
        await asyncio.sleep(step.wait / 1000)
        with suppress(CoordinatorLost):
            if step.does == "take":
                await collector.take(step.slot, TTL)
            elif step.does == "crash":  # and back, with no memory of what it held
                name = f"{who}, life {life}"
                collector = Watched(name, join(name), seen)
            elif step.slot not in collector.held:
                await collector.coordinator.budget()
            elif step.does == "renew":
                await collector.renew(step.slot, TTL)
            elif step.does == "release":
                await collector.release(step.slot)
            elif step.slot == 0:
                await collector.publish(rate=1.0)


@WORLDS
@given(fleet=FLEETS, luck=st.integers(0, 2**32))
@Examples(max_examples=150)
def test_a_lease_has_one_holder_and_its_fence_grows(
    world: Callable[[Random], Callable[[str], Coordinator]], fleet: list[list[Step]], luck: int
) -> None:
    async def story() -> None:
        join, seen = world(Random(luck)), Witness()
        await asyncio.gather(*(live(f"c{n}", join, steps, seen) for n, steps in enumerate(fleet)))

    told(story)


@WORLDS
@pytest.mark.parametrize("luck", range(10))
def test_so_it_is_in_a_long_life_in_which_much_happens(
    world: Callable[[Random], Callable[[str], Coordinator]], luck: int
) -> None:
    """Drawn at random: among the small stories above few leases change hands."""
    drawn = Random(luck)
    does = ["take", "take", "renew", "renew", "release", "publish", "crash"]
    fleet = [
        [
            Step(drawn.choice([10, 300, 1500]), drawn.choice(does), drawn.randrange(SLOTS))
            for _ in range(600)
        ]
        for _ in range(3)
    ]

    async def story() -> None:
        join, seen = world(drawn), Witness()
        await asyncio.gather(*(live(f"c{n}", join, steps, seen) for n, steps in enumerate(fleet)))
        assert seen.taken > 20  # else it holds for want of events
        assert seen.renewed > 2
        assert seen.published > 2

    told(story)
