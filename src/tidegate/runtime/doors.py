"""Which doors does this process have, and what have they seen?

A door is the shedder in front of an application; `server` has one for ASGI and one for WSGI. Each
shows itself here under a name as it is made, and an exporter asks here, so that neither knows the
other. It is held weakly: an application that is dropped takes its figures along.
"""

from collections.abc import Callable
from itertools import count
from typing import Final, Literal, Protocol
from weakref import ref

import msgspec

from tidegate.core.admission import AdmissionSnapshot
from tidegate.core.client_rates import ClientRatesSnapshot
from tidegate.errors import SettingsError

__all__ = ["NAME", "Mode", "Shedder", "ShedderSnapshot", "show", "snapshots"]

Mode = Literal["enforce", "observe", "off"]

NAME: Final = "server"
"""What a door is called that nobody has named: most processes have one."""

_NAME_MAX: Final = 200  # as for a guard: as much as fits on a line and in a metric's label

# By number, in the order in which they were made. A dict alone, and no lock: each step is one of
# the interpreter's, so a thread that scrapes and a fork find it whole at every moment.
_doors: Final[dict[int, tuple[str, "ref[Shedder]"]]] = {}
_numbers: Final = count()


class ShedderSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a person would ask of a shedder. `refused` has the reasons that occurred, by name.

    In `observe` mode nobody was refused: it is who would have been, and `would_wait` who would have
    waited first, for a place or for his refusal. `admitted` is everybody who was let in and
    counted; `left` went while he waited. `cancelled` is work that was stopped because nobody
    waited for it any more; `late` is work that was finished all the same.
    """

    mode: Mode
    door: AdmissionSnapshot
    admitted: int
    left: int
    refused: dict[str, int]
    would_wait: int
    cancelled: int
    late: int
    rates: ClientRatesSnapshot | None


class Shedder(Protocol):
    """What shows itself: it says what it has seen, to whichever thread asks."""

    @property
    def snapshot(self) -> Callable[[], ShedderSnapshot]:
        """What a person would ask of it."""
        ...


def show(name: str, shedder: Shedder) -> None:
    """List `shedder` under `name` for as long as somebody else holds it.

    Raises SettingsError for a name that fits on no line.
    """
    if not isinstance(name, str) or not name or len(name) > _NAME_MAX or not name.isprintable():
        raise SettingsError(
            f"the name of a shedder is 1 to {_NAME_MAX} printable characters, not {name!r}",
            path=("name",),
        )
    number = next(_numbers)
    _doors[number] = name, ref(shedder, lambda _: _doors.pop(number, None))


def snapshots() -> list[tuple[str, ShedderSnapshot]]:
    """What each door that does anything has seen, by name; a name may be there more than once."""
    found = []
    for name, held in list(_doors.values()):
        shedder = held()
        if shedder is not None and (seen := shedder.snapshot()).mode != "off":
            found.append((name, seen))
    return found


def _forget() -> None:
    """For tests: as if no door had been made."""
    _doors.clear()
