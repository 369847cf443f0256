"""One budget for the processes of a host: one first token, and a tenth of what all request."""

from pathlib import Path

import pytest
from host_rig import Process, host

from tidegate.core.outcome import SUCCESS
from tidegate.runtime.clock import Monotonic
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.owner import this_process
from tidegate.runtime.shared.table import ROWS_MAX, Table
from tidegate.settings import policies
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND, SECOND

CALL = Call(attempts=2, budget=policies.Budget())


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_eight_processes_have_one_first_token(directory: Path) -> None:
    processes = host(directory, CALL, 8)
    assert sum(process.retries(0) for process in processes) == 1


def test_what_one_process_saved_another_may_spend(directory: Path) -> None:
    one, other = host(directory, CALL, 2)
    one.request(0, SUCCESS, 200)
    one.lane.look(0)
    other.lane.look(0)
    assert other.retries(0, 100) == 20
    assert one.retries(0, 100) == 0


def test_savings_that_nobody_has_told_yet_are_told_before_a_retry(directory: Path) -> None:
    (one,) = host(directory, CALL, 1)
    one.request(0, SUCCESS, 30)
    assert one.retries(0, 10) == 3  # 1 to begin with and 3 saved, of which the cap leaves 3


def test_savings_of_others_since_the_last_look_are_in_the_window_too(directory: Path) -> None:
    one, other = host(directory, CALL, 2)
    one.lane.look(0)
    other.request(0, SUCCESS, 100)
    other.lane.look(0)
    assert one.retries(0, 100) == 10  # without a look of its own


def test_a_no_is_taken_as_true_for_a_millisecond(directory: Path) -> None:
    one, other = host(directory, CALL, 2)
    assert one.retries(0) == 1
    assert one.retries(0) == 0
    other.request(0, SUCCESS, 20)
    other.lane.look(0)
    assert one.retries(MILLISECOND - 1) == 0
    assert one.retries(MILLISECOND) == 1


def test_a_worker_that_starts_anew_brings_no_token(directory: Path) -> None:
    granted = 0
    for number in range(20):
        process = Process(directory, CALL, 0, number + 1)
        granted += process.retries(0, 3)
    assert granted == 1


def test_who_follows_a_dead_worker_goes_on_from_his_sums(directory: Path) -> None:
    first = Process(directory, CALL, 0, 1)
    first.request(0, SUCCESS, 100)
    assert first.retries(0, 100) == 10
    first.lane.look(0)
    words, at = first.table.words, first.table.row(0)
    words[at + t.PID] = 0  # he has died, and been buried
    second = Process(directory, CALL, 0, 2)
    assert second.retries(0, 3) == 0
    second.request(0, SUCCESS, 10)
    assert second.retries(MILLISECOND, 3) == 1
    assert [words[at + word] for word in (t.REQUESTS, t.RETRIED)] == [110, 11]


def test_a_word_announced_by_who_then_died_costs_one_token_and_no_more(directory: Path) -> None:
    one, other = host(directory, CALL, 2)
    assert one.retries(0) == 1
    one.table.words[one.table.row(0) + t.RETRIED] += 1  # announced, and killed
    other.request(0, SUCCESS, 20)
    assert other.retries(0, 10) == 1


def test_beyond_the_last_row_a_process_is_alone_and_it_is_seen(directory: Path) -> None:
    table = Table.open(directory, "licences")
    for number in range(ROWS_MAX):
        table.claim(this_process()._replace(namespace=number + 100))
    alone = Process(directory, CALL, 0, 1)
    assert alone.retries(0, 5) == 1
    assert table.overflow > 0


def test_while_there_may_be_a_row_in_a_moment_nothing_is_granted(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Monotonic, "sleep", lambda _, wait: None)
    table = Table.open(directory, "licences")
    with table._locked(1):
        process = Process(directory, CALL, 0, 1)
        assert process.retries(0, 5) == 0
    process.lane.look(SECOND)
    assert process.retries(SECOND, 5) == 1


@pytest.mark.parametrize("value", [2**64 - 1, 2**63, 2**62])
@pytest.mark.parametrize("word", [t.REQUESTS, t.DEPOSITED, t.RETRIED, t.FORFEITED, t.REFUSED])
def test_a_damaged_count_neither_breaks_a_call_nor_stops_or_frees_all_retries(
    directory: Path, word: int, value: int
) -> None:
    table = Table.open(directory, "licences")
    for number in (1, 2):
        index = table.claim(this_process()._replace(namespace=number))
        table.words[table.row(index) + word] = value
    one = Process(directory, CALL, 0, 1)  # which takes over one of the damaged rows
    one.request(0, SUCCESS, 100)
    one.lane.look(0)
    assert one.retries(0, 200) == 10


def test_what_the_host_could_retry_is_shown(directory: Path) -> None:
    one, other = host(directory, CALL, 2)
    one.request(0, SUCCESS, 50)
    one.lane.look(0)
    other.lane.look(0)
    budget = other.pipeline.budget
    assert budget is not None
    assert budget.tokens(0) == budget.snapshot(0).tokens == 5
    assert other.table.words[other.table.row(1) + t.TOKENS] == 5_000_000


def test_an_idle_process_that_comes_back_takes_no_savings_away(directory: Path) -> None:
    busy, idle = host(directory, CALL, 2)
    for tick in range(200):
        busy.request(tick * 100 * MILLISECOND, SUCCESS, 10)
    now = 20 * SECOND
    busy.lane.look(now)
    before = busy.table.words[busy.table.row(0) + t.TOKENS]
    assert before == 90_000_000  # a tenth of nine seconds: the tenth is not over
    idle.lane.look(now)
    busy.lane.look(now)
    assert busy.table.words[busy.table.row(0) + t.TOKENS] == before
