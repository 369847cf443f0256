"""Which share of the requests do retries save while nothing is overloaded?

What is lost in health is lost one by one: a service fails a share of its answers, and some work
takes longer than a timeout. Trying again mends that, which is what retries are for, and what it
would cost to do without them. Failures are taken as independent of each other and nothing queues,
so this is a closed form: an attempt that succeeds with probability a and may be repeated with
probability q is tried on average 1 + q + q^2 + ... times, and the call succeeds with a times that.
"""

import math

from tidegate.analysis.rules.view import outlasting, tries
from tidegate.settings.graph import callees_first
from tidegate.settings.system import Call, Service, System

__all__ = ["mended", "successes"]


def mended(system: System) -> dict[str, float]:
    """Of each client's requests, the share that fails if nothing is tried twice, and not today."""
    once = successes(system, retries=False)
    return {client: max(0.0, share - once[client]) for client, share in successes(system).items()}


def successes(system: System, *, retries: bool = True) -> dict[str, float]:
    """The share of each client's requests that succeed in health."""
    share: dict[str, float] = {}

    def all_of(calls: dict[str, Call]) -> float:
        return math.prod(
            _of_one_request(
                call, _of_one_call(call, system.services[callee], share[callee], retries)
            )
            for name, call in calls.items()
            if call.wait and not call.optional
            for callee in (system.target_of(name, call),)
        )

    for name in callees_first(system):
        share[name] = (1 - system.services[name].errors) * all_of(system.services[name].calls)
    return {name: all_of(client.calls) for name, client in system.clients.items()}


def _of_one_call(call: Call, callee: Service, answered: float, retries: bool) -> float:
    """How often a call succeeds whose single attempts are answered well with `answered`."""
    late = 0.0 if call.timeout is None else outlasting(callee.time, call.timeout)
    good = answered * (1 - late)
    if not retries:
        return good
    again = late * ("timeout" in call.retry_on)
    again += (1 - late) * (1 - answered) * ("failure" in call.retry_on)
    more = math.fsum(again**n for n in range(1, tries(call)))
    return good * (1 + (more if call.paid_from is None else min(more, call.paid_from.ratio)))


def _of_one_request(call: Call, success: float) -> float:
    """All of one request's calls: 2.5 calls are two and half a chance of a third."""
    part, whole = math.modf(call.per_request)
    return float(success**whole * (1 - part * (1 - success)))
