"""How do hosts share a budget and a hold, and what if the server between them is away?

Then nothing happens. Each host goes on with its own table, and nobody waits: a thread of one
process of the host, and of one only, speaks with the server twice a second. It writes what this
host has counted, and what the others have counted into a row of the table, where every process of
the host finds it as it finds the rows of its neighbours. When the server is away the row stays as
it is, and the thread asks again after a while that grows and is never the same on two hosts.

What other hosts say is up to a second old, so hosts may overdraw a budget for that long; it owes
the difference and repays it first.

Circuits, limits and rates are each host's own. A host whose own network fails would else take the
dependency away from all the others, which reach it.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, final

from tidegate.errors import InputError
from tidegate.runtime.clock import MONOTONIC
from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.hold import obey
from tidegate.runtime.shared.owner import Owner, this_process
from tidegate.runtime.shared.row import Row
from tidegate.runtime.shared.store import Answer, Counts, Store, StoreAwayError, open_store
from tidegate.runtime.shared.table import Table
from tidegate.units import MILLISECOND, SECOND, Duration, Instant

__all__ = ["EVERY", "VARIABLE", "OtherHosts", "host_id", "speak"]

_log: Final = logging.getLogger("tidegate")

VARIABLE: Final = "TIDEGATE_VALKEY"
"""Where the server is, as `valkey://host:port/0`; not set, hosts share nothing."""

EVERY: Final = 500 * MILLISECOND
"""How often a host asks: so a hold reaches all hosts within a second."""

_AGAIN_MAX: Final = 30 * SECOND
_WINDOW: Final = 10 * SECOND  # whoever says nothing new for so long has no recent requests
_CHECK_EVERY: Final = SECOND


class _Seen(NamedTuple):
    """What a host last said, and when it last said something new."""

    counts: Counts
    at: Instant


@final
class _Guard:
    """One guard, as this host and the others have it."""

    __slots__ = ("row", "seen", "table")

    def __init__(self, table: Table, who: Callable[[], Owner]) -> None:
        self.table = table
        self.row: Final = Row(table, t.OTHER_HOSTS, who)
        self.seen: Final[dict[str, _Seen]] = {}

    def counts(self) -> Counts:
        """What the processes of this host have counted together."""
        total = self.table.total
        return Counts(total(t.REQUESTS), total(t.DEPOSITED), total(t.RETRIED), total(t.RECENT))

    def hear(self, now: Instant, host: str, answer: Answer) -> None:
        """Write what the others have counted since they were last heard.

        Whoever is heard for the first time, or has begun anew, has counted nothing yet: what he
        did before is none of what is going on.
        """
        words, at = self.row.words, self.row.at
        recent = 0
        for other, counts in answer.hosts.items():
            if other == host:
                continue
            before = self.seen.get(other)
            if before is None or before.counts != counts:
                self.seen[other] = _Seen(counts, now)
            if before is not None and all(map(int.__ge__, counts[:3], before.counts[:3])):
                words[at + t.REQUESTS] += counts.requests - before.counts.requests
                words[at + t.DEPOSITED] += counts.deposited - before.counts.deposited
                words[at + t.RETRIED] += counts.retried - before.counts.retried
            if now - self.seen[other].at < _WINDOW:
                recent += counts.recent
        for gone in self.seen.keys() - answer.hosts.keys():
            del self.seen[gone]
        words[at + t.RECENT] = recent
        words[at + t.AT] = now


@final
class OtherHosts:
    """What one process does for its host. `step` may raise StoreAwayError; nothing is lost then."""

    __slots__ = ("_check_at", "_directory", "_guards", "_host", "_names", "_store", "_who")

    def __init__(
        self,
        directory: Path,
        store: Store,
        host: str,
        names: Callable[[], list[str]],
        *,
        who: Callable[[], Owner] = this_process,
    ) -> None:
        """`names` gives the guards of this process."""
        self._directory: Final = directory
        self._store: Final = store
        self._host: Final = host
        self._names: Final = names
        self._who: Final = who
        self._guards: Final[dict[str, _Guard]] = {}
        self._check_at: Instant = 0

    def step(self, now: Instant, wall: float) -> None:
        """Tell the others and hear them, for each guard for which we speak."""
        self._keep_up(now)
        mine = {name: g for name, g in self._guards.items() if g.row.is_ours(now)}
        if not mine:
            return
        told = {name: guard.counts() for name, guard in mine.items()}
        for name, answer in self._store.exchange(self._host, told).items():
            guard = mine[name]
            guard.hear(now, self._host, answer)
            if answer.command is not None and answer.command.number != guard.table.command:
                obey(guard.table, answer.command, answer.left, now=now, wall=wall)

    def _keep_up(self, now: Instant) -> None:
        """Have the tables of all guards, and those that others have by now."""
        if now >= self._check_at:
            self._check_at = now + _CHECK_EVERY
            for guard in self._guards.values():
                if not guard.table.is_current():
                    old, guard.table = guard.table, self._open(guard.table.name)
                    guard.row.leave(guard.table)
                    guard.seen.clear()
                    old.close()
        for name in self._names():
            if name not in self._guards:
                self._guards[name] = _Guard(self._open(name), self._who)

    def _open(self, name: str) -> Table:
        return Table.open(self._directory, name)


def host_id(directory: Path) -> str:
    """A host as no other is called: by its boot and, for the containers on it, by their memory."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    place = directory.stat()
    return f"{boot}-{place.st_dev}-{place.st_ino}"


# The thread.


@final
class _Speaker:
    """The thread of this process, and the guards that it speaks for."""

    __slots__ = ("names", "pid")

    def __init__(self) -> None:
        self.pid = 0  # of the process that has the thread: a fork has none
        self.names: list[str] = []


_speaker: Final = _Speaker()


def speak(name: str, directory: Path, url: str) -> None:
    """Share a guard with other hosts from now on. Does not wait; called under a guard's lock."""
    if _speaker.pid != os.getpid():
        _speaker.pid, _speaker.names = os.getpid(), [name]
        run = threading.Thread(
            target=_run, args=(directory, url, _speaker.names), name="tidegate", daemon=True
        )
        run.start()
    elif name not in _speaker.names:
        _speaker.names.append(name)


def _run(directory: Path, url: str, names: list[str]) -> None:
    try:
        hosts = OtherHosts(directory, open_store(url), host_id(directory), lambda: list(names))
    except (InputError, OSError) as error:
        _log.warning("nothing is shared with other hosts: %s", error)
        return
    rng, away = Random(), 0
    while True:
        MONOTONIC.sleep(pause(rng, away))
        try:
            hosts.step(MONOTONIC.now(), time.time())
        except (StoreAwayError, InputError) as error:
            if not away:
                _log.warning("other hosts are not heard, and each goes on alone: %s", error)
            away += 1
        except Exception:  # noqa: BLE001 - a thread ends in silence; this one says why
            _log.exception("nothing is shared with other hosts any more")
            return
        else:
            if away:
                _log.warning("other hosts are heard again")
            away = 0


def pause(rng: Random, away: int) -> Duration:
    """How long until the server is asked again, if it was away so many times running."""
    if not away:
        return EVERY
    longest = min(_AGAIN_MAX, EVERY << min(away, 16))
    return longest // 2 + rng.randrange(longest // 2)
