"""One fixed limit for the processes of a host."""

from pathlib import Path

import pytest
from host_rig import Process, host

from tidegate.core.outcome import SUCCESS, Permit
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.host_limiter import HostLimiter
from tidegate.runtime.shared.owner import this_process
from tidegate.runtime.shared.table import ROWS_MAX, Table
from tidegate.settings import policies
from tidegate.settings.system import Call
from tidegate.units import SECOND

CALL = Call(limit=policies.Limit(max=10))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state"


def taken(process: Process, tries: int, now: int = 0) -> list[Permit]:
    answers = [process.pipeline.admit(now, 0) for _ in range(tries)]
    return [answer for answer in answers if isinstance(answer, Permit)]


def test_all_processes_together_have_no_more_than_the_limit_in_flight(directory: Path) -> None:
    processes = host(directory, CALL, 4)
    permits = [(p, permit) for p in processes for permit in taken(p, 4)]
    assert len(permits) == 10
    assert [
        process.table.words[process.table.row(n) + t.INFLIGHT]
        for n, process in enumerate(processes)
    ] == [4, 4, 2, 0]
    process, permit = permits[0]
    process.pipeline.settle(0, permit, SUCCESS)
    assert len(taken(processes[3], 4)) == 1


def test_one_process_alone_may_have_all_of_it(directory: Path) -> None:
    processes = host(directory, CALL, 4)
    assert len(taken(processes[2], 20)) == 10


def test_the_places_of_a_dead_process_are_free_again(directory: Path) -> None:
    one, other = host(directory, CALL, 2)
    assert len(taken(one, 20)) == 10
    words, at = one.table.words, one.table.row(0)
    words[at + t.PID], words[at + t.NAMESPACE] = 2**22 + 1, 2
    for tick in range(1, 4):
        other.lane.look(tick * SECOND)
    assert len(taken(other, 20)) == 10


def test_it_shows_what_is_out_here_and_the_limit_of_the_host(directory: Path) -> None:
    one, other = host(directory, CALL, 2)
    taken(one, 7)
    taken(other, 5)
    limiter: object = other.pipeline.limiter
    assert isinstance(limiter, HostLimiter)
    assert (limiter.inflight, limiter.limit) == (3, 10)
    assert limiter.snapshot(0) == (3, 10, 2)
    other.lane.look(0)
    assert other.table.words[other.table.row(1) + t.LIMIT] == 10


def test_without_a_row_the_limit_is_its_own(directory: Path) -> None:
    table = Table.open(directory, "licences")
    for number in range(ROWS_MAX):
        table.claim(this_process()._replace(namespace=number + 100))
    assert len(taken(Process(directory, CALL, 0, 1), 20)) == 10


def test_of_a_limit_that_adapts_each_process_has_its_part(directory: Path) -> None:
    call = Call(limit=policies.Limit(adaptive=policies.Adaptive(start=10)))
    one, other = host(directory, call, 2)
    one.lane.look(0)
    assert [len(taken(process, 9)) for process in (one, other)] == [5, 5]
    one.lane.look(0)
    assert one.table.words[one.table.row(0) + t.INFLIGHT] == 5
