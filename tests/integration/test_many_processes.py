"""Real processes on one host: started, forked, stopped, killed and replaced in a storm.

Each writes an `r` for every request it begins and an `a` for every attempt that is sent, one write
each, so that nothing is lost with a process that is killed.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.table import Table

if sys.platform != "linux":
    pytest.skip("processes share state on Linux only", allow_module_level=True)

NAME = "licences"
WAIT = 60  # seconds until a test gives up: no test is decided by it

STORM = """
import os, sys, tidegate

def call():
    os.write(1, b"a")
    raise ConnectionError

guarded = tidegate.guard("licences", attempts=3, backoff=None, breaker=None)(call)

def storm(requests):
    for _ in range(requests):
        os.write(1, b"r")
        try:
            guarded()
        except ConnectionError:
            pass
"""
ON_A_WORD = STORM + "sys.stdin.read(1)\nstorm(int(sys.argv[1]))\n"
FOR_EVER = STORM + "while True: storm(1)\n"
PRELOADED = """
if sys.argv[2] == "used":
    storm(100)
children = []
for _ in range(int(sys.argv[3])):
    pid = os.fork()
    if not pid:
        storm(int(sys.argv[1]))
        os._exit(0)
    children.append(pid)
storm(int(sys.argv[1]))
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
assert not any(codes), codes
"""
LIMITED = """
import os, sys, time, tidegate

def call():
    os.write(1, b"+")
    time.sleep(0.0005)
    os.write(1, b"-")

guarded = tidegate.guard("licences", limit=3, attempts=1, breaker=None)(call)
for _ in range(4):
    if not os.fork():
        break
for _ in range(400):
    try:
        guarded()
    except tidegate.LimitExceeded:
        time.sleep(0.0002)
os._exit(0)
"""
PROBING = """
import sys, time, tidegate
from tidegate.settings.policies import Breaker

