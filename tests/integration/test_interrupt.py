"""What people do to a check that takes long: watch it, stop it, kill what it started.

Everything that a check starts holds its standard output, so to read that to its end is to wait for
the last of them; a process left behind would make the test hang, not fail by chance.
"""

import json
import os
import pty
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # progress is shown after two seconds, and processes start

LONG = """\
tidegate: 1
clients:
  users: {rate: 100/s, calls: {web: {timeout: 500ms, attempts: 4}}}
services:
  web: {workers: 6, time: 40ms}
triggers:
  short: {service: web, freeze: true, for: 10s}
  endless: {service: web, slowdown: 1.01x, for: 20h}
"""
HOLDING = """\
import signal, sys
from tidegate.analysis import runs
from tidegate.settings.load import load

def hold(*_):
    print("holding", flush=True)
    while True:
        pass

runs._continue = hold
runs.execute_choices(
    runs.Spec(system=load(sys.argv[1]).system(), trigger="short", seed=1, choices=((),))
)
"""


WIPED = "\r\x1b[K"


@pytest.fixture
def system(tmp_path: Path) -> Path:
    path = tmp_path / "long.yaml"
    path.write_text(LONG)
    return path


@contextmanager
def watched(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A check in a group of its own, as a shell starts it, with a terminal to tell its progress."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", "check", *arguments],
        stdout=subprocess.PIPE,
        stderr=end,
        text=True,
        start_new_session=True,
    )
    os.close(end)
    try:
        yield process, terminal
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(terminal)


def read_until(terminal: int, word: str) -> str:
    """What the terminal shows until it says `word`."""
    shown = ""
    while word not in shown:
        shown += os.read(terminal, 1000).decode()
    return shown


def rest_of(terminal: int) -> str:
    """All that is still shown, until nobody can write any more."""
    shown = ""
    try:
        while piece := os.read(terminal, 1000).decode():
            shown += piece
    except OSError:  # how Linux says that the other end is closed
        pass
    return shown


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(c) for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]


def test_control_c_tells_what_is_known_and_leaves_nothing_running(system: Path) -> None:
    with watched(str(system), "--json", "--processes", "2") as (process, terminal):
        read_until(terminal, "endless: 0 of 4")
        os.killpg(process.pid, signal.SIGINT)
        printed, _ = process.communicate()
        shown = rest_of(terminal)
    report = json.loads(printed)
    assert report["interrupted"] is True
    assert [t["trigger"] for t in report["triggers"]] == ["short"]
    assert (report["verdict"], report["exit_code"]) == ("fails", 1)
    assert process.returncode == 1  # a finding stays one
    assert shown.endswith(WIPED)  # and no traceback of a worker stands below it


def test_control_c_before_anything_is_found_exits_with_130(tmp_path: Path) -> None:
    path = tmp_path / "calm.yaml"
    path.write_text(LONG.replace("short: {", "first: {").replace("10s}", "20h}"))
    with watched(str(path), "--processes", "2") as (process, terminal):
        read_until(terminal, "first: 0 of 4")
        os.killpg(process.pid, signal.SIGINT)
        printed, _ = process.communicate()
    assert process.returncode == 130
    assert "INTERRUPTED" in printed
    assert "stopped before anything was tried" in printed


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc for the workers")
def test_a_killed_worker_is_one_sentence(system: Path) -> None:
    with watched(str(system), "--processes", "2") as (process, terminal):
        read_until(terminal, "endless: 0 of 4")
        os.kill(workers_of(process)[0], signal.SIGKILL)
        printed, _ = process.communicate()
        shown = rest_of(terminal).rpartition(WIPED)[2]
    assert (process.returncode, printed) == (3, "")
    assert shown.count("\n") == 1
    assert shown.startswith("tidegate: a process at work on endless was ended from outside")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_copy_outlives_the_process_that_wants_its_answer(
    system: Path, how: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(system)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        process.send_signal(how)  # to it alone: the copy, which would go on for ever, hears nothing
        assert process.stdout.read() == ""
    assert process.returncode == -how


def test_a_page_too_large_for_the_disk_leaves_the_report_and_no_half_page(tmp_path: Path) -> None:
    path, page = tmp_path / "calm.yaml", tmp_path / "page.html"
    path.write_text(LONG.replace("  endless: {service: web, slowdown: 1.01x, for: 20h}\n", ""))
    done = subprocess.run(
        [sys.executable, "-m", "tidegate", "check", str(path), "--html", str(page)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert done.returncode == 2
    assert done.stdout.startswith("FAILS")
    assert done.stderr == f"tidegate: cannot write '{page}': File too large\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_under_what_is_printed_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tidegate", "schema"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "tidegate: cannot write all of it: No space left on device\n"
