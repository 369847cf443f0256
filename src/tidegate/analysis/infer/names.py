"""Which name does a thing get in the system file, when traces call it whatever they like?

A name is a word that a person can type and YAML takes for text: letters, digits, `.`, `_`, `-`.
"""

import re
import unicodedata
from typing import Final

__all__ = ["Names", "readable"]

_LENGTH_MAX: Final = 60
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]+")
# What some YAML reader takes for a truth, a nothing or a number; the loader's own words included.
_NOT_TEXT: Final = re.compile(
    r"y|n|yes|no|on|off|true|false|null|none|nan|inf|unknown|[-+.0-9][-+.0-9_exa-f:]*",
    re.IGNORECASE,
)


def readable(name: str, otherwise: str = "service") -> str:
    """The name with all else than letters, digits, `.`, `_`, `-` made a dash; never empty."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    word = _FOREIGN.sub("-", plain).strip("-._")[:_LENGTH_MAX].rstrip("-._") or otherwise
    return f"{otherwise}-{word}" if _NOT_TEXT.fullmatch(word) else word


class Names:
    """Gives every thing a name of its own; a second of the same name gets a number."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, *wishes: str, otherwise: str = "service") -> str:
        """The first wish that is free, else the last one with a number behind it."""
        words = [readable(wish, otherwise) for wish in wishes]
        for word in words:
            if word not in self._taken:
                self._taken.add(word)
                return word
        number = 2
        while f"{words[-1]}-{number}" in self._taken:
            number += 1
        self._taken.add(f"{words[-1]}-{number}")
        return f"{words[-1]}-{number}"
