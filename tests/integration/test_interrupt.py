"""What people do to a check that takes long: watch it, stop it, kill what it started.

Everything that a check starts holds its terminal, so to read that to its end is to wait for the
last of them; a process left behind would make the test hang, not fail by chance.
"""

import json
import os
import pty
import resource
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

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


class Watched:
    """A check in a group of its own, as a shell starts it, with a terminal to tell its progress."""

    def __init__(self, *arguments: str) -> None:
        self.printed = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by __exit__
        self.terminal, end = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tidegate", "check", *arguments],
            stdout=self.printed,
            stderr=end,
            start_new_session=True,
        )
        os.close(end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.terminal)
        self.printed.close()

    def wait_for(self, word: str) -> None:
        """Until the terminal shows `word`."""
        shown = ""
        while word not in shown:
            shown += os.read(self.terminal, 1000).decode()

    def end(self) -> tuple[str, str, int]:
        """All that was printed, all that is still shown until nobody can write, the exit code."""
        shown = ""
        with suppress(OSError):  # how Linux says that the other end is closed
            while piece := os.read(self.terminal, 1000).decode():
                shown += piece
        code = self.process.wait()
        self.printed.seek(0)
        return self.printed.read(), shown, code

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [
            int(child)
            for child in children.split()
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
        ]


def test_control_c_tells_what_is_known_and_leaves_nothing_running(system: Path) -> None:
    with Watched(str(system), "--json", "--processes", "2") as check:
        check.wait_for("endless: 0 of 4")
        os.killpg(check.process.pid, signal.SIGINT)
        printed, shown, code = check.end()
    report = json.loads(printed)
    assert report["interrupted"] is True
    assert [t["trigger"] for t in report["triggers"]] == ["short"]
    assert (report["verdict"], report["exit_code"]) == ("fails", 1)
    assert code == 1  # a finding stays one
    assert shown.endswith(WIPED)  # and no traceback of a worker stands below it


def test_control_c_before_anything_is_found_exits_with_130(tmp_path: Path) -> None:
    path = tmp_path / "calm.yaml"
    path.write_text(LONG.replace("short: {", "first: {").replace("10s}", "20h}"))
    with Watched(str(path), "--processes", "2") as check:
        check.wait_for("first: 0 of 4")
        os.killpg(check.process.pid, signal.SIGINT)
        printed, _, code = check.end()
    assert code == 130
    assert "INTERRUPTED" in printed
    assert printed.startswith("NOT JUDGED")
    assert "stopped before any trigger was tried to its end" in printed


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc for the workers")
def test_a_killed_worker_is_one_sentence(system: Path) -> None:
    with Watched(str(system), "--processes", "2") as check:
        check.wait_for("endless: 0 of 4")
        os.kill(check.workers()[0], signal.SIGKILL)
        printed, shown, code = check.end()
    assert (code, printed) == (3, "")
    left = shown.rpartition(WIPED)[2]
    assert left.count("\n") == 1
    assert left.startswith("tidegate: a process at work on endless was ended from outside")


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
