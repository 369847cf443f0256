"""What can be broken, and how is it mended?

Every trigger that is active on a target is kept with its present strength; the target's state is
computed anew from all of them whenever one begins, ramps or ends. So two triggers may overlap, and
the end of one never undoes the other. What an action has changed for good is kept beside them.
"""

from math import ceil
from typing import Final, TypeVar, final

from tidegate.settings.policies import RateLimit
from tidegate.settings.system import Trigger
from tidegate.sim.parts.caller import CallSite
from tidegate.sim.parts.client import Client
from tidegate.sim.parts.replica import Replica
from tidegate.sim.parts.service import Service
from tidegate.sim.parts.steps import Step
from tidegate.units import Duration, Instant

__all__ = ["CallFaults", "ClientFaults", "Faults", "ServiceFaults"]


_Value = TypeVar("_Value")
_Active = list[tuple[Trigger, float]]


class Faults:
    """The triggers that are active on one target, by name, each with its strength from 0 to 1."""

    __slots__ = ("_active",)

    def __init__(self) -> None:
        self._active: Final[dict[str, tuple[Trigger, float]]] = {}

    def set(self, now: Instant, name: str, trigger: Trigger, strength: float) -> None:
        """`trigger` now acts with `strength`; zero ends it."""
        self._active.pop(name, None)
        if strength > 0:
            self._active[name] = (trigger, strength)
        self.apply(now)

    def apply(self, now: Instant) -> None:
        """Bring the target to the state that all active triggers together give it."""
        raise NotImplementedError

    def active(self) -> _Active:
        """The triggers that act now, in the order in which they last changed."""
        return list(self._active.values())


def _product(active: _Active, key: str) -> float:
    result = 1.0
    for trigger, strength in active:
        value = getattr(trigger, key)
        if value is not None:
            result *= 1 + (value - 1) * strength
    return result


def _sum(active: _Active, key: str) -> Duration:
    return sum(int((getattr(trigger, key) or 0) * strength) for trigger, strength in active)


def _last(active: _Active, key: str, base: _Value) -> _Value:
    found = base
    for trigger, _ in active:
        value = getattr(trigger, key)
        found = found if value is None else value
    return found


@final
class ClientFaults(Faults):
    """Load that surges or is shed. `load` is what an action has made of it."""

    __slots__ = ("_client", "load")

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client: Final = client
        self.load = 1.0

    def apply(self, now: Instant) -> None:
        """Multiply the load."""
        self._client.set_load(now, self.load * _product(self.active(), "load"))


@final
class CallFaults(Faults):
    """A slower way, a tighter limit at the caller, or a release that calls more often.

    `per_request` and `rate` (of each caller) are what holds when no trigger changes them.
    """

    __slots__ = ("_sites", "_steps", "per_request", "rate")

    def __init__(self, sites: list[CallSite], steps: list[Step], rate: RateLimit | None) -> None:
        super().__init__()
        self._sites: Final = sites
        self._steps: Final = steps
        self.per_request = steps[0].per_request
        self.rate = rate

    def apply(self, now: Instant) -> None:
        """Set latency, calls per request and rate limit."""
        active = self.active()
        for step in self._steps:
            step.per_request = _last(active, "per_request", self.per_request)
        rate = _last(active, "rate_limit", self.rate)
        for site in self._sites:
            site.delay(_sum(active, "latency"))
            site.pipeline.limit_rate(now, rate)


@final
class ServiceFaults(Faults):
    """Slowness, lost capacity, errors, a freeze, a wrong limit: at all replicas or at some.

    `capacity` (a multiple) and `rate` are what holds when no trigger changes them.
    """

    __slots__ = ("_errors", "_service", "capacity", "rate")

    def __init__(self, service: Service, errors: float, rate: RateLimit | None) -> None:
        super().__init__()
        self._service: Final = service
        self._errors: Final = errors
        self.rate = rate
        self.capacity = 1.0

    def apply(self, now: Instant) -> None:
        """Set the state of each replica from the triggers that reach it."""
        active = self.active()
        self._service.limit_rate(now, _last(active, "rate_limit", self.rate))
        for index, replica in enumerate(self._service.replicas):
            here = [one for one in active if one[0].replicas is None or index < one[0].replicas]
            self._apply_one(now, replica, here)

    def _apply_one(self, now: Instant, replica: Replica, active: _Active) -> None:
        spared = 1.0 - self._errors
        for trigger, strength in active:
            spared *= 1 - (trigger.errors or 0) * strength
        replica.errors = 1 - spared
        replica.extra_latency = _sum(active, "latency")
        full = replica.workers_full * _product(active, "capacity") * self.capacity
        workers = ceil(full - 1e-9)
        # Workers come whole. What the rounding added is taken back as slowness, so that a cut by
        # 78 % is one by 78 % also for a service of three workers.
        replica.slowdown = _product(active, "slowdown") * (workers / full if full else 1.0)
        frozen = any(trigger.freeze for trigger, _ in active)
        replica.resume(now, workers, frozen=frozen)
