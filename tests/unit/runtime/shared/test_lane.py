"""How a guard's pipeline is joined to the host, and what a hold does to it."""

import logging
import os
import threading
from pathlib import Path
from random import Random

import msgspec
import pytest
from host_rig import NAME, Process, host

from tidegate.core.circuit_breaker import HALF_OPEN, HELD
from tidegate.core.outcome import REJECTIONS, SUCCESS, Permit, Reason
from tidegate.core.pipeline import Pipeline
from tidegate.runtime.shared import lane as lanes
from tidegate.runtime.shared import place
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.lane import EVERY, Lane, attach
from tidegate.runtime.shared.table import Hold, Table
from tidegate.settings import policies
from tidegate.settings.system import Call
from tidegate.units import SECOND

CALL = Call(attempts=2, budget=policies.Budget(), breaker=policies.Breaker())


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(place.VARIABLE, str(tmp_path / "state"))
    monkeypatch.setattr(lanes, "_told", set())
    monkeypatch.setattr(lanes, "_say", logging.getLogger("tidegate").warning)
    return tmp_path / "state"


def held(until: int = 0, reason: str = "being moved") -> Hold:
    return Hold(reason, "ada", until, 1.0, 2.0)


def is_held(process: Process, now: int) -> bool:
    return process.pipeline.admit(now, 0) is REJECTIONS[Reason.HELD]


# Holding.


def test_a_hold_is_obeyed_in_every_process_at_its_next_look_and_so_is_a_release(
    directory: Path,
) -> None:
    processes = host(directory, CALL, 3)
    Table.open(directory, NAME).write_hold(held())
    for process in processes:
        process.lane.look(EVERY)
        assert is_held(process, EVERY)
        assert process.lane.hold == held()
        assert [c.reason for c in process.pipeline.drain_transitions()] == [
            "held by ada: being moved"
        ]
    Table.open(directory, NAME).write_hold(None)
    for process in processes:
        process.lane.look(2 * EVERY)
        assert process.lane.hold is None
    let_in = [p.pipeline.admit(2 * EVERY, 0) for p in processes for _ in range(3)]
    assert sum(isinstance(answer, Permit) for answer in let_in) == 3  # it comes back by probes


def test_a_hold_ends_at_its_instant_and_not_before(directory: Path) -> None:
    (process,) = host(directory, CALL, 1)
    process.table.write_hold(held(until=60 * SECOND))
    process.lane.look(0)
    process.lane.look(60 * SECOND - 1)
    assert is_held(process, 60 * SECOND - 1)
    process.lane.look(60 * SECOND)
    assert process.lane.hold is None
    assert not is_held(process, 60 * SECOND)


def test_a_hold_that_is_over_is_not_taken_up_by_who_comes_later(directory: Path) -> None:
    Table.open(directory, NAME).write_hold(held(until=SECOND))
    assert not is_held(Process(directory, CALL, SECOND, 1), SECOND)


def test_a_guard_that_nobody_has_yet_is_held_when_it_appears(directory: Path) -> None:
    Table.open(directory, NAME).write_hold(held())
    assert is_held(Process(directory, CALL, 0, 1), 0)


def test_a_hold_whose_words_change_is_told_again(directory: Path) -> None:
    (process,) = host(directory, CALL, 1)
    process.table.write_hold(held())
    process.lane.look(0)
    process.table.write_hold(held(reason="still"))
    process.lane.look(0)
    breaker = process.pipeline.breaker
    assert breaker is not None
    assert breaker.snapshot(0).reason == "held by ada: still"


def test_a_hold_that_is_being_written_is_left_for_the_next_look(directory: Path) -> None:
    (process,) = host(directory, CALL, 1)
    process.table.write_hold(held())
    process.table.words[8] += 1  # odd: the version of a hold that is being written
    process.lane.look(0)
    assert not is_held(process, 0)
    process.table.words[8] += 1
    process.lane.look(0)
    assert is_held(process, 0)


def test_a_pipeline_without_policies_can_be_held(directory: Path) -> None:
    (process,) = host(directory, Call(), 1)
    process.table.write_hold(held())
    process.lane.look(0)
    assert is_held(process, 0)
    process.table.write_hold(None)
    process.lane.look(0)
    assert not is_held(process, 0)