SECOND = 10**9
breaker = Breaker(volume=1, open_for=SECOND // 10, probes=1, lease=3600 * SECOND)
guard = tidegate.guard("licences", attempts=1, timeout=None, breaker=breaker)

def until_let_in(function):
    while True:
        try:
            return guard.call(function)
        except (tidegate.CircuitOpen, ConnectionError):
            time.sleep(0.01)

def fail():
    raise ConnectionError

def hang():
    print("probing", flush=True)
    time.sleep(3600)
"""
OBEYING = """
import sys, time, tidegate
guarded = tidegate.guard("licences")(lambda: None)
guarded()
print("calls", flush=True)
for word, wanted in (("held", True), ("calls", False)):
    while True:
        try:
            guarded()
            held = False
        except tidegate.Held as error:
            held = True
            assert "being moved" in str(error), error
        except tidegate.CircuitOpen:
            held = None  # it comes back by probes
        if held is wanted:
            print(word, flush=True)
            break
        time.sleep(0.01)
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "state"


@contextmanager
def started(base: Path, script: str, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TIDEGATE_STATE_DIR": str(base)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def counted(*processes: "subprocess.Popen[bytes]") -> tuple[int, int]:
    """Let all of them begin together; how many requests and attempts they made."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"!")
        process.stdin.flush()
    outs = [process.communicate(timeout=WAIT)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return sum(out.count(b"r") for out in outs), sum(out.count(b"a") for out in outs)


def table(base: Path) -> Table:
    return Table.open(base, NAME, create=False)


@pytest.mark.slow  # four interpreters start: a second
def test_four_workers_in_a_storm_make_one_budget_of_retries(base: Path) -> None:
    with (
        started(base, ON_A_WORD, "500") as one,
        started(base, ON_A_WORD, "500") as two,
        started(base, ON_A_WORD, "500") as three,
        started(base, ON_A_WORD, "500") as four,
    ):
        requests, attempts = counted(one, two, three, four)
    assert requests == 2_000
    assert 1.05 * requests <= attempts <= 1.1 * requests + 1
    assert sum(table(base).column(t.RETRIED)) == attempts - requests


@pytest.mark.slow  # interpreters start
@pytest.mark.parametrize("before", ["used", "unused"])
def test_forks_of_a_preloaded_process_have_one_budget_with_it(base: Path, before: str) -> None:
    with started(base, STORM + PRELOADED, "300", before, "4") as process:
        requests, attempts = counted(process)
    assert requests == 1_500 + 100 * (before == "used")
    assert 1.05 * requests <= attempts <= 1.1 * requests + 1
    assert table(base).used <= 5


@pytest.mark.slow  # an interpreter starts, and twenty forks of it
def test_twenty_processes_with_one_request_each_have_one_first_token(base: Path) -> None:
    with started(base, STORM + PRELOADED, "1", "unused", "20") as process:
        requests, attempts = counted(process)
    assert requests == 21
    assert requests + 1 <= attempts <= requests + 3  # 1 + 10 % of 21


@pytest.mark.slow  # interpreters start, one after another
def test_workers_that_are_killed_and_replaced_bring_no_tokens(base: Path) -> None:
    requests = attempts = 0
    for _ in range(4):
        with started(base, FOR_EVER) as process:
            assert process.stdout is not None
            out = process.stdout.read(100)
            process.kill()
            out += process.stdout.read()
        requests, attempts = requests + out.count(b"r"), attempts + out.count(b"a")
    with started(base, ON_A_WORD, "50") as survivor:
        more, tried = counted(survivor)
    requests, attempts = requests + more, attempts + tried
    assert requests < attempts <= 1.1 * requests + 1
    assert table(base).used == 1  # each took over the row of the dead


@pytest.mark.slow  # interpreters start
def test_what_a_short_process_has_counted_is_there_when_it_has_ended(base: Path) -> None:
    """Else a host of short processes would earn no retry, however often all goes well."""
    script = "import tidegate\nguarded = tidegate.guard('licences')(lambda: None)\n"
    for _ in range(2):
        with started(base, script + "for _ in range(20): guarded()") as process:
            process.communicate(timeout=WAIT)
    assert sum(table(base).column(t.REQUESTS)) == 40
    assert table(base).owner(0) is None


@pytest.mark.slow  # interpreters start
def test_a_worker_that_is_stopped_holds_nobody_up(base: Path) -> None:
    with started(base, FOR_EVER) as stopped:
        assert stopped.stdout is not None
        assert stopped.stdout.read(10)
        stopped.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, stopped.pid, os.WSTOPPED)
        with started(base, ON_A_WORD, "200") as other:
            requests, attempts = counted(other)
    assert requests == 200
    assert attempts > requests


@pytest.mark.slow  # five processes make 2,000 calls: a second
def test_five_processes_never_have_more_in_flight_than_one_limit(base: Path) -> None:
    """The marks of all calls come out of one pipe, in the order in which they were made."""
    with started(base, LIMITED) as process:
        out, _ = process.communicate(timeout=WAIT)
    inflight = most = 0
    for mark in out.decode():
        inflight += 1 if mark == "+" else -1
        most = max(most, inflight)
    assert inflight == 0
    assert 1 < most <= 3


@pytest.mark.slow  # interpreters start
def test_a_killed_process_takes_its_probe_along_and_the_circuit_comes_back(base: Path) -> None:
    """Its lease has an hour to go."""
    opening = "try: guard.call(fail)\nexcept ConnectionError: pass\n"
    with started(base, PROBING + opening + "until_let_in(hang)") as prober:
        assert prober.stdout is not None
        assert prober.stdout.readline() == b"probing\n"
        refused = "try: guard.call(fail)\nexcept tidegate.CircuitOpen: print('no', flush=True)\n"
        again = "until_let_in(lambda: print('back', flush=True))"
        with started(base, PROBING + refused + again) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"no\n"
            prober.kill()
            assert other.stdout.readline() == b"back\n"


@pytest.mark.slow  # interpreters start, two commands among them
def test_a_hold_reaches_every_worker_and_a_release_too(base: Path) -> None:
    with started(base, OBEYING) as one, started(base, OBEYING) as two:
        for word, command in (
            (b"calls\n", None),
            (b"held\n", ("hold", NAME, "--reason", "being moved")),
            (b"calls\n", ("release", NAME)),
        ):
            if command is not None:
                subprocess.run(
                    [sys.executable, "-m", "tidegate", *command],
                    env=os.environ | {"TIDEGATE_STATE_DIR": str(base)},
                    check=True,
                    capture_output=True,
                    timeout=WAIT,
                )
            for process in (one, two):
                assert process.stdout is not None
                assert process.stdout.readline() == word
        assert one.wait(WAIT) == two.wait(WAIT) == 0


@pytest.mark.slow  # an interpreter starts
def test_a_hold_before_the_first_process_is_obeyed_by_it(base: Path) -> None:
    from tidegate.runtime.shared.hold import hold

    now, wall = time.monotonic_ns(), time.time()
    hold(base, NAME, reason="early", author="ada", duration=None, now=now, wall=wall)
    script = STORM + "try:\n    guarded()\nexcept tidegate.Held as error:\n    print(error)\n"
    with started(base, script) as process:
        out, _ = process.communicate(timeout=WAIT)
    assert out == b"licences: not called, it is held open by ada: early\n"
