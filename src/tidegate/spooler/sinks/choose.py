"""Which sink is meant by `to:`?

The scheme says it. A sink's library is imported only when a lane wants it, and one that is missing
is named with the extra that brings it.
"""

from pathlib import Path
from urllib.parse import quote, urlsplit

from tidegate.errors import SettingsError, nearest
from tidegate.settings.spool import Lane
from tidegate.spooler.sinks.sink import Sink

__all__ = ["SCHEMES", "open_sink", "shown"]

SCHEMES = ("kafka", "nats", "http", "https", "spool", "file")


def open_sink(lane: Lane, *, sender: str, log: int, purpose: str, base: Path) -> Sink:
    """The sink of a lane. `purpose` is `live` or `replay`, by which the far side tells them apart.

    `sender` names collector and lane; with the identity of the `log` it begins the records' ids. A
    log that is begun anew counts from one again, and a sink that takes out what comes twice would
    take out its first records. Paths are relative to `base`. Raises `SettingsError` for an address
    that cannot be meant.
    """
    scheme, _, rest = lane.to.partition(":")
    agent = f"tidegate-{purpose}-{sender.rpartition('/')[2]}"  # one for a fleet: a quota caps all
    sender = f"{sender}/{log:016x}"
    match scheme:
        case "file":
            from tidegate.spooler.sinks.file import FileSink

            return FileSink(base / rest.removeprefix("//"))
        case "kafka":
            from tidegate.spooler.sinks.kafka import KafkaSink

            return KafkaSink(lane.to, sender=sender, agent=agent, base=base)
        case "nats":
            from tidegate.spooler.sinks.nats import NatsSink

            return NatsSink(lane.to, sender=sender, agent=agent, base=base)
        case "http" | "https" | "spool":
            return _over_http(lane, scheme, sender, agent, base)
    raise SettingsError(
        f"expected an address, as {', '.join(f'{name}:' for name in SCHEMES)},"
        f" found {shown(lane.to)!r}{nearest(scheme, SCHEMES)}",
        path=("to",),
    )


def _over_http(lane: Lane, scheme: str, sender: str, agent: str, base: Path) -> Sink:
    from tidegate.spooler.sinks.http import HttpSink

    try:
        parts = urlsplit(lane.to)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise SettingsError(f"cannot read {shown(lane.to)!r}: {error}", path=("to",)) from None
    if not host or "@" in parts.netloc:
        what = "a host" if not host else "no password in it (write it into a token_file)"
        raise SettingsError(f"expected {what}, found {shown(lane.to)!r}", path=("to",))
    token = None if lane.token_file is None else base / lane.token_file
    if scheme != "spool":
        return HttpSink(lane.to, sender=sender, agent=agent, token_file=token)
    name = parts.path.strip("/")
    if not name or "/" in name:
        raise SettingsError(
            f"expected the lane of another spool, as spool://HOST:8471/events, found"
            f" {shown(lane.to)!r}",
            path=("to",),
        )
    door = f"http://{parts.netloc}"
    return HttpSink(
        f"{door}/v1/{quote(name)}",
        sender=sender,
        agent=agent,
        token_file=token,
        raw=True,
        health=f"{door}/readyz/{quote(name)}",
    )


def shown(to: str) -> str:
    """An address as it may be shown: without user, password or parameters."""
    scheme, separator, rest = to.partition("://")
    if not separator:
        return to
    address, slash, path = rest.partition("/")
    return f"{scheme}://{address.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
