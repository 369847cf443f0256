"""Where no policy helps: how much more capacity would?

A policy decides who is served; it makes no capacity. What asks for more than there is, for longer
than anybody waits, can be served in part or by more workers, and a report that offers no cure owes
the number. So the service that is short is tried with one and a quarter to sixteen times what it
has, its workers and its limits alike, and the least that does is what is offered.
"""

import math
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tidegate.analysis.cures import Candidate, changed
from tidegate.settings.dump import Changes
from tidegate.settings.numbers import people
from tidegate.settings.system import System

__all__ = ["FACTORS", "more_capacity"]

FACTORS: Final = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
"""What is tried, as multiples of what is there; who needs more has another problem."""

_WORKERS_MAX: Final = 1_000_000


def more_capacity(system: System, service: str) -> Iterator[Candidate]:
    """The system with more of what `service` is short of, the least first; nothing if no limit."""
    record = system.services[service]
    for factor in FACTORS:
        values: dict[str, Any] = {}
        told: list[tuple[str, str]] = []
        if record.workers is not None:
            values["workers"] = min(_WORKERS_MAX, math.ceil(record.workers * factor))
            told.append((f"{values['workers']:,} workers", f"{record.workers:,}"))
        if record.rate_limit is not None:
            rate = record.rate_limit.rate
            values["rate_limit"] = msgspec.structs.replace(record.rate_limit, rate=rate * factor)
            told.append((f"a limit of {people('rate', rate * factor)}", people("rate", rate)))
        if record.limit is not None and record.limit.max is not None:
            values["limit"] = msgspec.structs.replace(
                record.limit, max=math.ceil(record.limit.max * factor)
            )
            told.append((f"{values['limit'].max:,} at once", f"{record.limit.max:,}"))
        if record.admission is not None and record.admission.limit.max is not None:
            most = math.ceil(record.admission.limit.max * factor)
            values["admission"] = msgspec.structs.replace(
                record.admission, limit=msgspec.structs.replace(record.admission.limit, max=most)
            )
            told.append((f"{most:,} let in at once", f"{record.admission.limit.max:,}"))
        if not values:
            return
        changes: Changes = {("services", service): values}
        yield Candidate(
            f"{factor:g}x the capacity of {service}",
            changes,
            f"{_listed(told)}, at all times; no policy that was tried suffices",
            changed(system, changes),
        )


def _listed(told: list[tuple[str, str]]) -> str:
    each = " a replica" if "workers" in told[0][0] else ""
    return " and ".join(f"{now} instead of {before}" for now, before in told) + each * (
        len(told) == 1
    )
