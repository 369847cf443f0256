"""The memory that processes share: whole when it is found, replaced when it is damaged."""

import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from tidegate.errors import InputError
from tidegate.runtime.clock import Monotonic
from tidegate.runtime.shared import place
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.owner import Owner, this_process
from tidegate.runtime.shared.table import ROWS_MAX, Hold, Table, names
from tidegate.units import MILLISECOND

DEAD = Owner(2**22 + 1, 1, this_process().namespace)  # above the highest number of a process


def file_of(directory: Path, name: str = "x") -> Path:
    (inner,) = directory.iterdir()
    return inner / place.filename(name)


def stranger(number: int) -> Owner:
    return this_process()._replace(namespace=number)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_all_who_open_it_see_the_same_words(directory: Path) -> None:
    one, other = Table.open(directory, "x"), Table.open(directory, "x")
    one.words[one.row(3) + t.REQUESTS] = 2**64 - 1
    assert other.words[other.row(3) + t.REQUESTS] == 2**64 - 1
    assert file_of(directory).stat().st_mode & 0o777 == 0o600
    assert [file.name for file in file_of(directory).parent.iterdir()] == ["x.guard"]  # no draft


def test_guards_have_tables_of_their_own_and_can_be_listed(directory: Path) -> None:
    assert names(directory) == []
    for name in ("b/c", "ü" * 200, "a"):
        Table.open(directory, name)
    assert names(directory) == ["a", "b/c", "ü" * 200]


