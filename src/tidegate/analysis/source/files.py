"""Which Python files does an audit read, and what could not be read, and why?

What a tree holds of others is left out: environments, caches, build output, hidden folders. So are
its tests, which may wait and repeat as they like; a folder of tests that is named itself is read.
Links are not followed, so no circle is walked. Size and number of files are bounded, and whatever
is wrong with one file costs that file alone.
"""

import ast
import os
import re
import stat
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tidegate.errors import InputError

__all__ = ["Found", "Parsed", "find", "lines", "parse"]

SIZE_MAX: Final = 2 << 20  # bytes of one file; longer ones are data written as Python
FILES_MAX: Final = 100_000  # four times CPython's own tree
DEPTH_MAX: Final = 40  # folders below each other
_SKIPPED: Final = frozenset(
    [
        "__pycache__",
        "__pypackages__",
        "build",
        "dist",
        "env",
        "node_modules",
        "site-packages",
        "venv",
    ]
)
_TEST_FOLDERS: Final = frozenset(("test", "tests"))
_TEST_FILES: Final = re.compile(r"(test_.*|.*_test|tests|conftest)\.py")


class Found(NamedTuple):
    """The files to read, each with its module's name, how many tests were left out, and folders
    that could not be entered, with the reason.
    """

    files: tuple[tuple[Path, str], ...]
    tests: int
    closed: tuple[tuple[str, str], ...] = ()


class Parsed(NamedTuple):
    """A file as a tree, or why not: `fault` is a few words and then `tree` is None."""

    tree: ast.Module | None
    text: str
    fault: str = ""


def find(paths: Sequence[Path]) -> Found:
    """The Python files that `paths` name or hold, each once, in the order of their names.

    `InputError` if a path is missing or is no Python file, or if nothing is found at all.
    """
    files: dict[str, tuple[Path, str]] = {}
    closed: list[tuple[str, str]] = []
    tests = 0
    for path in paths:
        try:
            mode = path.stat().st_mode
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{path}: cannot be read: {said}") from None
        if stat.S_ISDIR(mode):
            found, left = _walk(path, closed)
            tests += left
        elif stat.S_ISREG(mode) and path.suffix == ".py":
            found = [path]
        else:
            raise InputError(f"{path}: expected a folder or a Python file (.py)")
        for file in found:
            files.setdefault(os.path.realpath(file), (file, _module(file, path)))
            if len(files) > FILES_MAX:
                raise InputError(f"{path}: more than {FILES_MAX:,} Python files; name a part of it")
    if not files:
        where = ", ".join(str(path) for path in paths)
        but = f" but {tests} of tests; name their folder to have it read" if tests else ""
        raise InputError(f"{where}: no Python files{but}")
    return Found(tuple(files.values()), tests, tuple(closed))


def _walk(root: Path, closed: list[tuple[str, str]]) -> tuple[list[Path], int]:
    """The files below a folder, and the number of tests among them that were left out."""
    found: list[Path] = []
    tests = 0
    within_tests = bool(_TEST_FOLDERS & set(Path(os.path.realpath(root)).parts[-3:]))

    def shut(error: OSError) -> None:
        closed.append((Path(error.filename).as_posix(), f"cannot be entered: {error.strerror}"))

    for folder, folders, names in os.walk(root, onerror=shut):
        here = Path(folder)
        deep = len(here.parts) - len(root.parts) >= DEPTH_MAX
        folders[:] = [] if deep else sorted(d for d in folders if _entered(here, d))
        parts = set(here.relative_to(root).parts)
        for name in sorted(names):
            if not name.endswith(".py") or (here / name).is_symlink():
                continue
            is_test = bool(parts & _TEST_FOLDERS) or _TEST_FILES.fullmatch(name) is not None
            if is_test and not within_tests:
                tests += 1
            else:
                found.append(here / name)
    return found, tests


def _entered(here: Path, name: str) -> bool:
    if name in _SKIPPED or name.startswith("."):
        return False
    return not (here / name / "pyvenv.cfg").exists()


def _module(file: Path, root: Path) -> str:
    """`package.module`: from the topmost folder that is a package, else from the folder named."""
    parts = [] if file.stem == "__init__" else [file.stem]
    folder = file.parent
    for _ in range(DEPTH_MAX):
        inside = folder != root and root in folder.parents
        if not folder.name or not ((folder / "__init__.py").exists() or inside):
            break
        if not (folder / "__init__.py").exists() and folder.name in ("src", "lib"):
            break
        parts.append(folder.name)
        folder = folder.parent
    return ".".join(reversed(parts)) or file.stem


def parse(file: Path) -> Parsed:
    """The tree of a file. It never raises: what is wrong is told in `fault`."""
    try:
        with file.open("rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return Parsed(None, "", "is no regular file")
            data = stream.read(SIZE_MAX + 1)
    except OSError as error:
        return Parsed(None, "", f"cannot be read: {error.strerror}")
    if len(data) > SIZE_MAX:
        return Parsed(None, "", f"is larger than {SIZE_MAX >> 20} MiB")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a bad escape in their string is not for our terminal
            tree = ast.parse(data)
    except SyntaxError as error:
        return Parsed(None, "", f"is no Python {_version()}: line {error.lineno}: {error.msg}")
    except (ValueError, LookupError) as error:
        return Parsed(None, "", f"is no Python: {error}")
    except (RecursionError, MemoryError):
        return Parsed(None, "", "is nested too deeply")
    return Parsed(tree, data.decode("utf-8", "replace"))


def _version() -> str:
    import sys

    return f"{sys.version_info.major}.{sys.version_info.minor}"


def lines(text: str) -> Iterator[str]:
    """The lines as Python counts them: ended by a newline only, not by a form feed."""
    yield from text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
