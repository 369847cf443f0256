"""How does a program use a spool without a door?

    async with tidegate.spool("events", to="kafka://127.0.0.1:9092/events") as events:
        await events.put({"user": 7})

One lane in this process, with everything that `tidegate spool run` has but HTTP. Settings are
written as in the file, `bounds="50GB"`, `pace="gentle"`, `timeout="5s"`, and mean the same; or the
lane stands in a file and is named here.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, final

import msgspec

from tidegate.errors import SettingsError, SpoolFull, nearest
from tidegate.settings import spool as settings
from tidegate.settings.load import load, loads
from tidegate.spooler.door.keeper import Accepted, Refused
from tidegate.spooler.record import Record
from tidegate.spooler.spool import LINGER_S, Spool
from tidegate.spooler.status import LaneStatus
from tidegate.units import SECOND

__all__ = ["OpenLane", "spool"]

_encode = msgspec.json.Encoder().encode


def spool(
    name: str,
    to: str | None = None,
    *,
    file: str | Path | None = None,
    directory: str | Path = "spool",
    collector: str | None = None,
    linger: float = LINGER_S,
    **options: Any,
) -> "OpenLane":
    """A lane to put records into, used with `async with`.

    `to` is where records go, `options` are the other keys of a lane, both as in the system file;
    or `file` is a system file whose `spool:` has a lane of this name, which says all of it.
    `directory` is where logs are, `collector` who this is among its fleet (the machine's name).
    `linger` is how many seconds the end waits for records that are on their way; what is left then
    is on disk and goes the next time. Raises SettingsError for what cannot be meant.
    """
    if file is not None:
        return OpenLane(name, *_from_file(name, Path(file), to, options), linger)
    if to is None:
        raise SettingsError("expected where records go, as to='file:events.jsonl', or a file=")
    lanes = {name: {"to": to, **options}}
    what = {"directory": str(directory), "lanes": lanes}
    if collector is not None:
        what["collector"] = collector
    text = json.dumps({"tidegate": 1, "spool": what}, default=_refuse)
    found = loads(text, f"spool({name!r})").system().spool
    assert found is not None
    return OpenLane(name, found, Path(), linger)


def _from_file(
    name: str, file: Path, to: str | None, options: dict[str, Any]
) -> tuple[settings.Spool, Path]:
    if to is not None or options:
        extra = ", ".join(["to"] * (to is not None) + list(options))
        raise SettingsError(f"{file} says all of a lane; leave {extra} out, or the file")
    found = load(file).system().spool
    lanes = {} if found is None else found.lanes
    if found is None or name not in lanes:
        raise SettingsError(f"{file} has no lane {name!r}{nearest(name, tuple(lanes))}")
    return msgspec.structs.replace(found, lanes={name: lanes[name]}), file.resolve().parent


def _refuse(value: object) -> object:
    raise SettingsError(f"expected a value as in the file, as '50GB' or 3, found {value!r}")


@final
class OpenLane:
    """One lane of this process; made by `tidegate.spool`. Not for several event loops."""

    def __init__(self, name: str, spool: settings.Spool, base: Path, linger_s: float) -> None:
        self.name: Final = name
        self._spool: Final = Spool(spool, base, linger_s=linger_s)

    async def __aenter__(self) -> Self:
        """Open the log and begin to send. SpoolError if another process has it."""
        await self._spool.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go what goes within `linger`, then stop; all the rest is on disk."""
        await self._spool.__aexit__(kind, error, trace)

    async def put(self, record: object, *, key: bytes = b"") -> Accepted:
        """Keep one record, and answer when it is as durable as the lane says.

        Bytes and text are kept as they are, anything else as JSON. Raises SpoolFull when there is
        no room, with `retry_after` in seconds.
        """
        return await self.put_many([record], key=key)

    async def put_many(self, records: Iterable[object], *, key: bytes = b"") -> Accepted:
        """Keep all of these or none."""
        answer = await self._spool.accept(self.name, [Record(_bytes(one), key) for one in records])
        if isinstance(answer, Refused):
            wait = None if answer.retry_after is None else answer.retry_after / SECOND
            raise SpoolFull(answer.why, retry_after=wait)
        return answer

    def status(self) -> LaneStatus:
        """What there is to know of the lane now."""
        return self._spool.status().lanes[0]

    def hold(self, why: str) -> None:
        """Send nothing to the sink until `release`; records are still taken."""
        self._spool.hold(self.name, why)

    def release(self) -> None:
        """Go on, through the gate."""
        self._spool.release(self.name)


def _bytes(record: object) -> bytes:
    if isinstance(record, bytes | bytearray | memoryview):
        return bytes(record)
    if isinstance(record, str):
        return record.encode()
    return _encode(record)