def test_who_only_looks_makes_nothing(directory: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Table.open(directory, "x", create=False)
    Table.open(directory, "y")
    with pytest.raises(FileNotFoundError):
        Table.open(directory, "x", create=False)
    assert names(directory) == ["y"]


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def overwritten(file: Path) -> None:
    file.write_bytes(b"\xff" * file.stat().st_size)


def of_another(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[:512] + b"y" + data[513:])


@pytest.mark.parametrize("damage", [truncated, overwritten, of_another])
def test_a_damaged_table_is_replaced_and_it_is_said(directory: Path, damage) -> None:
    Table.open(directory, "x").close()
    damage(file_of(directory))
    with pytest.raises(InputError, match=r"the table of 'x' in .* is damaged"):
        Table.open(directory, "x", create=False)
    table = Table.open(directory, "x")
    assert table.replaced
    assert table.claim(this_process()) == 0
    assert Table.open(directory, "x").replaced == ""


def test_damaged_tables_are_not_listed(directory: Path) -> None:
    Table.open(directory, "x").close()
    overwritten(file_of(directory))
    truncated(file_of(directory))
    assert names(directory) == []


def test_no_link_is_followed_to_a_table(directory: Path, tmp_path: Path) -> None:
    Table.open(directory, "y").close()
    file_of(directory, "x").symlink_to(file_of(directory, "y"))
    with pytest.raises(InputError, match="cannot open the table of 'x'"):
        Table.open(directory, "x")


def test_a_table_that_was_removed_is_not_current(directory: Path) -> None:
    table = Table.open(directory, "x")
    assert table.is_current()
    file_of(directory).unlink()
    assert not table.is_current()
    assert Table.open(directory, "x").is_current()
    assert not table.is_current()


# Rows.


def test_rows_are_taken_one_after_another_and_kept(directory: Path) -> None:
    table = Table.open(directory, "x")
    assert [table.claim(stranger(n)) for n in (1, 2, 3)] == [0, 1, 2]
    assert table.claim(stranger(2)) == 1  # it has one already
    assert table.used == 3
    assert table.owner(1) == stranger(2)


def test_the_row_of_a_dead_owner_is_taken_with_all_he_counted_and_nothing_he_had_out(
    directory: Path,
) -> None:
    table = Table.open(directory, "x")
    assert table.claim(DEAD) == 0
    at = table.row(0)
    for word in (t.REQUESTS, t.RETRIED, t.FORFEITED, t.GENERATION, t.STATE):
        table.words[at + word] = 7
    for word in (t.INFLIGHT, t.PROBES_OUT, t.LEASE, t.RECENT):
        table.words[at + word] = 9
    table.words[at + t.VERSION] = 5  # he died while he wrote
    assert table.claim(this_process()) == 0
    assert [table.words[at + word] for word in (t.REQUESTS, t.RETRIED, t.GENERATION)] == [7] * 3
    assert [table.words[at + word] for word in (t.INFLIGHT, t.PROBES_OUT, t.RECENT)] == [0] * 3
    assert table.words[at + t.VERSION] % 2 == 0


def test_a_fresh_row_is_taken_only_when_all_owners_live(directory: Path) -> None:
    table = Table.open(directory, "x")
    table.claim(this_process())
    assert table.claim(DEAD) == 1
    assert table.claim(stranger(1)) == 2  # it cannot judge who lives in another namespace
    assert table.claim(DEAD._replace(pid=DEAD.pid + 1)) == 1
    assert table.used == 3


def test_when_all_rows_are_taken_it_says_so_and_counts(directory: Path) -> None:
    table = Table.open(directory, "x")
    assert [table.claim(stranger(n + 1)) for n in range(ROWS_MAX)] == list(range(ROWS_MAX))
    assert table.claim(stranger(9999)) == t.FULL
    assert (table.used, table.overflow) == (ROWS_MAX, 1)


def test_only_the_dead_are_buried(directory: Path) -> None:
    table = Table.open(directory, "x")
    table.claim(DEAD)
    table.words[table.row(0) + t.INFLIGHT] = 3
    assert not table.bury(0, stranger(1))
    assert table.bury(0, DEAD)
    assert table.owner(0) is None
    assert sum(table.column(t.INFLIGHT)) == 0


def test_a_column_is_one_word_of_every_row(directory: Path) -> None:
    table = Table.open(directory, "x")
    assert list(table.column(t.RETRIED)) == []
    for n in range(3):
        index = table.claim(stranger(n + 1))
        table.words[table.row(index) + t.RETRIED] = n + 10
        table.words[table.row(index) + t.REFUSED] = 99
    assert list(table.column(t.RETRIED)) == [10, 11, 12]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long was waited, by a clock that stands still."""
    waited: list[int] = []
    monkeypatch.setattr(Monotonic, "sleep", lambda _, wait: waited.append(wait))
    return waited


def test_while_another_thread_claims_one_waits_a_little(directory: Path, waits: list[int]) -> None:
    table = Table.open(directory, "x")
    with table._locked(1) as locked:
        assert locked
        answers: list[int] = []
        thread = threading.Thread(target=lambda: answers.append(table.claim(stranger(1))))
        thread.start()
        thread.join()
    assert answers == [t.BUSY]
    assert sum(waits) == 19 * MILLISECOND
    assert table.claim(stranger(1)) == 0
    assert sum(waits) == 19 * MILLISECOND


def _try_to_claim(directory: Path, answers: "multiprocessing.SimpleQueue[int]") -> None:
    answers.put(Table.open(directory, "x").claim(this_process()))


def test_while_another_process_claims_one_waits_a_little(directory: Path, waits: list[int]) -> None:
    table = Table.open(directory, "x")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with table._locked(1):
        child = context.Process(target=_try_to_claim, args=(directory, answers))
        child.start()
        child.join()
    assert answers.get() == t.BUSY


def test_who_gets_the_lock_meanwhile_has_it(directory: Path, waits: list[int]) -> None:
    answers = iter([False, False, True])
    assert t._had(lambda: next(answers), 20)
    assert waits == [MILLISECOND] * 2


def test_nobody_waits_to_bury_the_dead(directory: Path, waits: list[int]) -> None:
    table = Table.open(directory, "x")
    table.claim(DEAD)
    with table._locked(1):
        assert not table.bury(0, DEAD)
    assert waits == []


# Holds.


def held(reason: str = "licences are being moved", until: int = 0) -> Hold:
    return Hold(reason, "ada", until, 1_000.0, 2_000.5)


def test_a_hold_is_seen_by_all_with_its_reason_and_author(directory: Path) -> None:
    table, other = Table.open(directory, "x"), Table.open(directory, "x")
    assert other.hold() is None
    version = other.hold_version
    table.write_hold(held(until=77))
    assert other.hold() == held(until=77)
    assert other.hold_version > version
    table.write_hold(None)
    assert other.hold() is None
    assert other.hold_version == version + 4


def test_long_words_are_cut_and_stay_words(directory: Path) -> None:
    table = Table.open(directory, "x")
    table.write_hold(held(reason="ü" * 2_000))
    hold = table.hold()
    assert hold is not None
    assert hold.reason == "ü" * 512


def test_a_hold_that_somebody_died_writing_can_be_written_again(directory: Path) -> None:
    table = Table.open(directory, "x")
    table.words[8] = 7  # odd: the version of a hold that is being written
    table.write_hold(held())
    assert table.hold() == held()
    assert table.hold_version % 2 == 0


def test_a_hold_waits_for_the_lock_but_not_for_ever(
    directory: Path, monkeypatch: pytest.MonkeyPatch, waits: list[int]
) -> None:
    table = Table.open(directory, "x")
    monkeypatch.setattr(t, "_lock_now", lambda _fd: False)
    with pytest.raises(InputError, match="cannot lock the table of 'x'; nothing was changed"):
        table.write_hold(held())
    assert sum(waits) == 1_999 * MILLISECOND
    assert table.hold() is None


def test_in_a_fork_no_thread_holds_the_lock(directory: Path) -> None:
    table = Table.open(directory, "x")
    with table._locked(1) as locked:
        assert locked
        pid = os.fork()
        if not pid:
            mine = t._claiming.acquire(blocking=False)
            os._exit(42 if mine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42
