"""A pool that the closed forms call healthy falls by itself: how soon, and does a check see it?

Ten workers of 10 ms, 800/s, four attempts, no trigger. The mean time to the collapse is some 70 s
with a timeout of 50 ms and some 1,300 s with 65 ms, so the two runs of 330 s in which a check
leaves a system alone see the first and rather miss the second. `docs/how-check-works.md` says so.
"""

import pytest

from tidegate.analysis.theory import Station, folds
from tidegate.settings.load import loads
from tidegate.sim.world import World
from tidegate.units import SECOND

LOST = 3  # timeouts' worth of work waiting: no run came back from there


def falls(timeout_ms: int, *, seed: int, within: int) -> bool:
    system = loads(
        f"""
tidegate: 1
clients:
  users: {{rate: 800/s, calls: {{pool: {{timeout: {timeout_ms}ms, attempts: 4}}}}}}
services:
  pool: {{workers: 10, time: 10ms}}
""",
        "pool.yaml",
    ).system()
    world = World(system, seed=seed, horizon=within * SECOND)
    for second in range(1, within):
        world.run(second * SECOND)
        if world.services["pool"].tally.backlog[second - 1] > LOST * timeout_ms:  # 1 a ms
            return True
    return False


@pytest.mark.parametrize("timeout_ms", [50, 65])
def test_the_closed_forms_call_it_healthy(timeout_ms: int) -> None:
    station = Station(servers=10, service=0.01, timeout=timeout_ms / 1000, attempts=4)
    assert folds(station).ceiling > 850
    assert folds(station).recovery == pytest.approx(250)


@pytest.mark.golden
def test_with_50_ms_it_falls_while_it_is_watched() -> None:
    assert all(falls(50, seed=seed, within=330) for seed in range(1, 9))


@pytest.mark.golden
def test_with_65_ms_it_falls_in_4_of_16_longer_runs() -> None:
    assert sum(falls(65, seed=seed, within=400) for seed in range(1, 17)) == 4
