"""How does a fleet keep its leases in PostgreSQL?

Each record is a row; it is replaced by an UPDATE that names the version it had, so a lease needs
neither a transaction that stays open nor an advisory lock. Such a lock would be held by a session:
a collector that hangs keeps it for as long as its connection lives, without an end.

`postgresql://USER@HOST:PORT/DATABASE`, as libpq reads it; a password is better kept in a password
file (`?passfile=FILE` or ~/.pgpass). The tables `tidegate_records` and `tidegate_words` and the
sequence `tidegate_versions` are made when they are missing.
"""

import asyncio
from typing import Any, Final, final

from tidegate.errors import SettingsError, missing_extra
from tidegate.spooler.coordinators.coordinator import CoordinatorLost
from tidegate.spooler.coordinators.store import Entry
from tidegate.units import MILLISECOND, Duration

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ModuleNotFoundError as error:
    raise missing_extra(error, "postgres") from None

__all__ = ["PostgresStore"]

_Connection = psycopg.AsyncConnection[tuple[Any, ...]]

# The server gives a question up when its asker has, and either side a connection that is dead.
_LIMITS: Final[dict[str, Any]] = {
    "connect_timeout": 2,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
    "application_name": "tidegate turns",
    "options": "-c statement_timeout=2000 -c lock_timeout=2000",
}
_THERE: Final = "SELECT to_regclass('tidegate_words') IS NOT NULL"
_MAKE: Final = """
SELECT pg_advisory_xact_lock(7239178801623);
CREATE SEQUENCE IF NOT EXISTS tidegate_versions;
CREATE TABLE IF NOT EXISTS tidegate_records (
    fleet text, key text, value bytea NOT NULL, version bigint NOT NULL, PRIMARY KEY (fleet, key)
);
CREATE TABLE IF NOT EXISTS tidegate_words (
    fleet text, who text, value bytea NOT NULL, until timestamptz NOT NULL, PRIMARY KEY (fleet, who)
)
"""
_READ: Final = "SELECT value, version FROM tidegate_records WHERE fleet = %s AND key = %s"
_INSERT: Final = """
INSERT INTO tidegate_records (value, version, fleet, key)
VALUES (%s, nextval('tidegate_versions'), %s, %s) ON CONFLICT DO NOTHING RETURNING version
"""
_UPDATE: Final = """
UPDATE tidegate_records SET value = %s, version = nextval('tidegate_versions')
WHERE fleet = %s AND key = %s AND version = %s RETURNING version
"""
_SAY: Final = """
INSERT INTO tidegate_words (fleet, who, value, until)
VALUES (%s, %s, %s, clock_timestamp() + %s * interval '1 ms')
ON CONFLICT (fleet, who) DO UPDATE SET value = excluded.value, until = excluded.until
"""
_FORGET: Final = "DELETE FROM tidegate_words WHERE fleet = %s AND until < clock_timestamp()"
_SAID: Final = """
SELECT value FROM tidegate_words WHERE fleet = %s AND until >= clock_timestamp() LIMIT 10000
"""
_CANCELS: Final = 4
_CANCEL_S: Final = 0.05
_KNOWN: Final = ("Connection refused", "authentication failed", "does not exist", "timeout expired")


@final
class PostgresStore:
    """The records of one fleet in a PostgreSQL, by one connection."""

    __slots__ = ("_connection", "_fleet", "_url", "where")

    def __init__(self, url: str, fleet: str) -> None:
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError:  # which would quote the address, and with it a password
            raise SettingsError("expected postgresql://USER@HOST:PORT/DATABASE") from None
        self.where = f"PostgreSQL at {parts.get('host', 'localhost')}:{parts.get('port', 5432)}"
        self._url: Final = url
        self._fleet: Final = fleet
        self._connection: _Connection | None = None

    async def read(self, key: str) -> Entry | None:
        """The record under this key."""
        rows = await self._ask(_READ, self._fleet, key)
        return Entry(*rows[0]) if rows else None

    async def write(self, key: str, value: bytes, version: int) -> int | None:
        """Replace the record of this version (0: there must be none)."""
        if version:
            rows = await self._ask(_UPDATE, value, self._fleet, key, version)
        else:
            rows = await self._ask(_INSERT, value, self._fleet, key)
        return rows[0][0] if rows else None

    async def say(self, who: str, value: bytes, kept: Duration) -> None:
        """Keep it, and take off what has ended."""
        await self._ask(_SAY, self._fleet, who, value, kept // MILLISECOND)
        await self._ask(_FORGET, self._fleet)

    async def said(self) -> list[bytes]:
        """What has not ended."""
        return [value for (value,) in await self._ask(_SAID, self._fleet)]

    async def close(self) -> None:
        """Give up the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _ask(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        task = asyncio.create_task(self._answer(question, values))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._connection = None
            await _end(task)
            raise
        except (psycopg.Error, OSError) as error:
            await self.close()
            raise CoordinatorLost(f"{self.where}: {_plain(error)}") from None

    async def _answer(self, question: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            self._connection = await self._connect()
        cursor = await self._connection.execute(question.encode(), values)
        return await cursor.fetchall() if cursor.description else []

    async def _connect(self) -> _Connection:
        # A prepared statement would not outlive its turn at a pooler that stands in between.
        connection = await psycopg.AsyncConnection.connect(
            self._url, autocommit=True, prepare_threshold=None, **_LIMITS
        )
        there = await (await connection.execute(_THERE)).fetchone()
        if there != (True,):
            async with connection.transaction():  # one at a time: making is not safe beside making
                await connection.execute(_MAKE)
        return connection


async def _end(task: "asyncio.Task[Any]") -> None:
    """End a question that nobody waits for.

    Cancelled once, the library asks the server to give it up and waits for that, up to ten
    seconds if the server is silent; cancelled again it drops the connection.
    """
    for _ in range(_CANCELS):
        task.cancel()
        done, _pending = await asyncio.wait({task}, timeout=_CANCEL_S)
        if done:
            break


def _plain(error: Exception) -> str:
    """What went wrong, in few words and without the address, in which a password may stand."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary
    text = str(error)
    return next((words for words in _KNOWN if words in text), type(error).__name__)
