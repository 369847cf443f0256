"""How often is each service asked, and for how long does it hold a worker, when nothing fails?

Arithmetic on the call graph alone: no queues, no retries, no failures. It says what "today" means
when the file leaves a number of workers or a rate open.
"""

from collections.abc import Iterator
from typing import Final

from tidegate.settings.system import Call, Client, System, Time
from tidegate.units import SECOND

__all__ = [
    "answer_times",
    "callees_first",
    "client_rates",
    "holding_times",
    "offered",
    "visits",
]

_NEGLIGIBLE: Final = 1e-9  # calls per request: one a year at thirty requests a second


def callees_first(system: System) -> list[str]:
    """Every service, after all those whose answers it waits for."""
    order: list[str] = []
    seen: set[str] = set()
    for start in system.services:
        trail = [] if start in seen else [(start, _waited_for(system, start))]
        while trail:
            service, callees = trail[-1]
            seen.add(service)
            callee = next(callees, None)
            if callee is None:
                order.append(service)
                trail.pop()
            elif callee not in seen:
                trail.append((callee, _waited_for(system, callee)))
    return order


def _waited_for(system: System, service: str) -> Iterator[str]:
    for name, call in system.services[service].calls.items():
        if call.wait:
            yield system.target_of(name, call)


def visits(system: System, client: Client) -> dict[str, float]:
    """How many requests one request of this client makes at each service that it reaches.

    Calls that nobody waits for may go in a circle. They are followed for as many steps as there are
    services, which is every path without a circle, and more of a circle than matters where each
    round makes fewer calls than the one before.
    """
    count: dict[str, float] = {}
    wave = _calls_of(system, client.calls, 1.0, {})
    for _ in system.services:
        step: dict[str, float] = {}
        for service, made in wave.items():
            count[service] = count.get(service, 0.0) + made
            _calls_of(system, system.services[service].calls, made, step)
        wave = step
        if not wave:
            break
    return count


def _calls_of(
    system: System, calls: dict[str, Call], made: float, into: dict[str, float]
) -> dict[str, float]:
    for name, call in calls.items():
        callee = system.target_of(name, call)
        if made * call.per_request > _NEGLIGIBLE:
            into[callee] = into.get(callee, 0.0) + made * call.per_request
    return into


def answer_times(system: System) -> dict[str, float]:
    """Nanoseconds that one request takes at each service: own work, then the calls waited for."""
    answer: dict[str, float] = {}
    for service in callees_first(system):
        record = system.services[service]
        calls = _waiting(system, record.calls, answer, together=record.parallel)
        answer[service] = _average(record.time) + calls
    return answer


def holding_times(system: System) -> dict[str, float]:
    """Nanoseconds for which one request holds a worker: all of its answer time where the service
    is blocking, else its own work alone.
    """
    answer = answer_times(system)
    return {
        name: answer[name] if service.blocking else _average(service.time)
        for name, service in system.services.items()
    }


def _waiting(
    system: System, calls: dict[str, Call], answer: dict[str, float], *, together: bool
) -> float:
    waits = [
        call.per_request * (_average(call.network) + answer[system.target_of(name, call)])
        for name, call in calls.items()
        if call.wait
    ]
    return max(waits, default=0.0) if together else sum(waits)


def client_rates(system: System) -> dict[str, float]:
    """Requests per second of each client.

    A closed population sends users / (think + answer), by Little's law (1961).
    """
    answer = answer_times(system)
    rates = {}
    for name, client in system.clients.items():
        if client.rate is not None:
            rates[name] = client.rate
        else:
            waiting = _waiting(system, client.calls, answer, together=False)
            cycle = _average(client.think) + waiting
            rates[name] = (client.users or 0) * SECOND / cycle if cycle > 0 else 0.0
    return rates


def offered(system: System) -> dict[str, float]:
    """Requests per second that reach each service when nothing fails."""
    load = dict.fromkeys(system.services, 0.0)
    for name, rate in client_rates(system).items():
        for service, count in visits(system, system.clients[name]).items():
            load[service] += rate * count
    return load


def _average(time: Time | None) -> float:
    return time.average if time is not None else 0.0
