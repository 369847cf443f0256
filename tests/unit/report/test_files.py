"""A report is on the disk whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from tidegate.errors import InputError
from tidegate.report.files import write_atomic


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_text_arrives_as_utf_8_with_its_own_line_ends(tmp_path: Path) -> None:
    write_atomic(tmp_path / "report.txt", "ü\r\n日\n")
    assert (tmp_path / "report.txt").read_bytes() == "ü\r\n日\n".encode()
    assert [p.name for p in tmp_path.iterdir()] == ["report.txt"]


def test_others_may_read_it_as_far_as_the_umask_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "report.txt", "")
    finally:
        os.umask(before)
    assert mode(tmp_path / "report.txt") == 0o640


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    old = tmp_path / "report.txt"
    for bits in (0o600, 0o664):
        old.write_text("old")
        old.chmod(bits)
        write_atomic(old, "new")
        assert (old.read_text(), mode(old)) == ("new", bits)


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    write_atomic(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "text"


def test_a_pipe_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        write_atomic(tmp_path / "pipe", "text")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("", "it is there and is not a regular file"),
        ("none/report.txt", "No such file or directory"),
        ("a\0b", "embedded null"),
        ("x" * 300, "File name too long"),
    ],
)
def test_what_cannot_be_written_is_told_in_one_sentence(
    tmp_path: Path, place: str, reason: str
) -> None:
    with pytest.raises(InputError) as error:
        write_atomic(tmp_path / place, "text")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_half_way_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    report = tmp_path / "report.txt"
    report.write_text("old")
    with pytest.raises(InputError):
        write_atomic(report, "new, and then a lone surrogate: \udc80")
    assert report.read_text() == "old"
    assert list(tmp_path.iterdir()) == [report]
