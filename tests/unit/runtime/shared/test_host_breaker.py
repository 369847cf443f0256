"""One circuit for the processes of a host: opened by all, probed by few, closed for all."""

from pathlib import Path

import pytest
from host_rig import Process, host

from tidegate.core.circuit_breaker import CLOSED, HALF_OPEN, OPEN, RAMPING, State
from tidegate.core.outcome import FAILURE, IGNORED, SUCCESS, Permit
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.host_breaker import HostBreaker
from tidegate.settings import policies
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND, SECOND

CALL = Call(breaker=policies.Breaker())
LATER = 5 * SECOND  # when an opening is over


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state"


def breaker(process: Process) -> HostBreaker:
    circuit: object = process.pipeline.breaker
    assert isinstance(circuit, HostBreaker)
    return circuit


def states(processes: list[Process], now: int) -> list[State]:
    for process in (*processes, *processes):
        process.lane.look(now)
    return [breaker(process).state(now) for process in processes]


def opened(directory: Path, size: int) -> list[Process]:
    processes = host(directory, CALL, size)
    processes[0].request(0, FAILURE, 20)
    assert states(processes, 0) == [OPEN] * size
    return processes


def test_failures_of_all_processes_count_together(directory: Path) -> None:
    processes = host(directory, CALL, 10)
    for process in processes:
        process.request(0, FAILURE, 2)
    assert states(processes, 0) == [CLOSED] * 10
    processes[0].request(0, FAILURE)
    assert states(processes, 0) == [OPEN] * 10
    assert breaker(processes[0]).snapshot(0).reason == "21 of the last 21 calls failed"


def test_what_one_has_opened_the_others_refuse_at_their_next_look(directory: Path) -> None:
    one, other = host(directory, CALL, 2)
    one.request(0, FAILURE, 20)
    assert other.request(99 * MILLISECOND, SUCCESS) == 1
    assert other.request(100 * MILLISECOND, SUCCESS) == 0
    assert breaker(other).retry_after(100 * MILLISECOND) == LATER - 100 * MILLISECOND


def test_the_host_sends_as_many_probes_as_one_process_would(directory: Path) -> None:
    processes = opened(directory, 8)
    permits = [(p, p.pipeline.admit(LATER, 0)) for p in processes for _ in range(5)]
    out = [(p, permit) for p, permit in permits if isinstance(permit, Permit)]
    assert len(out) == 3
    for process, permit in out:
        process.pipeline.settle(LATER, permit, SUCCESS)
    assert states(processes, LATER) == [RAMPING] * 8


def test_probes_of_different_processes_close_it_together(directory: Path) -> None:
    processes = opened(directory, 3)
    for process in processes:
        assert breaker(process).admit(LATER) >= 0
    for process in processes:
        generation = breaker(process).snapshot(LATER).generation
        breaker(process).settle(LATER, LATER, generation, SUCCESS)
    assert breaker(processes[2]).state(LATER) is RAMPING
    assert states(processes, LATER) == [RAMPING] * 3
    assert states(processes, LATER + 10 * SECOND) == [CLOSED] * 3


def test_a_probe_that_fails_in_one_opens_it_in_all_at_once(directory: Path) -> None:
    one, other = opened(directory, 2)
    permit = one.pipeline.admit(LATER, 0)
    assert isinstance(permit, Permit)
    one.pipeline.settle(LATER, permit, FAILURE)
    assert breaker(other).admit(LATER) < 0
    assert breaker(other).state(LATER) is OPEN


def test_a_probe_that_is_cancelled_gives_its_place_to_another_process(directory: Path) -> None:
    one, other = opened(directory, 2)
    permits = [one.pipeline.admit(LATER, 0) for _ in range(3)]
    assert breaker(other).admit(LATER) < 0
    assert isinstance(permits[0], Permit)
    one.pipeline.settle(LATER, permits[0], IGNORED)
    assert breaker(other).admit(LATER) < 0  # a no is taken as true for a millisecond
    assert breaker(other).admit(LATER + MILLISECOND) >= 0


def test_a_probe_that_hangs_in_a_process_without_calls_opens_it_for_all(directory: Path) -> None:
    one, other = opened(directory, 2)
    one.pipeline.admit(LATER, 0)
    assert states([other], LATER) == [HALF_OPEN]
    assert breaker(other).state(LATER + 30 * SECOND) is OPEN


def test_a_killed_prober_gives_its_places_back(directory: Path) -> None:
    one, other = opened(directory, 2)
    for _ in range(3):
        one.pipeline.admit(LATER, 0)
    one.table.words[one.table.row(0) + t.PID] = 2**22 + 1  # nobody has this number
    one.table.words[one.table.row(0) + t.NAMESPACE] = 2  # and it would be a neighbour
    now = LATER + SECOND
    assert breaker(other).admit(now) >= 0


def test_what_a_dead_host_knew_the_next_worker_knows(directory: Path) -> None:
    opened(directory, 1)
    first = Process(directory, CALL, 0, 1)  # the same owner, begun again
    assert breaker(first).state(SECOND) is OPEN
    first.table.words[first.table.row(0) + t.PID] = 0
    second = Process(directory, CALL, SECOND, 2)
    assert breaker(second).state(SECOND) is OPEN
    assert breaker(second).state(LATER) is HALF_OPEN


def test_while_it_is_closed_calls_go_straight_to_the_original(directory: Path) -> None:
    one, _ = host(directory, CALL, 2)
    circuit = breaker(one)
    assert circuit.admit == circuit.original.admit
    one.request(0, FAILURE, 20)
    assert circuit.admit != circuit.original.admit
    one.lane.look(HOUR_LATER)
    for _ in range(3):
        one.request(HOUR_LATER, SUCCESS)
    one.lane.look(2 * HOUR_LATER)
    assert circuit.admit == circuit.original.admit


HOUR_LATER = 3600 * SECOND


@pytest.mark.parametrize(
    ("word", "value"),
    [(t.GENERATION, 2**64 - 1), (t.STATE, 99), (t.VERSION, 7)],
)
def test_a_damaged_row_is_not_believed(directory: Path, word: int, value: int) -> None:
    one, other = host(directory, CALL, 2)
    words, at = other.table.words, other.table.row(1)
    words[at + t.GENERATION] = 5
    words[at + t.STATE] = 1
    words[at + word] = value
    one.lane.look(0)
    assert breaker(one).state(0) is CLOSED


def test_no_row_can_shut_it_for_longer_than_an_opening(directory: Path) -> None:
    one, other = host(directory, CALL, 2)
    at = other.table.row(1)
    for word, value in ((t.GENERATION, 5), (t.STATE, 1), (t.DUE, 2**63)):
        other.table.words[at + word] = value
    one.lane.look(0)
    assert breaker(one).state(LATER - 1) is OPEN
    assert breaker(one).state(LATER) is HALF_OPEN


def test_changes_are_told_once_in_each_process(directory: Path) -> None:
    one, other = host(directory, CALL, 2)
    one.request(0, FAILURE, 19)
    one.pipeline.settle(0, one.pipeline.admit(0, 0), FAILURE)  # type: ignore[arg-type]
    assert [change.after for change in breaker(one).drain_transitions()] == ["open"]
    one.lane.look(0)
    other.lane.look(0)
    assert [change.after for change in other.pipeline.drain_transitions()] == ["open"]
    assert other.pipeline.drain_transitions() == []
