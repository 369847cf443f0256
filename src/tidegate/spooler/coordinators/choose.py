"""Which coordinator is meant by `turns: nats://127.0.0.1:4222`?

Its scheme says which. Addresses can hold passwords, so no error repeats one.
"""

from pathlib import Path
from typing import Final

from tidegate.errors import SettingsError, nearest
from tidegate.settings.spool import Turns
from tidegate.spooler.coordinators.alone import Alone
from tidegate.spooler.coordinators.coordinator import Coordinator
from tidegate.spooler.coordinators.on_server import OnServer
from tidegate.spooler.coordinators.store import Store

__all__ = ["open_coordinator"]

_SCHEMES: Final = {
    "nats": "nats",
    "postgres": "postgres",
    "postgresql": "postgres",
    "redis": "valkey",
    "rediss": "valkey",
    "valkey": "valkey",
    "valkeys": "valkey",
}


def open_coordinator(turns: Turns, fleet: str, collector: str, base: Path) -> Coordinator:
    """What `turns.through` names, for this collector among those of `fleet` (a lane's name).

    Paths in an address begin at `base`.

    No server is asked yet: one that is away shows at the first call, as `CoordinatorLost`.
    Raises SettingsError for an address that cannot be right, and ModuleNotFoundError that names
    the extra to install.
    """
    if turns.through is None or turns.through == "slots":
        return Alone(collector)  # slots of time are kept by core/turns.py; nobody else is asked
    try:
        return OnServer(_store(turns.through, fleet, base), collector)
    except SettingsError as error:
        raise error.under("turns", "through") from None


def _store(url: str, fleet: str, base: Path) -> Store:
    scheme, colon, _ = url.partition("://")
    kind = _SCHEMES.get(scheme)
    if kind == "nats":
        from tidegate.spooler.coordinators.nats import NatsStore

        return NatsStore(url, fleet, base)
    if kind == "postgres":
        from tidegate.spooler.coordinators.postgres import PostgresStore

        return PostgresStore(url, fleet)
    if kind == "valkey":
        from tidegate.spooler.coordinators.valkey import ValkeyStore

        return ValkeyStore(url, fleet)
    hint = nearest(scheme, ("nats", "postgresql", "valkey")) if colon else ""
    raise SettingsError(f"expected nats://, valkey://, postgresql:// or the word slots{hint}")
