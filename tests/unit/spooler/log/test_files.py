"""Does the file system of this machine do what the log wants of it?"""

import os
from pathlib import Path
from typing import ClassVar

import pytest

from tidegate.spooler.log.files import Files

FILES = Files()


def test_what_is_written_is_read_where_it_was_written(tmp_path: Path) -> None:
    handle = FILES.create(tmp_path / "file")
    assert FILES.write(handle, [b"one", b"two"], 4) == 6
    FILES.sync(handle)
    FILES.sync_directory(tmp_path)
    assert FILES.size(handle) == 10
    assert FILES.read(handle, 100, 4) == b"onetwo"
    assert FILES.read(handle, 3, 7) == b"two"
    assert FILES.read(handle, 3, 50) == b""
    FILES.truncate(handle, 7)
    assert FILES.read(handle, 100, 4) == b"one"
    FILES.close(handle)
    handle = FILES.open(tmp_path / "file")
    with pytest.raises(OSError, match="Bad file descriptor"):
        FILES.write(handle, [b"x"], 0)
    FILES.close(handle)


def test_a_read_that_the_system_cuts_short_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"abcdefgh")
    handle, real = FILES.open(tmp_path / "file"), os.pread
    monkeypatch.setattr(
        os, "pread", lambda handle, size, offset: real(handle, min(size, 3), offset)
    )
    assert FILES.read(handle, 7, 0) == b"abcdefg"
    assert FILES.read(handle, 20, 2) == b"cdefgh"
    FILES.close(handle)


def test_files_are_made_once_and_for_their_owner(tmp_path: Path) -> None:
    FILES.make_directory(tmp_path / "a/b")
    FILES.make_directory(tmp_path / "a/b")
    FILES.close(FILES.create(tmp_path / "a/b/file"))
    with pytest.raises(FileExistsError):
        FILES.create(tmp_path / "a/b/file")
    assert (tmp_path / "a/b/file").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700
    assert FILES.names(tmp_path / "a/b") == ["file"]
    FILES.rename(tmp_path / "a/b/file", tmp_path / "a/moved")
    FILES.unlink(tmp_path / "a/moved")
    FILES.unlink(tmp_path / "a/moved")
    assert FILES.names(tmp_path / "a/b") == FILES.names(tmp_path / "none") == []


def test_each_directory_that_is_made_is_brought_to_disk(tmp_path: Path) -> None:
    class Watched(Files):
        synced: ClassVar[list[Path]] = []

        def sync_directory(self, path: Path) -> None:
            self.synced.append(path)
            raise PermissionError

    Watched().make_directory(tmp_path / "a/b")
    assert Watched.synced == [tmp_path, tmp_path / "a"]
    Watched().make_directory(tmp_path / "a/b")
    assert len(Watched.synced) == 2
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        FILES.make_directory(tmp_path / "file")


def test_a_lock_is_one_process_s_until_it_is_given_back(tmp_path: Path) -> None:
    first = FILES.lock(tmp_path / "lock")
    assert first is not None
    assert FILES.lock(tmp_path / "lock") is None
    FILES.close(first)
    second = FILES.lock(tmp_path / "lock")
    assert second is not None
    FILES.close(second)
    with pytest.raises(IsADirectoryError):
        FILES.lock(tmp_path)


def test_a_disk_says_what_is_free_on_it(tmp_path: Path) -> None:
    space = FILES.space(tmp_path)
    assert 0 <= space.free <= space.total
    assert space.total > 0