def test_all_views_of_a_guard_are_held(directory: Path) -> None:
    process = Process(directory, CALL, 0, 1)
    view = process.pipeline.adjusted(msgspec.structs.replace(CALL, attempts=3), Random(1))
    process.lane._pipelines = lambda: (process.pipeline, view)
    process.table.write_hold(held())
    process.lane.look(0)
    assert view.held
    process.table.write_hold(None)
    process.lane.look(0)
    assert not view.held
    assert view.breaker is process.pipeline.breaker
    assert view.breaker is not None
    assert view.breaker.state(0) is HALF_OPEN


# Binding.


def test_policies_that_are_replaced_are_joined_again_and_the_row_is_kept(directory: Path) -> None:
    one, other = host(directory, CALL, 2)
    one.request(0, SUCCESS, 100)
    one.lane.look(0)
    other_settings = msgspec.structs.replace(CALL, budget=policies.Budget(ratio=0.2))
    one.pipeline = one.pipeline.adjusted(other_settings, Random(1))
    one.lane.bind(0)
    assert one.table.used == 2
    assert one.table.words[one.table.row(0) + t.REQUESTS] == 100
    assert one.retries(0, 100) == 1  # a budget that begins anew has no window to save for
    other.request(0, SUCCESS, 30)
    assert other.retries(0, 100) == 3


def test_new_policies_are_held_if_the_old_were(directory: Path) -> None:
    (process,) = host(directory, CALL, 1)
    process.table.write_hold(held())
    process.lane.look(0)
    process.pipeline = Pipeline(CALL, Random(1))
    process.lane.bind(0)
    assert is_held(process, 0)
    assert process.pipeline.breaker is not None
    assert process.pipeline.breaker.state(0) is HELD


# Files.


