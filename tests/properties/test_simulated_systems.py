"""Whatever is described, and whatever happens to it, nothing is lost and nothing counted twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_systems import systems

from tidegate.settings.system import Action, System
from tidegate.sim.invariants import check
from tidegate.sim.world import World
from tidegate.units import SECOND

pytestmark = pytest.mark.slow  # a hundred systems of some thousand attempts each

DRAINED = 3600 * SECOND  # by then everything must have come to an end


def live(system: System, seed: int) -> World:
    """Let all triggers and actions happen, and check now and then."""
    world = World(system, seed=seed, horizon=DRAINED)
    for name, trigger in system.triggers.items():
        assert trigger.at is not None
        world.plan(name, trigger, trigger.at)
    for second in range(1, 6):
        world.run(second * SECOND)
        check(world)
        if second in {2, 4}:
            for name, action in list(system.actions.items())[second // 2 - 1 : second // 2]:
                world.act(name, action)
    return world


def drain(world: World) -> None:
    """Nobody sends any more, what is stuck is freed; a little later all must be over."""
    for name in world.clients:
        world.act("stop", Action(client=name, load=0.0))
        for trigger in ("t0", "t1", "t2"):
            if trigger in world.system.triggers:
                world.end(trigger, world.system.triggers[trigger])
    for name in world.services:
        world.act("free", Action(service=name, reset=True))
    while not drained(world) and world.now < DRAINED:
        world.run(min(DRAINED, world.now + 10 * SECOND))
        for name in world.services:
            # Thrashing can make a line of thousands take weeks.
            world.act("free", Action(service=name, reset=True, flush=world.now > 600 * SECOND))
    check(world)


def drained(world: World) -> bool:
    """Nothing is to come but the world's own next second."""
    return len(world.loop.heap) == 1


@given(systems, st.integers(0, 1000))
def test_everything_ends(system: System, seed: int) -> None:
    world = live(system, seed)
    drain(world)
    for name, service in world.services.items():
        assert service.in_system == 0, name
        for replica in service.replicas:
            assert (replica.busy, replica.calling, replica.refusing) == (0, 0, 0), name
            assert not replica.line.items, name
            assert not replica.line.refusals, name
    for name, tally in world.calls.items():
        assert tally.sent.count == tally.ended, name
    for name, client in world.clients.items():
        ended = sum(client.tally.eventual) + sum(client.tally.failed)
        assert client.tally.requests.count == ended, name
