"""How does a spool run as a process of its own?

The address is bound first and the logs are opened next, so that a second process on either is
refused before it has changed anything. SIGTERM and SIGINT end it in order: no new request, what is
on its way may go, all that is kept is on disk.
"""

import asyncio
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final, final

from tidegate.errors import InputError, SettingsError, missing_extra
from tidegate.runtime.clock import current
from tidegate.settings.spool import Spool as Settings
from tidegate.spooler.door.app import Door
from tidegate.spooler.door.server import configured
from tidegate.spooler.door.token import Token
from tidegate.spooler.sinks.choose import shown
from tidegate.spooler.spool import Spool

try:
    import uvicorn
except ModuleNotFoundError as error:
    raise missing_extra(error, "spool") from None

__all__ = ["bound", "serve"]

_BACKLOG: Final = 1024


def serve(spool: Settings, base: Path, announce: Callable[[str], None]) -> int:
    """Run until a signal ends it; the exit code. Raises InputError or SettingsError before that.

    `announce` is told, line by line, what runs where once it does.
    """
    host, port = _address(spool.listen)
    token = None
    if spool.door.token_file is not None:
        token = Token(base / spool.door.token_file, current().now())
    elif not _is_loopback(host):
        raise SettingsError(
            f"{spool.listen} can be reached by others: write a token_file under door, or listen on"
            " 127.0.0.1",
            path=("spool", "listen"),
        )
    listener = bound(host, port)
    with listener:
        return asyncio.run(_serve(spool, base, listener, token, announce))


async def _serve(
    settings: Settings,
    base: Path,
    listener: socket.socket,
    token: Token | None,
    announce: Callable[[str], None],
) -> int:
    async with Spool(settings, base) as spool:
        door = Door(spool, settings.door, token=token, rng=Random())
        host, port = listener.getsockname()[:2]
        server = _Server(configured(door, host, port))
        spool.died = server.end
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.end)
        announce(f"{spool.collector}: http://{host}:{port}, in {spool.directory}")
        for name, lane in settings.lanes.items():
            announce(f"  POST /v1/{name}  ->  {shown(lane.to)}")
        await server.serve(sockets=[listener])
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)  # a second one ends the wait for what lingers
    return 0


@final
class _Server(uvicorn.Server):
    """Uvicorn without its own signal handlers, which raise the signal again when it has ended."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def end(self) -> None:
        """Take no more requests, and return when those inside are answered."""
        self.should_exit = True


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 65536):
        raise SettingsError(
            f"expected an address and a port, as 127.0.0.1:8471, found {listen!r}",
            path=("spool", "listen"),
        )
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; InputError in one sentence if none can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot listen on {host}:{port}: {reason}") from None
    # An answer is written in two pieces, and asyncio sends the second at once (TCP_NODELAY) only
    # where a socket says that it is TCP's: else it waits for 40 ms, for the client's late ACK.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, listener.detach())
