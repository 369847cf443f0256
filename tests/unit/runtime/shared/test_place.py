"""The directory in which processes meet is the user's own, of this boot, or it is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.errors import InputError
from tidegate.runtime.shared import place


def test_one_directory_for_every_process_of_a_user() -> None:
    assert place.base({}) == Path(f"/dev/shm/tidegate-{os.geteuid()}")
    assert place.base({place.VARIABLE: "/tmp/x"}) == Path("/tmp/x")
    assert place.base({place.VARIABLE: "Off"}) is None
    with pytest.raises(InputError, match="an absolute path or off, not 'state'"):
        place.base({place.VARIABLE: "state"})


def test_it_is_made_closed_to_others_and_of_this_boot(tmp_path: Path) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    base = tmp_path / "state"
    with place.home(base, create=True):
        (inner,) = base.iterdir()
    assert base.stat().st_mode & 0o777 == inner.stat().st_mode & 0o777 == 0o700
    assert boot in inner.name


def test_it_is_not_made_by_who_only_looks(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), place.home(tmp_path / "state", create=False):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_where_others_may_write_nothing_is_believed(tmp_path: Path, mode: int) -> None:
    base = tmp_path / "state"
    base.mkdir()
    base.chmod(mode)
    with pytest.raises(InputError, match=f"others may write there .mode {mode:04o}"):
        enter(base)


def test_what_another_user_has_made_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path / "state")
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(InputError, match="and this is user 4711"):
        enter(tmp_path / "state")


def test_no_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(0o700)
    (tmp_path / "state").symlink_to(tmp_path / "real")
    with pytest.raises(InputError, match="cannot use"):
        enter(tmp_path / "state")
    base = tmp_path / "real"
    enter(base)
    (inner,) = base.iterdir()
    inner.rename(tmp_path / "elsewhere")
    inner.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="cannot use"):
        enter(base)


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(InputError, match="cannot use"):
        enter(tmp_path / "state")


def test_where_nothing_can_be_made_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file or directory"):
        enter(tmp_path / "no" / "such")


def enter(base: Path) -> None:
    with place.home(base, create=True):
        pass


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\x00b", "\udc80"])
def test_names_that_no_guard_can_have(name: str) -> None:
    with pytest.raises(InputError, match="1 to 200 printable characters"):
        place.check_name(name)


def test_every_name_has_a_file_of_its_own() -> None:
    names = [
        "a",
        "A",
        "a/b",
        "..",
        ".",
        "a%2Fb",
        "ü" * 200,
        "ü" * 199 + "x",
        "x" * 200,
        "open page",
    ]
    files = [place.filename(place.check_name(name)) for name in names]
    assert len(set(files)) == len(names)
    assert all("/" not in file and len(file.encode()) <= 255 for file in files)
    assert not {".", ".."} & set(files)


def test_where_nothing_is_shared_a_command_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(place.VARIABLE, "off")
    with pytest.raises(InputError, match="TIDEGATE_STATE_DIR is off"):
        place.directory()
    monkeypatch.setenv(place.VARIABLE, "/tmp/x")
    assert place.directory() == Path("/tmp/x")
    monkeypatch.setattr(place, "can_share", lambda: False)
    with pytest.raises(InputError, match="it needs Linux"):
        place.directory()


def test_what_other_systems_lack_is_asked_for_only_where_it_is() -> None:
    """Windows has neither fcntl nor pwd: a guard, and the sentence of a command, need none."""
    script = (
        "import sys, tidegate;"
        "sys.modules |= dict.fromkeys(['fcntl', 'pwd', 'mmap']);"
        "from tidegate.runtime.shared import place; place.can_share = lambda: False;"
        "assert tidegate.guard('x')(lambda: 5)() == 5;"
        "from tidegate.cli.main import main;"
        "sys.exit(main(['hold', 'x', '--reason', 'y']) * 10 + main(['status']))"
    )
    environ = {**os.environ, place.VARIABLE: "/nowhere"}
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env=environ, check=False
    )
    assert run.stderr.decode().count("it needs Linux and /proc") == 2
    assert run.returncode == 22
