"""How does one keep records on disk with each of these, as its own documentation says?

The same four things are asked of all: append a batch and return when its commit has, read from the
oldest, drop the oldest, close. `syncs` is what a commit waits for, from the documentation or the
source of each: `disk` is a sync of every commit, `system` leaves it to the operating system, which
survives a kill and no loss of power.
"""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

__all__ = ["KINDS", "Kind", "Store", "Tidegate"]


class Store(Protocol):
    """One queue on disk, open."""

    def append(self, values: list[bytes]) -> None: ...

    def read(self) -> Iterator[bytes]: ...

    def drop(self, count: int) -> None: ...

    def told(self) -> str:
        """What it says of itself to whoever asks, beside raising; empty if nothing is wrong."""
        ...

    def close(self) -> None: ...


class Kind(NamedTuple):
    name: str
    open: Callable[[Path], Store]
    syncs: Literal["disk", "system"]
    batches: bool = True  # whether one commit takes many


class Tidegate:
    """The log of a lane, as `tidegate.spool` has it on disk, without its committer's thread."""

    segment = 64 << 20  # its default

    def __init__(self, path: Path) -> None:
        from tidegate.spooler.log.log import Log
        from tidegate.spooler.log.options import LogOptions
        from tidegate.spooler.record import Record

        self._record = Record
        self._log = Log.open(path, LogOptions(segment=self.segment))

    def append(self, values: list[bytes]) -> None:
        now = self._log.now()
        record = self._record
        self._log.append([record(value, b"", now) for value in values])
        self._log.sync()

    def read(self) -> Iterator[bytes]:
        pending = self._log.pending
        number = pending[0][0] - 1 if pending else self._log.last
        while (batch := self._log.read(number)) is not None:
            yield from (record.value for record in batch.records)
            number = batch.last

    def drop(self, count: int) -> None:
        first = self._log.pending[0][0]
        self._log.delivered(first, first + count - 1)

    def told(self) -> str:
        usage = self._log.usage()
        damaged = f"{usage.damaged} damaged" if usage.damaged else ""
        return self._log.recovery.words or damaged or usage.trouble

    def close(self) -> None:
        self._log.close()


