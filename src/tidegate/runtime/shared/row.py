"""Which row of the table is this process's, and who among the others still lives?

A row is claimed at the first need and kept until death. It can be lost: the file may be replaced,
a fork has its parent's memory but not its row, and a process in another container may be thought
dead. So before it is written to, a row is seen to be ours, and if it is not, another is claimed.
"""

import os
from collections.abc import Callable, Iterator
from typing import Final, final

from tidegate.runtime.shared import table as t
from tidegate.runtime.shared.owner import Owner, is_alive, this_process
from tidegate.runtime.shared.table import Table
from tidegate.units import MILLISECOND, SECOND, Duration, Instant

__all__ = ["FRESH", "Row"]

FRESH: Final = 200 * MILLISECOND
"""What a row says is as good as of now, if it was written within two looks."""

_AGAIN_BUSY: Final = SECOND  # whoever claims is stopped: a claim takes a tenth of a millisecond
_AGAIN_FULL: Final = 10 * SECOND  # to see that 256 owners live takes 4 ms
_STRANGER_LOST: Final = 60 * SECOND  # of a process whose number means nothing to us


@final
class Row:
    """Our row. It begins at `at` in `words`; 0, which is in the head, means that we have none.

    `claims` counts the rows that we have had: another number, and what we have counted since our
    start has another place. `busy` says that others were claiming just now.
    """

    __slots__ = (
        "_again",
        "_kind",
        "_owner",
        "_pid",
        "_suspect",
        "_who",
        "at",
        "busy",
        "claims",
        "table",
        "words",
    )

    def __init__(
        self, table: Table, kind: int = t.PROCESS, who: Callable[[], Owner] = this_process
    ) -> None:
        self.table = table
        self.words = table.words
        self.at = 0
        self.claims = 0
        self.busy = False
        self._kind: Final = kind
        self._who: Final = who
        self._owner: Owner | None = None
        self._pid = 0
        self._again: Instant = 0
        self._suspect = 0

    def is_ours(self, now: Instant) -> bool:
        """Whether there is a row to write to; claims one if it is time to."""
        owner, at = self._owner, self.at
        if owner is None or self._pid != os.getpid():
            return self._claim(now)
        if not at:
            return now >= self._again and self._claim(now)
        return owner == tuple(self.words[at + t.PID : at + t.PID + 3]) or self._claim(now)

    def _claim(self, now: Instant) -> bool:
        self._pid = os.getpid()
        try:
            self._owner = owner = self._who()
            index = self.table.claim(owner, self._kind)
        except OSError:
            self._owner, index = None, t.BUSY
        self.busy = index == t.BUSY
        if index < 0:
            self.at = 0
            self._again = now + (_AGAIN_BUSY if self.busy else _AGAIN_FULL)
            return False
        self.at = self.table.row(index)
        self.words[self.at + t.AT] = now
        self.claims += 1
        return True

    def leave(self, table: Table | None = None) -> None:
        """Have no row: we are a fork, or the table is another."""
        if table is not None:
            self.table, self.words = table, table.words
        self._owner, self.at = None, 0

    def give_up(self) -> None:
        """Take what we have out off the table, and leave: the process ends."""
        if self.at and self._owner is not None:
            self.table.bury(self.index, self._owner)
        self.leave()

    # The others.

    def others(self) -> Iterator[int]:
        """Where their rows begin."""
        end = self.table.row(self.table.used)
        return (at for at in range(self.table.row(0), end, t.ROW) if at != self.at)

    def recent(self, now: Instant, word: int, window: Duration) -> int:
        """The sum of what the others had in the window when they wrote it, faded by its age."""
        counts, ats = self.table.column(word).tolist(), self.table.column(t.AT).tolist()
        counts[self.index] = 0
        return sum(
            faded(count, now - at, window) for count, at in zip(counts, ats, strict=True) if count
        )

    def companions(self, now: Instant, window: Duration) -> int:
        """How many other processes of this host have asked their guard within the window."""
        words = self.words
        return sum(
            words[at + t.PID] != 0
            and words[at + t.KIND] == t.PROCESS
            and now - words[at + t.AT] < window
            for at in self.others()
        )

    @property
    def index(self) -> int:
        """The number of our row; there is one."""
        return (self.at - self.table.row(0)) // t.ROW

    def is_dead(self, now: Instant, at: int) -> bool:
        """Whether the owner of this row has died. Then what he had out is taken off the table.

        Asked of somebody who has written just now, it costs nothing.
        """
        if now - self.words[at + t.AT] < SECOND:
            return False
        index = (at - self.table.row(0)) // t.ROW
        owner = self.table.owner(index)
        if owner is None or self._owner is None:
            return owner is None
        if owner.namespace == self._owner.namespace:
            dead = not is_alive(owner)
        else:
            dead = now - self.words[at + t.AT] > _STRANGER_LOST
        return dead and self.table.bury(index, owner)

    def look_after_one(self, now: Instant) -> None:
        """Bury an owner who has died, if it is his turn to be looked after."""
        self._suspect = (self._suspect + 1) % max(1, self.table.used)
        at = self.table.row(self._suspect)
        if at != self.at and self.words[at + t.PID]:
            self.is_dead(now, at)


def faded(count: int, age: Duration, window: Duration) -> int:
    """How much of a count of the last `window` is still in it, if it came in evenly."""
    if age < FRESH:
        return count
    return count * (window - age) // window if age < window else 0
