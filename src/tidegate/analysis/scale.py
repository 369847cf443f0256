"""How small may a simulated copy of a system be and still tell the truth?

A service of 1,000 workers at 500 requests a second behaves much as one of 100 workers at 50: what
matters is load against capacity and time against timeouts. So a large system is simulated as a
smaller copy with the same ratios, the scale is stated among the assumptions, and luck weighs a
little more in the copy than in the original, which errs on the side of the alarm.
"""

from typing import TypeVar

import msgspec

from tidegate.settings.admission import Admission
from tidegate.settings.policies import Limit, Queue, RateLimit
from tidegate.settings.system import Client, Service, System

__all__ = ["choose_scale", "scaled"]

_Record = TypeVar("_Record", bound=msgspec.Struct)

# Below so many workers in all, waiting times of the copy differ from the original's by more than
# a tenth at 80 % load (M/M/c, Allen-Cunneen); so many are kept.
_WORKERS_MIN = 20
# Workers come whole: a copy whose capacity would be off by more than this is not taken.
_ROUNDING_MAX = 0.01
_SCALES = (100, 80, 50, 40, 25, 20, 10, 8, 5, 4, 2)


def choose_scale(system: System, wanted: float) -> int:
    """The largest divisor, at most `wanted`, that keeps every ratio of the system."""
    return next((k for k in _SCALES if k <= wanted and _fits(system, k)), 1)


def scaled(system: System, divisor: int) -> System:
    """A copy of the system with 1/divisor of its load, workers, places and limits."""
    if divisor == 1:
        return system
    return msgspec.structs.replace(
        system,
        clients={name: _client(client, divisor) for name, client in system.clients.items()},
        services={name: _service(service, divisor) for name, service in system.services.items()},
        triggers={name: _rated(trigger, divisor) for name, trigger in system.triggers.items()},
        actions={name: _rated(action, divisor) for name, action in system.actions.items()},
    )


def _fits(system: System, divisor: int) -> bool:
    for service in system.services.values():
        if service.workers is not None:
            workers = service.workers / divisor
            total = workers * service.replicas
            if total < min(_WORKERS_MIN, service.workers * service.replicas) or not _whole(workers):
                return False
        for count in _counts(service):
            if not _whole(count / divisor):
                return False
    for client in system.clients.values():
        if client.users is not None and not _whole(client.users / divisor):
            return False
    return all(
        _whole(call.limit.max / divisor)
        for _, _, calls in system.callers()
        for call in calls.values()
        if call.limit is not None and call.limit.max is not None
    ) and not any(
        call.limit is not None and call.limit.max is None
        for _, _, calls in system.callers()
        for call in calls.values()
    )


def _counts(service: Service) -> list[int]:
    counts = [service.queue.limit or 0]
    if service.limit is not None:
        counts.append(service.limit.max if service.limit.max is not None else 1)
    if service.admission is not None:
        most = service.admission.limit.max
        counts += [most if most is not None else 1, service.admission.queue]
    if service.restart is not None:
        counts.append(service.restart.backlog)
    return [count for count in counts if count]


def _whole(value: float) -> bool:
    nearest = round(value)
    return nearest >= 1 and abs(nearest / value - 1) <= _ROUNDING_MAX


def _client(client: Client, divisor: int) -> Client:
    return msgspec.structs.replace(
        client,
        rate=None if client.rate is None else client.rate / divisor,
        users=None if client.users is None else round(client.users / divisor),
        calls={
            name: _rated(_limited(call, divisor), divisor) for name, call in client.calls.items()
        },
    )


def _service(service: Service, divisor: int) -> Service:
    restart = service.restart
    smaller = msgspec.structs.replace(
        service,
        workers=None if service.workers is None else round(service.workers / divisor),
        queue=_queue(service.queue, divisor),
        admission=None if service.admission is None else _admission(service.admission, divisor),
        contention=None if service.contention is None else service.contention * divisor,
        thrash=service.thrash * divisor,
        restart=None
        if restart is None
        else msgspec.structs.replace(restart, backlog=round(restart.backlog / divisor)),
        calls={
            name: _rated(_limited(call, divisor), divisor) for name, call in service.calls.items()
        },
    )
    return _rated(_limited(smaller, divisor), divisor)


def _queue(queue: Queue, divisor: int) -> Queue:
    if not queue.limit:
        return queue
    return msgspec.structs.replace(queue, limit=round(queue.limit / divisor))


def _admission(door: Admission, divisor: int) -> Admission:
    return _limited(msgspec.structs.replace(door, queue=round(door.queue / divisor)), divisor)


def _limited(record: _Record, divisor: int) -> _Record:
    limit: Limit | None = getattr(record, "limit", None)
    if limit is None or limit.max is None:
        return record
    return msgspec.structs.replace(record, limit=Limit(max=round(limit.max / divisor)))


def _rated(record: _Record, divisor: int) -> _Record:
    limit: RateLimit | None = getattr(record, "rate_limit", None)
    if limit is None:
        return record
    burst = None if limit.burst is None else max(1, round(limit.burst / divisor))
    return msgspec.structs.replace(
        record, rate_limit=RateLimit(rate=limit.rate / divisor, burst=burst)
    )
