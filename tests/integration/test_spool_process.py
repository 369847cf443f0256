"""`tidegate spool run` as people run it: a process, its door, its signals, and kills."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ports import free_port

FILE = """\
tidegate: 1
spool:
  listen: 127.0.0.1:{port}
  collector: here
  lanes:
    events: {{to: "file:{to}"}}
"""


def tidegate(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tidegate", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def running(file: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", "spool", "run", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        while line := process.stdout.readline():
            if "POST /v1/events" in line:
                break
        else:
            raise AssertionError(process.communicate()[1])
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def post(port: int, *records: object) -> dict[str, object]:
    body = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/events",
        data=body,
        headers={"Content-Type": "application/x-ndjson"},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        assert response.status == 202
        answer: dict[str, object] = json.load(response)
        return answer


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def file(tmp_path: Path, port: int) -> Path:
    path = tmp_path / "spool.yaml"
    path.write_text(FILE.format(port=port, to=tmp_path / "out"))
    return path


def test_records_come_in_and_go_out_and_a_signal_ends_it_in_order(
    file: Path, port: int, tmp_path: Path
) -> None:
    with running(file) as process:
        answer = post(port, {"a": 1}, {"a": 2})
        assert answer == {"lane": "events", "accepted": 2, "first": 1, "durable": "disk"}
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert (tmp_path / "out").read_text() == '{"a": 1}\n{"a": 2}\n'


def test_status_hold_and_release_ask_the_running_process(file: Path, port: int) -> None:
    with running(file):
        post(port, {"a": 1})
        status = tidegate("spool", "status", str(file), "--json")
        assert json.loads(status.stdout)["lanes"][0]["accepted"] == 1
        held = tidegate("spool", "hold", str(file), "events", "--reason", "moving the broker")
        assert (held.returncode, held.stderr) == (0, "")
        assert "moving the broker" in tidegate("spool", "status", str(file)).stdout
        assert tidegate("spool", "release", str(file), "events").returncode == 0
        assert "HOLD" not in tidegate("spool", "status", str(file)).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("status", "{file}"), "nobody answers at"),
        (("hold", "{file}", "evnts", "--reason", "x"), "there is no lane 'evnts'; did you mean"),
        (("run", "{file}.gone"), "cannot read"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(words: tuple[str, ...], says: str, file: Path) -> None:
    done = tidegate("spool", *(word.format(file=file) for word in words))
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_damaged_log_is_found_repaired_and_read(file: Path, port: int, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    file.write_text(FILE.format(port=port, to=gone / "out"))
    with running(file):
        for number in range(10):
            post(port, {"n": number})
    log = tmp_path / "spool" / "events"
    assert tidegate("spool", "check", str(log)).stdout.startswith("GOOD: 10 records")
    segment = next(path for path in sorted(log.iterdir()) if b'{"n": 4}' in path.read_bytes())
    data = segment.read_bytes()
    segment.write_bytes(data.replace(b'{"n": 4}', b'{"n": 5}'))
    checked = tidegate("spool", "check", str(log))
    assert checked.returncode == 1
    assert checked.stdout.startswith("DAMAGED: 9 records")
    repaired = tidegate("spool", "repair", str(log), "--to", str(tmp_path / "new"))
    assert repaired.returncode == 1
    assert "has 9 records, 9 of them to be delivered" in repaired.stdout
    assert "damaged, 1 record\n" in repaired.stdout
    dumped = tidegate("spool", "dump", str(tmp_path / "new"), "--pending")
    numbers = [json.loads(json.loads(line)["value"])["n"] for line in dumped.stdout.splitlines()]
    assert numbers == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    again = tidegate("spool", "repair", str(log), "--to", str(tmp_path / "new"))
    assert again.returncode == 2
    assert "is not empty" in again.stderr


def test_a_second_process_is_refused_and_changes_nothing(
    file: Path, port: int, tmp_path: Path
) -> None:
    with running(file):
        second = tidegate("spool", "run", str(file))
        assert second.returncode == 2
        assert "cannot listen on 127.0.0.1" in second.stderr
        other = tmp_path / "other.yaml"
        other.write_text(FILE.format(port=free_port(), to=tmp_path / "out"))
        third = tidegate("spool", "run", str(other))
        assert third.returncode == 2
        assert "another process" in third.stderr
        post(port, {"a": 1})


def test_who_can_be_reached_by_others_needs_a_token(tmp_path: Path) -> None:
    file = tmp_path / "spool.yaml"
    file.write_text(FILE.format(port=1, to="out").replace("127.0.0.1", "0.0.0.0"))
    done = tidegate("spool", "run", str(file))
    assert done.returncode == 2
    assert "can be reached by others: write a token_file" in done.stderr


def test_what_was_acknowledged_outlives_kills(file: Path, port: int, tmp_path: Path) -> None:
    """A few kills here; the log's own test has many."""
    sent = 0
    for _ in range(4):
        with running(file) as process:
            for _ in range(20):
                post(port, {"n": sent})
                sent += 1
            os.kill(process.pid, signal.SIGKILL)
            process.wait(timeout=10)
    with running(file) as process:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
    numbers = [json.loads(line)["n"] for line in (tmp_path / "out").read_text().splitlines()]
    assert set(numbers) == set(range(sent))
    firsts = list(dict.fromkeys(numbers))
    assert firsts == sorted(firsts)
