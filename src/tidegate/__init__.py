"""Tidegate keeps an overloaded dependency from becoming an outage of everything that calls it."""

from tidegate._version import __version__
from tidegate.errors import InputError, InvariantError, SettingsError, TidegateError, WorkerLost

__all__ = [
    "InputError",
    "InvariantError",
    "SettingsError",
    "TidegateError",
    "WorkerLost",
    "__version__",
]