class Sqlite:
    """A table with a number and a value, in WAL mode."""

    def __init__(self, path: Path, synchronous: str) -> None:
        path.mkdir(exist_ok=True)
        self._db = sqlite3.connect(path / "queue.db", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(f"PRAGMA synchronous = {synchronous}")
        self._db.execute("CREATE TABLE IF NOT EXISTS queue (id INTEGER PRIMARY KEY, value BLOB)")

    def append(self, values: list[bytes]) -> None:
        insert = "INSERT INTO queue (value) VALUES (?)"
        with _transaction(self._db):
            self._db.executemany(insert, [(value,) for value in values])

    def read(self) -> Iterator[bytes]:
        for row in self._db.execute("SELECT value FROM queue ORDER BY id"):
            yield row[0]

    def drop(self, count: int) -> None:
        last = "SELECT id FROM queue ORDER BY id LIMIT 1 OFFSET ?"
        (upto,) = self._db.execute(last, (count - 1,)).fetchone()
        self._db.execute("DELETE FROM queue WHERE id <= ?", (upto,))

    def told(self) -> str:
        return ""

    def close(self) -> None:
        self._db.close()


class _transaction:  # noqa: N801 - reads as one
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._db.execute("COMMIT")
        if self._db.in_transaction:  # also after a commit that has failed
            self._db.execute("ROLLBACK")


class Lmdb:
    """Keys that count, in one B-tree; `sync` is its default."""

    def __init__(self, path: Path) -> None:
        import lmdb

        self._env = lmdb.open(str(path), map_size=2 << 30)
        with self._env.begin() as reading:
            cursor = reading.cursor()
            self._last = int.from_bytes(cursor.key(), "big") if cursor.last() else 0

    def append(self, values: list[bytes]) -> None:
        with self._env.begin(write=True) as writing:
            for number, value in enumerate(values, self._last + 1):
                writing.put(number.to_bytes(8, "big"), value, append=True)
        self._last += len(values)

    def read(self) -> Iterator[bytes]:
        with self._env.begin() as reading:
            yield from reading.cursor().iternext(keys=False)

    def drop(self, count: int) -> None:
        with self._env.begin(write=True) as writing:
            cursor = writing.cursor()
            cursor.first()
            for _ in range(count):
                cursor.delete()

    def told(self) -> str:
        return ""

    def close(self) -> None:
        self._env.close()


class RocksDict:
    """RocksDB with a synced log before it, and keys that count."""

    def __init__(self, path: Path) -> None:
        import rocksdict

        self._lib = rocksdict
        self._db = rocksdict.Rdict(str(path), rocksdict.Options(raw_mode=True))
        self._how = rocksdict.WriteOptions()
        self._how.sync = True
        cursor = self._db.iter()
        cursor.seek_to_last()
        self._last = int.from_bytes(cursor.key(), "big") if cursor.valid() else 0

    def append(self, values: list[bytes]) -> None:
        batch = self._lib.WriteBatch(raw_mode=True)
        for number, value in enumerate(values, self._last + 1):
            batch.put(number.to_bytes(8, "big"), value)
        self._db.write(batch, self._how)
        self._last += len(values)

    def read(self) -> Iterator[bytes]:
        yield from self._db.values()

    def drop(self, count: int) -> None:
        cursor = self._db.iter()
        cursor.seek_to_first()
        first = int.from_bytes(cursor.key(), "big")
        batch = self._lib.WriteBatch(raw_mode=True)
        batch.delete_range(first.to_bytes(8, "big"), (first + count).to_bytes(8, "big"))
        self._db.write(batch, self._how)

    def told(self) -> str:
        return ""

    def close(self) -> None:
        self._db.close()


class PersistQueueFile:
    """Its `Queue`: pickles in files of a hundred, and a small file that is renamed for each."""

    def __init__(self, path: Path) -> None:
        import persistqueue

        path.mkdir(exist_ok=True)
        self._queue = persistqueue.Queue(str(path), tempdir=str(path))

    def append(self, values: list[bytes]) -> None:
        for value in values:
            self._queue.put(value)

    def read(self) -> Iterator[bytes]:
        while self._queue.qsize():
            yield self._queue.get_nowait()

    def drop(self, count: int) -> None:
        for _ in range(count):
            self._queue.get_nowait()
        self._queue.task_done()  # writes where it stands, once

    def told(self) -> str:
        return ""

    def close(self) -> None:
        self._queue.headf.close()
        self._queue.tailf.close()


class PersistQueueSqlite:
    """Its `FIFOSQLiteQueue`, which commits each record."""

    def __init__(self, path: Path) -> None:
        import persistqueue

        self._queue = persistqueue.FIFOSQLiteQueue(str(path), auto_commit=True)

    def append(self, values: list[bytes]) -> None:
        for value in values:
            self._queue.put(value)

    def read(self) -> Iterator[bytes]:
        yield from (row["data"] for row in self._queue.queue())

    def drop(self, count: int) -> None:
        for _ in range(count):
            self._queue.get_nowait()

    def told(self) -> str:
        return ""

    def close(self) -> None:
        self._queue.close()


class DiskCache:
    """Its `Deque`, within a transaction of its own."""

    def __init__(self, path: Path) -> None:
        import diskcache

        self._deque = diskcache.Deque(directory=str(path))

    def append(self, values: list[bytes]) -> None:
        with self._deque.transact():
            self._deque.extend(values)

    def read(self) -> Iterator[bytes]:
        yield from self._deque

    def drop(self, count: int) -> None:
        with self._deque.transact():
            for _ in range(count):
                self._deque.popleft()

    def told(self) -> str:
        return ""

    def close(self) -> None:
        self._deque.cache.close()


class LiteQueue:
    """Text in a table of SQLite; `pop` and `done` are how one reads."""

    def __init__(self, path: Path) -> None:
        import litequeue

        path.mkdir(exist_ok=True)
        self._queue = litequeue.LiteQueue(path / "queue.db")

    def append(self, values: list[bytes]) -> None:
        with self._queue.transaction():
            for value in values:
                self._queue.put(value)  # SQLite stores bytes as bytes

    def read(self) -> Iterator[bytes]:
        while (message := self._queue.pop()) is not None:
            yield message.data

    def drop(self, count: int) -> None:
        for _ in range(count):
            message = self._queue.pop()
            assert message is not None
            self._queue.done(message.message_id)

    def told(self) -> str:
        return ""

    def close(self) -> None:
        self._queue.close()


def _sqlite(synchronous: str) -> Callable[[Path], Any]:
    return lambda path: Sqlite(path, synchronous)


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("tidegate", Tidegate, "disk"),
        Kind("SQLite, WAL, FULL", _sqlite("FULL"), "disk"),
        Kind("SQLite, WAL, NORMAL", _sqlite("NORMAL"), "system"),
        Kind("LMDB", Lmdb, "disk"),
        Kind("RocksDB (rocksdict)", RocksDict, "disk"),
        Kind("persist-queue, file", PersistQueueFile, "system", batches=False),
        Kind("persist-queue, SQLite", PersistQueueSqlite, "disk", batches=False),
        Kind("diskcache Deque", DiskCache, "system"),
        Kind("litequeue", LiteQueue, "system"),
    )
}
