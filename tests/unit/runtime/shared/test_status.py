"""What a table says of a guard, to a person."""

from pathlib import Path

import pytest
from host_rig import NAME, Process, host

from tidegate.core.circuit_breaker import CLOSED, HALF_OPEN, HELD, OPEN, RAMPING, State
from tidegate.core.outcome import FAILURE, SUCCESS, Permit
from tidegate.errors import InputError
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.owner import Owner, this_process
from tidegate.runtime.shared.status import GuardStatus, status
from tidegate.runtime.shared.table import Hold, Table
from tidegate.settings import policies
from tidegate.settings.system import Call
from tidegate.units import SECOND

CALL = Call(
    attempts=2,
    budget=policies.Budget(),
    breaker=policies.Breaker(),
    limit=policies.Limit(max=7),
)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "state"


def looked(processes: list[Process], now: int) -> None:
    for process in (*processes, *processes):
        process.lane.look(now)


def test_a_guard_in_use(base: Path) -> None:
    processes = host(base, CALL, 3)
    for process in processes:
        process.request(0, SUCCESS, 20)
        process.request(0, FAILURE, 1)
    permit = processes[0].pipeline.admit(0, 0)
    assert isinstance(permit, Permit)
    looked(processes, 1)
    assert processes[1].retries(1, 9) == 6
    looked(processes, 1)
    assert status(base, NAME, SECOND) == GuardStatus(
        name=NAME,
        state=CLOSED,
        hold=None,
        processes=3,
        requests=64,
        retries=6,
        retries_refused=3,
        retry_tokens=0.4,
        calls=3 * 18,  # of 21 each, of which a tenth has left the window by now
        failed=0,
        inflight=1,
        limit=7,
        seen=SECOND - 1,
        alone=0,
    )


def test_it_follows_the_circuit_through_time_though_nobody_looks(base: Path) -> None:
    processes = host(base, CALL, 2)
    processes[0].request(0, FAILURE, 20)
    looked(processes, 0)

    def state(now: int) -> State:
        return status(base, NAME, now).state

    assert [state(0), state(5 * SECOND)] == [OPEN, HALF_OPEN]
    processes[1].request(5 * SECOND, SUCCESS, 3)
    assert [state(5 * SECOND), state(15 * SECOND)] == [RAMPING, CLOSED]


def test_a_hold_and_its_end(base: Path) -> None:
    processes = host(base, CALL, 1)
    processes[0].table.write_hold(Hold("moved", "ada", 60 * SECOND, 1.0, 61.0))
    looked(processes, 0)
    seen = status(base, NAME, 0)
    assert (seen.state, seen.hold and seen.hold.reason) == (HELD, "moved")
    seen = status(base, NAME, 60 * SECOND)
    assert (seen.state, seen.hold) == (HALF_OPEN, None)  # as it will be at the next call


def test_the_sums_of_the_dead_stay_and_they_are_not_counted_as_processes(base: Path) -> None:
    (process,) = host(base, CALL, 1)
    process.request(0, SUCCESS, 10)
    process.lane.look(0)
    table = Table.open(base, NAME)
    dead = Owner(2**22 + 1, 1, this_process().namespace)
    table.words[table.row(table.claim(dead)) + t.REQUESTS] = 5
    table.words[table.row(table.claim(dead._replace(namespace=99))) + t.AT] = 0
    assert status(base, NAME, 0).processes == 2  # of the second nobody knows
    late = status(base, NAME, 61 * SECOND)
    assert (late.processes, late.requests) == (0, 15)


def test_a_guard_that_is_only_held_has_no_process(base: Path) -> None:
    table = Table.open(base, NAME)
    table.write_hold(Hold("moved", "ada", 0, 1.0, 0.0))
    seen = status(base, NAME, 0)
    assert (seen.state, seen.processes, seen.seen, seen.limit) == (HELD, 0, None, 0)


def test_a_damaged_row_does_not_hide_the_rest(base: Path) -> None:
    processes = host(base, CALL, 2)
    processes[1].table.words[processes[1].table.row(1) + t.STATE] = 77
    processes[1].table.words[processes[1].table.row(1) + t.GENERATION] = 9
    assert status(base, NAME, 0).state is CLOSED


def test_what_is_not_there_or_damaged(base: Path) -> None:
    with pytest.raises(FileNotFoundError):
        status(base, NAME, 0)
    Table.open(base, NAME).close()
    (inner,) = base.iterdir()
    (inner / f"{NAME}.guard").write_bytes(b"")
    with pytest.raises(InputError, match="damaged"):
        status(base, NAME, 0)
