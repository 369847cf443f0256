"""Real servers on loopback: refused before the application runs, stopped when the client leaves.

Each server is a process of its own with one worker; the application tells what happened to it.
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from ports import free_port

pytestmark = pytest.mark.slow  # a process is started, and time is real

SUPPORT = Path(__file__).parents[1] / "support"
PATIENCE = 20.0
ALIVE = b"GET /_report HTTP/1.1\r\nHost: test\r\n\r\n"
ON_PORT = ["--host", "127.0.0.1", "--port", "{port}"]
BOUND = ["--bind", "127.0.0.1:{port}"]
ASGI = {
    "uvicorn": ["uvicorn", *ON_PORT, "served_apps:asgi"],
    "granian": ["granian", *ON_PORT, "--interface", "asgi", "served_apps:asgi"],
    "hypercorn": ["hypercorn", *BOUND, "served_apps:asgi"],
    "gunicorn": ["gunicorn", *BOUND, "-k", "asgi", "served_apps:asgi"],
}
THREADS = ["--blocking-threads", "4"]
WSGI = {
    "gunicorn": ["gunicorn", *BOUND, "-k", "gthread", "--threads", "4", "served_apps:wsgi"],
    "granian": ["granian", *ON_PORT, "--interface", "wsgi", *THREADS, "served_apps:wsgi"],
}


class Served:
    """A server process, as its clients see it."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, named, answer.read()
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def say(self, connection: socket.socket) -> bytes:
        """Ask for what is exempt, and leave the connection open."""
        connection.sendall(ALIVE)
        return connection.recv(4096)

    def served_and_idle(self) -> socket.socket:
        """A connection that has been answered; the server may take a while to forget the last."""
        end = time.monotonic() + PATIENCE
        while True:
            connection = self.connect()
            if self.say(connection).startswith(b"HTTP/1.1 200"):
                return connection
            connection.close()
            assert time.monotonic() < end

    def hold(self) -> socket.socket:
        """Send a request that is held, and leave its connection open."""
        held = self.connect()
        held.sendall(b"GET /hold HTTP/1.1\r\nHost: test\r\n\r\n")
        self.until(lambda report: report["inside"] == 1)
        return held

    def until(self, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The report once it says so."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            report: dict[str, Any] = json.loads(self.ask("/_report")[2])
            if true(report):
                return report
            time.sleep(0.01)
        raise AssertionError(f"it never came to that: {report}")


@contextmanager
def served(command: list[str]) -> Iterator[Served]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", *(word.format(port=port) for word in command)],
        env=os.environ | {"PYTHONPATH": str(SUPPORT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        server = Served(port)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                server.ask("/_report")
                break
            except OSError:
                if time.monotonic() > end or process.poll() is not None:
                    process.kill()
                    said = process.communicate(timeout=PATIENCE)[0]
                    raise AssertionError(f"it does not serve: {said.decode()[-2000:]}") from None
                time.sleep(0.02)
        yield server
    finally:
        process.terminate()
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the group is this process and its workers
            process.communicate(timeout=PATIENCE)


def is_refused_before_the_application_runs(server: Served) -> None:
    held = server.hold()
    try:
        for method, body in (("GET", None), ("HEAD", None), ("POST", b"x" * 300_000)):
            status, headers, said = server.ask("/second", method, body)
            assert status == 503
            assert 1 <= int(headers["retry-after"]) <= 4
            assert bool(said) == (method != "HEAD")
        report = server.until(lambda report: report["refused"] == {"limit": 3})
        assert report["called"] == ["/hold"]
        assert server.ask("/_release")[0] == 200  # what is exempt comes in all the same
        held.settimeout(PATIENCE)
        assert held.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        held.close()
    server.until(lambda report: report["inside"] == 0)
    assert server.ask("/after", "POST", b"x" * 300_000)[0] == 200


@pytest.mark.parametrize("name", ASGI)
def test_an_asgi_server(name: str) -> None:
    with served(ASGI[name]) as server:
        is_refused_before_the_application_runs(server)

        server.hold().close()  # the client leaves
        report = server.until(lambda report: report["inside"] == 0)
        assert report["cancelled"] == 1
        assert report["called"] == ["/hold", "/after", "/hold"]

        status, headers, _ = server.ask("/hold", Tidegate_Remaining_Ms="200")
        assert status == 504
        assert "retry-after" not in headers
        assert server.until(lambda report: True)["cancelled"] == 2
        assert server.ask("/hold", Tidegate_Remaining_Ms="0")[0] == 504
        report = server.until(lambda report: True)
        assert report["called"] == ["/hold", "/after", "/hold", "/hold"]
        assert server.ask("/last")[0] == 200


@pytest.mark.parametrize("name", WSGI)
def test_a_wsgi_server(name: str) -> None:
    with served(WSGI[name]) as server:
        is_refused_before_the_application_runs(server)
        assert server.ask("/late", Tidegate_Remaining_Ms="0")[0] == 504
        assert server.until(lambda report: True)["called"] == ["/hold", "/after"]


def test_uvicorn_s_own_limit_counts_who_says_nothing() -> None:
    """Why the docs say to leave it off: one idle connection, and the next request is refused."""
    command = [*ASGI["uvicorn"], "--limit-concurrency", "2"]
    with served(command) as server, closing(server.served_and_idle()):
        with closing(server.connect()) as second:
            refused = server.say(second)
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"retry-after" not in refused.lower()


def test_granian_s_own_limit_lets_an_idle_connection_keep_everybody_out() -> None:
    """Why the docs say to set it above the connections that a proxy keeps open."""
    command = [*ASGI["granian"], "--backpressure", "1"]
    with (
        served(command) as server,
        closing(server.served_and_idle()) as idle,
        closing(server.connect()) as second,
    ):
        second.sendall(ALIVE)
        second.settimeout(0.5)
        with pytest.raises(TimeoutError):
            second.recv(1)
        idle.close()
        second.settimeout(PATIENCE)
        assert second.recv(100).startswith(b"HTTP/1.1 200")
