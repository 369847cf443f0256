"""A fleet's run is the same in every process, whatever Python's hashes are."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # two processes

RUN = """
from tidegate.settings.spool import Gate, Lane, Turns
from tidegate.sim.fleet.guided import Guided
from tidegate.sim.fleet.run import run
from tidegate.sim.fleet.sink import Case

case = Case(live=1e6, backlog=120e6, capacity=2e6, collapsed=1e6, collectors=12, lost=(80.0, 90.0))
turns = Turns(through="nats://127.0.0.1:4222", leases=3)
lane = Lane(to="file:out", gate=Gate(hold=10 * 10**9), turns=turns)
print(run(case, Guided(case, lane, 7), seed=7, most_s=400, watched_s=60))
"""


def ran(hash_seed: int) -> str:
    env = os.environ | {"PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-c", RUN]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


def test_it_does_not_depend_on_the_process() -> None:
    first = ran(1)
    assert "drained_s=" in first
    assert first == ran(2)