def test_a_table_that_was_removed_is_made_anew_within_a_second(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = host(directory, CALL, 2)
    (file,) = next(iter(directory.iterdir())).iterdir()
    file.unlink()
    with caplog.at_level(logging.WARNING):
        for process in (one, other):
            process.lane.look(SECOND)
    assert caplog.messages == [f"{NAME}: the state shared by this host's processes began anew"] * 2
    Table.open(directory, NAME).write_hold(held())
    for process in (one, other):
        process.lane.look(2 * SECOND)
        assert is_held(process, 2 * SECOND)
    assert one.retries(2 * SECOND) + other.retries(2 * SECOND) == 1


def test_where_no_table_can_be_had_any_more_it_goes_on_with_the_old(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (process,) = host(directory, CALL, 1)
    directory.chmod(0o777)
    for second in (1, 2, 3):
        process.lane.look(second * SECOND)
    assert len(caplog.messages) == 1
    assert "others may write there" in caplog.messages[0]
    assert process.retries(3 * SECOND) == 1


def test_a_damaged_table_is_replaced_and_told(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Table.open(directory, NAME).close()
    (file,) = next(iter(directory.iterdir())).iterdir()
    file.write_bytes(b"")
    pipeline = Pipeline(CALL, Random(1))
    assert attach(NAME, lambda: [pipeline], 0) is not None
    assert caplog.messages == [
        f"{NAME}: the shared state was damaged and begins anew: it has 0 bytes and not 69632"
    ]


def test_the_log_is_told_from_a_thread_that_holds_no_lock(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    threads = []

    class Thread(threading.Thread):
        def start(self) -> None:
            threads.append(self)
            super().start()

    monkeypatch.setattr(lanes.threading, "Thread", Thread)
    lanes._say("100 % of it")
    threads[0].join()
    assert caplog.messages == ["100 % of it"]


# Attaching.


def test_sharing_can_be_switched_off(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(place.VARIABLE, "off")
    pipeline = Pipeline(CALL, Random(1))
    assert attach(NAME, lambda: [pipeline], 0) is None
    assert not directory.exists()


def test_a_directory_of_somebody_else_is_told_once_and_not_used(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory.mkdir()
    directory.chmod(0o770)
    pipeline = Pipeline(CALL, Random(1))
    for _ in range(3):
        assert attach(NAME, lambda: [pipeline], 0) is None
    assert len(caplog.messages) == 1
    assert "shares nothing with others of its host: nothing in" in caplog.messages[0]


def test_a_directory_that_depends_on_where_one_stands_is_told_and_not_used(
    directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(place.VARIABLE, "state")
    pipeline = Pipeline(CALL, Random(1))
    assert attach(NAME, lambda: [pipeline], 0) is None
    assert "is to be an absolute path" in caplog.messages[0]


def test_attached_it_shares(directory: Path) -> None:
    pipeline = Pipeline(CALL, Random(1))
    lane = attach(NAME, lambda: [pipeline], 7)
    assert isinstance(lane, Lane)
    assert lane.look_at == 7 + EVERY
    assert Table.open(directory, NAME).used == 1


def test_a_fork_looks_at_once_and_takes_a_row_of_its_own(directory: Path) -> None:
    pipeline = Pipeline(CALL, Random(1))
    lane = attach(NAME, lambda: [pipeline], 0)
    assert lane is not None
    pid = os.fork()
    if not pid:
        fine = lane.look_at == 0 and lane._row.at == 0
        lane.look(0)
        os._exit(42 if fine and lane._row.index == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42


class Stopped:
    """The clock that a process ends by."""

    @staticmethod
    def now() -> int:
        return 0


def test_a_process_that_ends_tells_what_it_has_counted_and_gives_its_row_up(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "MONOTONIC", Stopped)
    one, other = host(directory, CALL, 2)
    one.request(0, SUCCESS, 40)
    assert isinstance(one.pipeline.admit(0, 0), Permit)  # still out
    one.lane._end()
    assert other.table.owner(0) is None
    assert other.table.words[other.table.row(0) + t.REQUESTS] == 41
    assert other.retries(0, 100) == 4
    one.lane._end()  # it has no row to give up


def test_an_end_leaves_the_row_of_another_alone(directory: Path) -> None:
    one, other = host(directory, CALL, 2)
    words, at = other.table.words, other.table.row(0)
    words[at + t.NAMESPACE] = 77  # ours has been given to somebody else
    one.lane._end()
    assert words[at + t.NAMESPACE] == 77


def test_other_hosts_are_spoken_with_if_there_is_a_server(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, Path, str]] = []
    monkeypatch.setattr(lanes.remote, "speak", lambda *given: asked.append(given))
    monkeypatch.setenv(lanes.remote.VARIABLE, "valkey://127.0.0.1:1")
    pipeline = Pipeline(CALL, Random(1))
    assert attach(NAME, lambda: [pipeline], 0) is not None
    assert asked == [(NAME, directory, "valkey://127.0.0.1:1")]


# Limits that find themselves.


def limits(processes: list[Process]) -> list[int]:
    found = []
    for process in processes:
        assert process.pipeline.limiter is not None
        found.append(process.pipeline.limiter.limit)
    return found


def test_processes_start_together_as_high_as_one_would(directory: Path) -> None:
    call = Call(limit=policies.Limit(adaptive=policies.Adaptive(start=20)))
    processes = host(directory, call, 4)
    for process in processes:
        process.lane.look(EVERY)
    assert limits(processes) == [5, 5, 5, 5]
    # Two of them call nothing for ten seconds: their part is with the rest until they do.
    for now in (5 * SECOND, 11 * SECOND):
        for process in processes[:2]:
            process.lane.look(now)
    assert limits(processes) == [10, 10, 5, 5]
    for process in reversed(processes):
        process.lane.look(12 * SECOND)
    assert limits(processes) == [5, 5, 5, 7]
    processes[3].lane.look(12 * SECOND + EVERY)
    assert limits(processes) == [5, 5, 5, 5]


def test_a_fixed_limit_is_not_parted_since_it_is_one_for_the_host(directory: Path) -> None:
    processes = host(directory, Call(limit=policies.Limit(max=6)), 3)
    for process in processes:
        process.lane.look(EVERY)
    assert limits(processes) == [6, 6, 6]
