"""Which files are read, and what is said of those that cannot be."""

import os
from pathlib import Path

import pytest

from tidegate.analysis.source.files import SIZE_MAX, find, parse
from tidegate.errors import InputError


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")


def names(root: Path, *paths: str) -> list[str]:
    found = find([root / path for path in paths] or [root])
    return [file.relative_to(root).as_posix() for file, _ in found.files]


def test_folders_are_walked_in_the_order_of_their_names(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a/z.py", "a/b/y.py", "a/notes.txt")
    assert names(tmp_path) == ["b.py", "a/z.py", "a/b/y.py"]


def test_what_belongs_to_others_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, "a.py", ".git/b.py", "node_modules/c.py", "__pycache__/d.py", "my/lib.py")
    (tmp_path / "my" / "pyvenv.cfg").touch()
    assert names(tmp_path) == ["a.py"]


def test_tests_are_left_out_and_counted(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "tests/b.py", "test_c.py", "d_test.py", "conftest.py", "contest.py")
    assert names(tmp_path) == ["a.py", "contest.py"]
    assert find([tmp_path]).tests == 4


def test_tests_that_are_named_are_read(tmp_path: Path) -> None:
    make(tmp_path, "tests/test_a.py", "tests/unit/test_b.py")
    assert names(tmp_path, "tests") == ["tests/test_a.py", "tests/unit/test_b.py"]
    assert names(tmp_path, "tests/test_a.py") == ["tests/test_a.py"]


def test_a_file_is_read_once(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    assert names(tmp_path, "a.py", ".", "a.py") == ["a.py"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "a/b.py")
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a", target_is_directory=True)
    (tmp_path / "a" / "c.py").symlink_to(tmp_path / "a" / "b.py")
    assert names(tmp_path) == ["a/b.py"]


def test_modules_are_named_from_their_topmost_package(tmp_path: Path) -> None:
    make(tmp_path, "src/app/__init__.py", "src/app/db/__init__.py", "src/app/db/pool.py", "run.py")
    found = {file.name + file.parent.name: module for file, module in find([tmp_path]).files}
    assert found["pool.pydb"] == "app.db.pool"
    assert found["__init__.pydb"] == "app.db"
    assert found["__init__.pyapp"] == "app"
    deep = find([tmp_path / "src/app/db/pool.py"]).files
    assert deep[0][1] == "app.db.pool"


def test_modules_without_a_package_are_named_from_the_folder(tmp_path: Path) -> None:
    make(tmp_path, "scripts/a.py", "src/space/b.py")
    assert [module for _, module in find([tmp_path]).files] == ["scripts.a", "space.b"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gone.py", "cannot be read: No such file"),
        ("notes.txt", "expected a folder or a Python file"),
        ("empty", "no Python files"),
        ("only", "no Python files but 1 of tests"),
    ],
)
def test_bad_paths_are_one_sentence(tmp_path: Path, name: str, said: str) -> None:
    make(tmp_path, "notes.txt", "only/test_a.py")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=said):
        find([tmp_path / name])


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.py", "b.py", "c.py")
    monkeypatch.setattr("tidegate.analysis.source.files.FILES_MAX", 2)
    with pytest.raises(InputError, match="more than 2 Python files; name a part of it"):
        find([tmp_path])


def test_a_path_with_a_null_byte_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        find([tmp_path / "a\0.py"])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"print 'old'\n", "is no Python 3."),
        (b"x = '\x00'\n", "is no Python"),
        (b"# coding: nowhere\n", "is no Python"),
        (b"\xff\xfe\x00\x01", "is no Python"),
        (b"(" * 5000 + b")" * 5000, "is n"),
        (b"x = 1" + b"+1" * 200_000, "is nested too deeply"),
        (b"#" * (SIZE_MAX + 1), "is larger than 2 MiB"),
    ],
)
def test_a_bad_file_is_told_and_never_raises(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(data)
    parsed = parse(file)
    assert parsed.tree is None
    assert said in parsed.fault


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    assert "No such file" in parse(tmp_path / "gone.py").fault
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="expected a folder or a Python file"):
        find([pipe])


def test_a_folder_that_may_not_be_entered_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "a.py", "shut/b.py")
    scan = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = find([tmp_path])
    assert [file.name for file, _ in found.files] == ["a.py"]
    assert [(Path(f).name, why) for f, why in found.closed] == [
        ("shut", "cannot be entered: Permission denied")
    ]


def test_a_good_file_is_a_tree_and_their_bad_escapes_are_not_our_warnings(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = '\\d'\r\n")
    parsed = parse(file)
    assert parsed.fault == ""
    assert parsed.tree is not None
