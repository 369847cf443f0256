"""A token in a file, and what happens when the file changes."""

from pathlib import Path

import pytest

from tidegate.errors import InputError
from tidegate.spooler.door.token import Token
from tidegate.units import SECOND

OLD, NEW = "0123456789abcdef", "fedcba9876543210"


def write(path: Path, token: str, mode: int = 0o600) -> Path:
    """As whoever puts a new one there: beside it, then in its place."""
    beside = path.with_suffix(".new")
    beside.write_text(token)
    beside.chmod(mode)
    beside.rename(path)
    return path


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "token", f"{OLD}\n")


def test_who_brings_it_is_let_in_and_nobody_else(file):
    token = Token(file, 0)
    assert token.matches(0, f"Bearer {OLD}".encode())
    assert token.matches(0, f"bearer  {OLD} ".encode())
    for other in ("", OLD, f"Basic {OLD}", f"Bearer {OLD}0", f"Bearer {OLD[:-1]}", "Bearer "):
        assert not token.matches(0, other.encode())
    assert not token.matches(0, b"Bearer \xff\xfe")


def test_a_new_one_is_seen_within_a_second(file):
    token = Token(file, 0)
    write(file, NEW)
    assert token.matches(SECOND - 1, f"Bearer {OLD}".encode())
    assert not token.matches(SECOND, f"Bearer {OLD}".encode())
    assert token.matches(SECOND, f"Bearer {NEW}".encode())


@pytest.mark.parametrize("half_done", ["gone", "empty", "open"])
def test_while_it_cannot_be_read_the_last_one_holds(file, half_done, caplog):
    token = Token(file, 0)
    if half_done == "gone":
        file.unlink()
    else:
        write(file, "" if half_done == "empty" else NEW, 0o644 if half_done == "open" else 0o600)
    for second in range(1, 5):
        assert token.matches(second * SECOND, f"Bearer {OLD}".encode())
    assert len(caplog.records) == 1
    assert OLD not in caplog.text
    assert NEW not in caplog.text
    write(file, NEW)
    assert token.matches(6 * SECOND, f"Bearer {NEW}".encode())


@pytest.mark.parametrize(
    ("token", "mode", "said"),
    [
        (OLD, 0o644, "has mode 644, and others may read or change it: chmod 600"),
        (OLD, 0o660, "has mode 660, and others may read or change it: chmod 600"),
        ("short", 0o600, "should hold one word of at least 16 ASCII characters"),
        ("", 0o600, "should hold one word of at least 16 ASCII characters"),
        (f"{OLD} {OLD}", 0o600, "should hold one word of at least 16 ASCII characters"),
        ("é" * 20, 0o600, "should hold one word of at least 16 ASCII characters"),
    ],
)
def test_a_file_that_is_no_secret_is_refused(tmp_path, token, mode, said):
    file = write(tmp_path / "token", token, mode)
    with pytest.raises(InputError) as refused:
        Token(file, 0)
    assert str(refused.value) == f"the token file {file} {said}"


def test_a_file_for_a_group_is_fine(tmp_path):
    assert Token(write(tmp_path / "token", OLD, 0o640), 0).matches(0, f"Bearer {OLD}".encode())


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=f"cannot read the token file {tmp_path}.*: No such file"):
        Token(tmp_path / "token", 0)
