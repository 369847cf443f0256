"""How is a NATS server reached within a bound of time, and how without a secret in an address?

`nats://HOST:PORT,HOST:PORT/SUBJECT?KEY=VALUE`. Who one is stands in a credentials file
(`?creds=FILE`, as `nsc` writes it), never in the address: addresses end in logs. TLS is used where
the server asks for it, by the authorities of the system.
"""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from tidegate.errors import SettingsError, missing_extra, nearest

try:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.errors import Error as NatsError
    from nats.errors import NoRespondersError
    from nats.js import JetStreamContext
    from nats.js import errors as js_errors
    from nats.js.kv import KeyValue
except ModuleNotFoundError as error:
    raise missing_extra(error, "nats") from None

__all__ = [
    "Address",
    "Client",
    "JetStreamContext",
    "KeyValue",
    "Lost",
    "Msg",
    "NatsError",
    "NoRespondersError",
    "connect",
    "credentials",
    "js_errors",
    "plain",
    "read_address",
    "replicas",
    "token",
]

Lost: TypeAlias = Callable[[], Awaitable[None]]

_AGAIN_S: Final = 0.25  # between two tries to connect
_PING_S: Final = 5  # a server that is silent for two of these is given up
_PORT: Final = 4222
_SERVERS_MAX: Final = 64
_REPLICAS: Final = {"1": 1, "3": 3, "5": 5}


class Address(NamedTuple):
    """Where: the servers as `host:port`, what follows the slash, and the options after `?`."""

    servers: tuple[str, ...]
    path: str
    options: dict[str, str]


def read_address(url: str, options: tuple[str, ...]) -> Address:
    """Take `nats://h1:4222,h2:4222/path?key=value` apart; only these options may stand in it.

    Raises SettingsError in one sentence, in which no part of the address is repeated that could be
    a password.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # of brackets that do not match
        parts = urlsplit("")
    if parts.scheme != "nats" or not parts.netloc:
        raise SettingsError("expected nats://HOST:PORT, with a comma between several")
    if "@" in parts.netloc:
        raise SettingsError(
            "expected no user or password in the address; name a credentials file: ?creds=FILE"
        )
    servers = tuple(_server(text) for text in parts.netloc.split(","))
    if len(servers) > _SERVERS_MAX:
        raise SettingsError(f"expected at most {_SERVERS_MAX} servers")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    for key in given:
        if key not in options:
            raise SettingsError(f"there is no option {key!r}" + nearest(key, options))
    return Address(servers, unquote(parts.path.removeprefix("/")), given)


def _server(text: str) -> str:
    parts = urlsplit(f"//{text}")
    try:
        port = parts.port or _PORT
    except ValueError:
        raise SettingsError("expected a port from 1 to 65535 behind each host") from None
    if not parts.hostname:
        raise SettingsError("expected HOST:PORT between the commas of the address")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"


def credentials(address: Address, base: Path) -> str | None:
    """The path of `?creds=FILE`, which begins at `base`; it is read at each connection.

    Raises SettingsError for one that cannot be read, now rather than when records wait.
    """
    name = address.options.get("creds")
    if name is None:
        return None
    path = base / name
    try:
        path.open().close()
    except OSError as error:
        raise SettingsError(
            f"expected a credentials file, cannot read {path}: {error.strerror}"
        ) from None
    if find_spec("nkeys") is None:
        raise missing_extra(ModuleNotFoundError(name="nkeys"), "nats")
    return str(path)


def replicas(address: Address) -> int:
    """How many copies what is made there is to have: three where there are three servers."""
    word = address.options.get("replicas", "3" if len(address.servers) >= 3 else "1")
    if word not in _REPLICAS:
        raise SettingsError("expected 1, 3 or 5 replicas; an even number bears no more losses")
    return _REPLICAS[word]


def token(text: str) -> str:
    """`text` as one token of a subject or a key: what may not stand there is written as =HEX=."""
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "_-") else f"={ord(char):x}="
        for char in text
    )


async def connect(
    servers: tuple[str, ...], creds: str | None, name: str, lost: Lost | None = None
) -> Client:
    """A connection to one of these servers, which shows there as `name`.

    With `lost`, which is awaited each time that it is lost, it comes back by itself, and the first
    time as well it is tried until this is cancelled. Without, it is tried twice, and gone when it
    is lost.
    """
    client = Client()
    try:
        await client.connect(
            servers=[f"nats://{server}" for server in servers],
            user_credentials=creds,
            name=name,
            allow_reconnect=lost is not None,
            max_reconnect_attempts=1 if lost is None else -1,
            reconnect_time_wait=_AGAIN_S,  # type: ignore[arg-type]
            ping_interval=_PING_S,
            error_cb=_silent,
            disconnected_cb=lost,
        )
    except BaseException:
        await asyncio.shield(client.close())
        raise
    return client


async def _silent(_: Exception) -> None:
    """The library would log it; whoever asks next is told."""


def plain(error: BaseException) -> str:
    """What happened, in the words of the library and nothing of what was sent."""
    if isinstance(error, js_errors.APIError) and error.description:
        return f"{error.description} ({error.err_code})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).removeprefix("nats: ") or type(error).__name__
