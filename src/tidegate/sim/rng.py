"""Where does luck come from? One named stream per part of the model.

Each part draws from a stream of its own, seeded by the run's seed and the part's name, so that
adding a part, or changing one, leaves the luck of all others as it was (common random numbers).
"""

from random import Random
from typing import Final, final

__all__ = ["Streams"]


@final
class Streams:
    """The random streams of one run."""

    __slots__ = ("_made", "seed")

    def __init__(self, seed: int) -> None:
        self.seed: Final = seed
        self._made: Final[dict[str, Random]] = {}

    def stream(self, name: str) -> Random:
        """The stream of that name; the same object on every call."""
        if name not in self._made:
            # A string seed is hashed by SHA-512 (random.seed, version 2): not by hash().
            self._made[name] = Random(f"{self.seed}/{name}")
        return self._made[name]
