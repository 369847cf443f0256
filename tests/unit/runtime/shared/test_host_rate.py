"""One rate for the processes of a host."""

from pathlib import Path

import msgspec
import pytest
from host_rig import Process, host

from tidegate.core.outcome import REJECTIONS, Reason
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.host_rate import HostRate
from tidegate.runtime.shared.owner import this_process
from tidegate.runtime.shared.table import ROWS_MAX, Table
from tidegate.settings import policies
from tidegate.settings.system import Call
from tidegate.units import HOUR, SECOND

CALL = Call(rate_limit=policies.RateLimit(rate=10, burst=4))
SLOW = Call(rate_limit=policies.RateLimit(rate=1 / 3600, burst=1))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state"


def rate(process: Process) -> HostRate:
    found: object = process.pipeline.rate
    assert isinstance(found, HostRate)
    return found


def taken(process: Process, now: int, tries: int = 20) -> int:
    return sum(rate(process).try_acquire(now) for _ in range(tries))


def test_all_processes_together_have_one_burst_and_one_rate(directory: Path) -> None:
    processes = host(directory, CALL, 4, now=SECOND)
    assert [taken(process, SECOND, 3) for process in processes] == [3, 1, 0, 0]
    assert [taken(process, 2 * SECOND) for process in processes] == [4, 0, 0, 0]
    now = 2 * SECOND
    for tick in range(1, 11):
        now = 2 * SECOND + tick * SECOND // 10
        assert sum(taken(process, now, 1) for process in processes) == 1
    assert processes[3].pipeline.admit(now, 0) is REJECTIONS[Reason.RATE]


def test_it_says_when_to_come_back(directory: Path) -> None:
    one, other = host(directory, CALL, 2, now=SECOND)
    assert taken(one, SECOND) == 4
    assert taken(other, SECOND) == 0
    assert rate(other).retry_after(SECOND) == SECOND // 10
    assert rate(other).snapshot(SECOND).tokens == 0


def test_a_worker_that_starts_anew_brings_no_burst(directory: Path) -> None:
    assert taken(Process(directory, CALL, SECOND, 1), SECOND) == 4
    for number in range(2, 10):
        assert taken(Process(directory, CALL, SECOND, number), SECOND) == 0


def test_another_rate_is_another_bucket(directory: Path) -> None:
    slow, fast = Process(directory, SLOW, SECOND, 1), Process(directory, CALL, SECOND, 2)
    slow.lane.look(SECOND)
    assert taken(slow, SECOND) == 1
    assert taken(fast, SECOND) == 4
    also_slow = Process(directory, SLOW, SECOND, 3)
    assert taken(also_slow, SECOND) == 0
    assert taken(fast, 2 * SECOND) == 4
    assert taken(also_slow, SECOND + HOUR) == 1


def test_a_rate_that_is_changed_is_not_waited_for(directory: Path) -> None:
    (process,) = host(directory, SLOW, 1, now=SECOND)
    assert taken(process, SECOND) == 1
    settings = msgspec.structs.replace(SLOW, rate_limit=CALL.rate_limit)
    process.pipeline = process.pipeline.adjusted(settings, process.rng)
    process.lane.bind(SECOND)
    assert taken(process, SECOND) == 4
    rate(process).reconfigure(SECOND, policies.RateLimit(rate=100, burst=50))
    assert taken(process, 2 * SECOND, 100) == 50


def test_who_takes_over_a_row_of_another_rate_begins_with_nothing_taken(directory: Path) -> None:
    slow = Process(directory, SLOW, SECOND, 1)
    assert taken(slow, SECOND) == 1
    slow.table.words[slow.table.row(0) + t.PID] = 0
    fast = Process(directory, CALL, SECOND, 2)
    assert fast.lane._row.index == 0
    assert taken(fast, SECOND) == 4


@pytest.mark.parametrize("word", [t.TAKEN, t.UNUSED])
def test_damage_does_not_shut_it(directory: Path, word: int) -> None:
    one, other = host(directory, CALL, 2, now=SECOND)
    other.table.words[other.table.row(1) + word] = 2**64 - 1
    assert taken(one, SECOND) == 4


def test_without_a_row_the_rate_is_its_own(directory: Path) -> None:
    table = Table.open(directory, "licences")
    for number in range(ROWS_MAX):
        table.claim(this_process()._replace(namespace=number + 100))
    alone = Process(directory, CALL, SECOND, 1)
    assert taken(alone, SECOND) == 4
    rate(alone).reconfigure(SECOND, policies.RateLimit(rate=100, burst=50))
    assert taken(alone, 2 * SECOND, 100) == 50
