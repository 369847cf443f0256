"""A reset did not help: the stuck service had restarted itself again and come back stuck again.

Stuck means that it accepts requests and finishes none until an action resets it. It went on to
restart at each full backlog, so it was mostly down, and a reset while it was down was undone when
it came back.
"""

from tidegate.settings.load import loads
from tidegate.sim.world import World
from tidegate.units import SECOND

TEXT = """
tidegate: 1
clients:
  people: {rate: 100/s, calls: {ask: {to: database, timeout: 1s}}}
services:
  database:
    workers: 20
    time: {constant: 100ms}
    restart: {backlog: 50, down: 30s, stuck: true}
triggers:
  surge: {client: people, load: 5x, for: 2s}
actions:
  reset: {service: database, reset: true}
  empty: {service: database, flush: true}
"""


def good(world: World, start: int, end: int) -> float:
    tally = world.clients["people"].tally
    return sum(tally.good[start:end]) / sum(tally.offered[start:end])


def test_a_stuck_service_waits_for_its_reset_and_then_works() -> None:
    system = loads(TEXT).system()
    world = World(system, seed=1, horizon=80 * SECOND)
    world.plan("surge", system.triggers["surge"], 5 * SECOND)
    world.run(60 * SECOND)  # down until about 35 s, then stuck, with a backlog far above 50
    assert good(world, 0, 4) == 1
    assert good(world, 40, 60) == 0
    world.act("empty", system.actions["empty"])
    world.act("reset", system.actions["reset"])
    world.run(80 * SECOND)
    assert good(world, 65, 75) == 1
