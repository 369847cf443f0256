"""How is a service started as a process of its own, and how does none of it stay behind?

The process holds our end of a pipe as its standard input and ends when that closes, so it ends with
us, however we end: by return, by error, by Ctrl-C or killed. It is in a session of its own, so that
Ctrl-C reaches us alone, and we end it. It is ready when it has said its port.
"""

import subprocess
import sys
from contextlib import suppress
from http.client import HTTPConnection
from threading import Timer
from types import TracebackType
from typing import Final, Self, final

import msgspec

from tidegate.errors import WorkerLost
from tidegate.lab.service import Orders, Slowdown, playable
from tidegate.lab.workers import Counts
from tidegate.units import Instant

__all__ = ["ServiceProcess"]

_READY_WITHIN: Final = 30.0  # seconds: a guard against waiting for ever, not a measure
_GONE_WITHIN: Final = 10.0
_TOLD_WITHIN: Final = 10.0


@final
class ServiceProcess:
    """One service, which runs from entering the context to leaving it.

    A SettingsError says what it cannot be, a WorkerLost that its process is not there.

    `url` is its address. `slow` and `counts` block for the few milliseconds of a request on the
    loopback: plan before the load comes, and ask when it has gone.
    """

    def __init__(self, orders: Orders) -> None:
        playable("service", orders.service)
        self._orders: Final = orders
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            (sys.executable, "-m", "tidegate.lab.service"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self._port = self._started(self._process)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self._port}/"

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process is not None
        return self._process.pid

    def slow(self, factor: float, at: Instant) -> None:
        """From the instant `at` of the monotonic clock on, work takes `factor` times as long."""
        self._ask("POST", msgspec.json.encode(Slowdown(at=at, factor=factor)))

    def counts(self) -> Counts:
        """What it has seen so far."""
        return msgspec.json.decode(self._ask("GET"), type=Counts)

    def _ask(self, method: str, body: bytes | None = None) -> bytes:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=_TOLD_WITHIN)
        try:
            connection.request(method, "/control", body)
            answer = connection.getresponse()
            told = answer.read()
        except OSError as error:
            raise WorkerLost(f"the service's process does not answer: {error}") from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise WorkerLost(f"the service's process refused an order: {told.decode()}")
        return told

    def _started(self, process: subprocess.Popen[bytes]) -> int:
        """Hand over the orders, and learn the port."""
        assert process.stdin is not None
        assert process.stdout is not None
        late = Timer(_READY_WITHIN, process.kill)
        late.start()
        try:
            process.stdin.write(msgspec.json.encode(self._orders) + b"\n")
            process.stdin.flush()
            said = process.stdout.readline().strip()
        except BrokenPipeError:
            said = b""
        finally:
            late.cancel()
        if not said.isdigit():
            raise WorkerLost("the service's process ended before it was ready")
        return int(said)

    def _end(self) -> None:
        """Let go of it and see it end; one that does not is killed."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        late = Timer(_GONE_WITHIN, process.kill)
        late.start()
        try:
            with suppress(BrokenPipeError):  # it may have gone with its orders unread
                process.stdin.close()
            process.wait()
        except BaseException:  # a second Ctrl-C: do not wait for it any longer
            process.kill()
            process.wait()
            raise
        finally:
            late.cancel()
            process.stdout.close()
