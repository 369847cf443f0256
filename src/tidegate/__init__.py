"""Tidegate keeps an overloaded dependency from becoming an outage of everything that calls it."""

from typing import TYPE_CHECKING, Any

from tidegate._version import __version__
from tidegate.core.outcome import Outcome
from tidegate.errors import (
    AttemptTimeout,
    CircuitOpen,
    DeadlineExceeded,
    Held,
    InputError,
    InvariantError,
    LimitExceeded,
    RateLimited,
    Rejected,
    SettingsError,
    Shed,
    SpoolError,
    SpoolFull,
    Throttled,
    TidegateError,
    WorkerLost,
)
from tidegate.runtime.context import carry, criticality, deadline, remaining
from tidegate.runtime.degraded import Degradation, degradation
from tidegate.runtime.guard import Guard, Verdict
from tidegate.runtime.registry import guard, listen, load, snapshots

if TYPE_CHECKING:
    from tidegate.spooler.program import spool

__all__ = [
    "AttemptTimeout",
    "CircuitOpen",
    "DeadlineExceeded",
    "Degradation",
    "Guard",
    "Held",
    "InputError",
    "InvariantError",
    "LimitExceeded",
    "Outcome",
    "RateLimited",
    "Rejected",
    "SettingsError",
    "Shed",
    "SpoolError",
    "SpoolFull",
    "Throttled",
    "TidegateError",
    "Verdict",
    "WorkerLost",
    "__version__",
    "carry",
    "criticality",
    "deadline",
    "degradation",
    "guard",
    "listen",
    "load",
    "remaining",
    "snapshots",
    "spool",
]


def __getattr__(name: str) -> Any:
    """`spool` is loaded when it is first used: it needs more than msgspec, and guards do not."""
    if name == "spool":
        from tidegate.spooler.program import spool

        return spool
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
