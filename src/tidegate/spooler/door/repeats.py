"""Has this very request been kept already, and only its answer been lost?

A client that heard nothing sends again, and its records would be there twice. If it says so, with
the same `Idempotency-Key` and the same body, it gets the answer of the first time and nothing is
kept again. The body counts as well: whoever uses a key for something else, or counts anew after a
disk was lost, loses nothing.

The last `REPEATS_MAX` answers are remembered, while the process lives. What is older is kept again:
at least once is what is promised, and this only makes twice rare.
"""

from collections import OrderedDict
from hashlib import blake2b
from typing import Final, NamedTuple, final

from tidegate.spooler.door.keeper import Accepted

__all__ = ["REPEATS_MAX", "Kept", "Repeats", "mark"]

REPEATS_MAX: Final = 4096
"""About 1 MB of memory. A client waits for its answer, and then sends the same again before it
sends much else.
"""

_KEY_MAX: Final = 256


class Kept(NamedTuple):
    """What a request came to: so many records, and where."""

    records: int
    accepted: Accepted


def mark(kind: str, key: bytes, body: bytes) -> bytes:
    """What tells this request from any other that would be kept as other records."""
    digest = blake2b(f"{kind} {len(key)} ".encode(), digest_size=16)
    digest.update(key)
    digest.update(body)
    return digest.digest()


@final
class Repeats:
    """Answers by lane and `Idempotency-Key`. One that is missing or very long is none."""

    __slots__ = ("_answers",)

    def __init__(self) -> None:
        self._answers: Final[OrderedDict[tuple[str, str], tuple[bytes, Kept]]] = OrderedDict()

    def find(self, lane: str, name: str, mark: bytes) -> Kept | None:
        """What this request came to when it was kept; None if it was not, as far as is known."""
        found = self._answers.get((lane, name))
        return None if found is None or found[0] != mark else found[1]

    def remember(self, lane: str, name: str, mark: bytes, kept: Kept) -> None:
        """It was kept."""
        if not name or len(name) > _KEY_MAX:
            return
        self._answers[lane, name] = mark, kept
        self._answers.move_to_end((lane, name))
        if len(self._answers) > REPEATS_MAX:
            self._answers.popitem(last=False)
