"""A service as a process: it is what it was ordered to be, and it never stays behind.

That a process has gone is seen by the end of its output, which it alone holds open.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tidegate.errors import WorkerLost
from tidegate.lab.process import ServiceProcess
from tidegate.lab.service import Orders
from tidegate.loadgen.client import Http
from tidegate.settings.policies import Queue
from tidegate.settings.system import Service, Time
from tidegate.units import MILLISECOND

pytestmark = pytest.mark.slow  # a process is started, and time is real

SERVICE = Service(workers=1, time=Time(constant=30 * MILLISECOND), queue=Queue(limit=1))
HOLDING = """\
import sys, time
from tidegate.lab.process import ServiceProcess
from tidegate.lab.service import Orders
from tidegate.settings.system import Service, Time
with ServiceProcess(Orders(service=Service(workers=1, time=Time(constant=1)))) as process:
    print(process.pid, process.url, flush=True)
    time.sleep(600)
"""


def ask(url: str, count: int) -> list[str]:
    async def all_at_once() -> list[str]:
        async with Http(url) as http:
            outcomes = await asyncio.gather(*(http(1) for _ in range(count)))
        return sorted(outcome.name for outcome in outcomes)

    return asyncio.run(all_at_once())


def test_it_serves_refuses_counts_and_slows_down() -> None:
    with ServiceProcess(Orders(service=SERVICE)) as process:
        assert ask(process.url, 3) == ["OVERLOADED", "SUCCESS", "SUCCESS"]
        process.slow(10, at=time.monotonic_ns())
        begun = time.monotonic_ns()
        assert ask(process.url, 1) == ["SUCCESS"]
        assert time.monotonic_ns() - begun >= 300 * MILLISECOND  # it can take longer, never less
        counts = process.counts()
        assert (counts.arrived, counts.served, counts.refused) == (4, 3, 1)
        assert (counts.busy, counts.waiting, counts.late) == (0, 0, 0)
        url = process.url
    with pytest.raises(URLError):
        urlopen(url)
    assert ask(url, 1) == ["FAILURE"]


def test_it_sees_that_a_caller_has_gone_and_works_on() -> None:
    async def impatient(url: str) -> None:
        async with Http(url, reconnect=True) as http:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await http(1)
            assert (await http(2)).name == "SUCCESS"  # behind the one that nobody waits for

    with ServiceProcess(Orders(service=SERVICE)) as process:
        asyncio.run(impatient(process.url))
        assert (process.counts().served, process.counts().late) == (2, 1)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_whoever_started_it(how: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        pid, url = holder.stdout.readline().split()
        assert ask(url, 1) == ["SUCCESS"]
        holder.send_signal(how)
        holder.wait()
        gone(int(pid))


def gone(pid: int) -> None:
    """Wait until it has: it reads its closed input at once. The bound only keeps this from ever
    waiting for good.
    """
    for _ in range(1500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":  # ended; its new parent has only not looked yet
            return
        time.sleep(0.02)
    pytest.fail("the service's process is still there")


def test_an_error_of_ours_ends_it_too() -> None:
    pids = []

    def fail() -> None:
        with ServiceProcess(Orders(service=SERVICE)) as process:
            pids.append(process.pid)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_process_that_never_comes_up_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with (
        pytest.raises(WorkerLost, match="ended before it was ready"),
        ServiceProcess(Orders(service=SERVICE)),
    ):
        pytest.fail("nothing can have answered")


def test_a_process_that_has_died_is_one_sentence() -> None:
    with ServiceProcess(Orders(service=SERVICE)) as process:
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(WorkerLost, match="does not answer"):
            process.counts()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc for the service")
def test_control_c_ends_a_storm_and_leaves_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tidegate", "lab", "storm", "--seconds", "5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        start_new_session=True,
    ) as command:
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
        while not (started := children.read_text().split()):
            assert command.poll() is None
            time.sleep(0.05)
        time.sleep(1)  # into the load; wherever it is, the answer must be the same
        os.killpg(command.pid, signal.SIGINT)
        printed, told = command.communicate()
    assert (command.returncode, printed, told) == (130, "", "tidegate: interrupted\n")
    gone(int(started[0]))
    assert list(tmp_path.iterdir()) == []
