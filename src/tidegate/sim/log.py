"""Did two runs do the same, and what were the last things that happened?

One line per event: instant, part, what, detail, separated by tabs. The hash of all lines is the
identity of a run: the same seed gives the same hash, in any process, on any machine.
"""

from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from typing import Final, final

from tidegate.units import Instant

__all__ = ["EventLog"]

TAIL: Final = 20  # lines a failing simulation prints


@final
class EventLog:
    """Hashes every line, keeps the last `TAIL`, and hands each to `write` if one is given."""

    __slots__ = ("_hash", "_write", "count", "tail")

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        self._hash: Final = blake2b(digest_size=16)
        self._write: Final = write
        self.tail: Final[deque[str]] = deque(maxlen=TAIL)
        self.count = 0

    def line(self, now: Instant, part: str, what: str, detail: object = "") -> None:
        """Record that `what` happened to `part` at `now`."""
        text = f"{now}\t{part}\t{what}\t{detail}\n"
        self._hash.update(text.encode())
        self.tail.append(text)
        self.count += 1
        if self._write is not None:
            self._write(text)

    @property
    def digest(self) -> str:
        """The identity of the run so far."""
        return self._hash.hexdigest()
