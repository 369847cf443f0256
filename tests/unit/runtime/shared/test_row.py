"""A process writes into a row of its own and nowhere else, and buries the dead."""

import os
from pathlib import Path

import pytest

from tidegate.runtime.clock import Monotonic
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.owner import Owner, this_process
from tidegate.runtime.shared.row import FRESH, Row, faded
from tidegate.runtime.shared.table import ROWS_MAX, Table
from tidegate.units import SECOND

DEAD = Owner(2**22 + 1, 1, this_process().namespace)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.open(tmp_path / "state", "x")


def stranger(number: int) -> Owner:
    return this_process()._replace(namespace=number)


def test_a_row_is_claimed_once(table: Table) -> None:
    row = Row(table)
    assert (row.at, row.claims) == (0, 0)
    assert row.is_ours(5)
    assert (row.at, row.claims, row.index) == (table.row(0), 1, 0)
    assert row.words[row.at + t.AT] == 5
    assert row.is_ours(6)
    assert row.claims == 1


def test_a_row_that_was_given_to_another_is_left_to_him(table: Table) -> None:
    row = Row(table)
    assert row.is_ours(0)
    table.words[row.at + t.PID] = 0
    table.claim(stranger(1))
    assert row.is_ours(0)
    assert (row.index, row.claims) == (1, 2)


def test_a_fork_claims_a_row_of_its_own(table: Table) -> None:
    row = Row(table)
    assert row.is_ours(0)
    pid = os.fork()
    if not pid:
        os._exit(row.is_ours(0) and row.index == 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


def test_a_full_table_is_asked_again_after_ten_seconds(table: Table) -> None:
    for number in range(ROWS_MAX):
        table.claim(stranger(number + 1))
    row = Row(table)
    assert not row.is_ours(0)
    assert not row.is_ours(10 * SECOND - 1)
    assert (table.overflow, row.at, row.busy) == (1, 0, False)
    table.words[table.row(7) + t.PID] = 0
    assert row.is_ours(10 * SECOND)
    assert row.index == 7


def test_a_busy_table_is_asked_again_after_a_second(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Monotonic, "sleep", lambda _, wait: None)
    row = Row(table)
    with table._locked(1):
        assert not row.is_ours(0)
        assert row.busy
    assert not row.is_ours(SECOND - 1)
    assert row.is_ours(SECOND)
    assert not row.busy


def test_where_nobody_can_tell_who_we_are_we_have_no_row_yet(table: Table) -> None:
    def unknown() -> Owner:
        raise OSError

    row = Row(table, who=unknown)
    assert not row.is_ours(0)
    assert (row.at, row.busy) == (0, True)


def test_a_directory_that_is_not_ours_any_more_costs_no_call_its_life(table: Table) -> None:
    table.directory.chmod(0o777)
    row = Row(table)
    assert not row.is_ours(0)
    assert row.busy
    table.directory.chmod(0o700)
    assert row.is_ours(SECOND)


def test_what_others_had_fades_with_its_age(table: Table) -> None:
    row = Row(table)
    for number, at in ((1, 0), (2, 5 * SECOND)):
        index = table.claim(stranger(number))
        table.words[table.row(index) + t.RECENT] = 100
        table.words[table.row(index) + t.AT] = at
    assert row.is_ours(0)
    row.words[row.at + t.RECENT] = 1_000
    assert row.recent(5 * SECOND, t.RECENT, 10 * SECOND) == 50 + 100
    assert list(row.others()) == [table.row(0), table.row(1)]


def test_fading() -> None:
    assert faded(7, FRESH - 1, SECOND) == 7
    assert faded(100, SECOND // 4, SECOND) == 75
    assert faded(100, SECOND, SECOND) == faded(100, 3 * SECOND, SECOND) == 0


def test_the_dead_are_found_one_a_look(table: Table) -> None:
    row = Row(table)
    assert row.is_ours(0)
    assert table.claim(DEAD) == 1
    table.words[table.row(1) + t.INFLIGHT] = 3
    for now in (SECOND, SECOND):
        row.look_after_one(now)
    assert table.owner(1) is None
    assert table.words[table.row(1) + t.INFLIGHT] == 0
    assert row.is_dead(SECOND, table.row(1))


def test_who_wrote_just_now_is_not_looked_after(table: Table) -> None:
    row = Row(table)
    assert row.is_ours(0)
    table.claim(DEAD)
    table.words[table.row(1) + t.AT] = SECOND
    assert not row.is_dead(2 * SECOND - 1, table.row(1))
    assert row.is_dead(2 * SECOND, table.row(1))


def test_the_living_are_never_buried_and_strangers_after_a_minute(table: Table) -> None:
    row = Row(table, who=lambda: stranger(5))
    assert row.is_ours(0)
    table.claim(stranger(5)._replace(pid=os.getppid(), started=_start_of_parent()))
    table.claim(stranger(6))
    late = 3600 * SECOND
    assert not row.is_dead(late, table.row(1))
    assert not row.is_dead(60 * SECOND, table.row(2))
    assert row.is_dead(60 * SECOND + 1, table.row(2))


def _start_of_parent() -> int:
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[19])


def test_a_row_is_given_up_with_what_was_out(table: Table) -> None:
    row = Row(table)
    row.give_up()  # there is none yet
    assert row.is_ours(0)
    row.words[row.at + t.INFLIGHT] = 3
    row.words[row.at + t.REQUESTS] = 7
    row.give_up()
    assert (row.at, table.owner(0)) == (0, None)
    assert [sum(table.column(word)) for word in (t.INFLIGHT, t.REQUESTS)] == [0, 7]
