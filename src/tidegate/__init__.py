"""Tidegate keeps an overloaded dependency from becoming an outage of everything that calls it."""

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
    Throttled,
    TidegateError,
    WorkerLost,
)
from tidegate.runtime.context import carry, criticality, deadline, remaining
from tidegate.runtime.degraded import Degradation, degradation
from tidegate.runtime.guard import Guard, Verdict
from tidegate.runtime.registry import guard, listen, load, snapshots

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
]
