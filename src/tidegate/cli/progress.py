"""What is being done right now, when it takes long and somebody watches?

One line on standard error, rewritten in place: only on a terminal, only after two seconds. Piped,
nothing is shown.
"""

import shutil
import time
from typing import Final, Self, TextIO

__all__ = ["Progress"]

_AFTER: Final = 2.0  # seconds; a command that is done by then needs no progress


class Progress:
    """A line that says what is being done; it is wiped at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: Final = stream
        self._shown = False
        self._started: Final = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def show(self, what: str) -> None:
        """Say what is being done."""
        elapsed = time.monotonic() - self._started
        if not self._stream.isatty() or elapsed < _AFTER:
            return
        width = shutil.get_terminal_size((80, 24)).columns - 1
        line = f"{elapsed:4.0f} s  {what}"[:width]
        self._shown = True  # first: Ctrl-C may come as soon as the line is seen
        self._stream.write(f"\r\x1b[K{line}")
        self._stream.flush()
