"""A run is a function of its system, its seed and what is done to it: of nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_systems import FEATURES, Maker, systems

from tidegate.settings.system import Call, Client, Service, System, Time
from tidegate.sim.log import EventLog
from tidegate.sim.measure import Total
from tidegate.sim.world import World
from tidegate.units import MILLISECOND, SECOND

pytestmark = pytest.mark.slow  # whole systems, several times each

END = 5 * SECOND
ACT_AT = 2 * SECOND


def live(system: System, seed: int, log: EventLog | None, pieces: list[int]) -> World:
    """All triggers and actions of a system; the run is cut at `pieces` as well."""
    world = World(system, seed=seed, horizon=END, log=log)
    for name, trigger in system.triggers.items():
        assert trigger.at is not None
        world.plan(name, trigger, trigger.at)
    for instant in sorted({ACT_AT, END, *pieces}):
        world.run(instant)
        if instant == ACT_AT:
            for name, action in system.actions.items():
                world.act(name, action)
    return world


def counted(world: World) -> list[Any]:
    """Everything that the tallies say."""
    tallies = (
        *(client.tally for client in world.clients.values()),
        *(service.tally for service in world.services.values()),
        *world.calls.values(),
    )
    return [
        [
            total.count if isinstance(total := getattr(tally, name), Total) else total
            for name in type(tally).__slots__
        ]
        for tally in tallies
    ]


@given(systems, st.integers(0, 99), st.lists(st.integers(1, END - 1), max_size=8))
def test_cut_anywhere_and_with_or_without_a_log_it_is_the_same_run(
    system: System, seed: int, pieces: list[int]
) -> None:
    whole, cut = EventLog(), EventLog()
    figures = counted(live(system, seed, whole, []))
    assert counted(live(system, seed, cut, pieces)) == figures
    assert cut.digest == whole.digest
    assert counted(live(system, seed, None, pieces)) == figures


@given(systems, st.integers(0, 99))
def test_an_idle_service_changes_nothing(system: System, seed: int) -> None:
    alone, joined = EventLog(), EventLog()
    live(system, seed, alone, [])
    more = {"idle": Service(workers=3), **system.services}
    live(msgspec.structs.replace(system, services=more), seed, joined, [])
    assert joined.digest == alone.digest


def calling_off() -> System:
    """A hub that makes five calls together and calls off what is out when one has failed."""
    slow = Service(workers=2, time=Time(mean=30 * MILLISECOND), abandoned="cancel")
    calls = {f"call-{to}": Call(to=to, timeout=90 * MILLISECOND) for to in "abcde"}
    hub = Service(workers=20, parallel=True, abandoned="cancel", calls=calls)
    ask = Call(to="hub", timeout=60 * MILLISECOND, attempts=2)
    return System(
        clients={"people": Client(rate=80.0, calls={"ask": ask})},
        services={"hub": hub, **dict.fromkeys("abcde", slow)},
    )


def digests(seeds: range) -> list[str]:
    """Of systems that might lean on an order which the process decides."""
    found = []
    for seed in seeds:
        for system in (calling_off(), Maker(seed, frozenset(FEATURES)).system()):
            log = EventLog()
            live(system, seed, log, [])
            found.append(log.digest)
    return found


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_another_process_with_another_hash_seed_runs_the_same(hash_seed: str) -> None:
    here = Path(__file__).parent
    path = [str(here), str(here.parent / "support"), *sys.path]
    script = f"import json, {Path(__file__).stem} as t; print(json.dumps(t.digests(range(10))))"
    said = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(said) == digests(range(10))
    assert len(set(json.loads(said))) == 20
