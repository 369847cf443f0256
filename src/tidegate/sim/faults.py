"""What can be broken, and how is it mended?

Every trigger that is active on a target is kept with its present strength; the target's state is
computed anew from all of them whenever one begins, ramps or ends. So two triggers may overlap, and
the end of one never undoes the other.
"""

from math import ceil
from typing import Final, TypeVar, final

from tidegate.settings.policies import RateLimit
from tidegate.settings.system import Trigger
from tidegate.sim.parts.caller import CallSite
from tidegate.sim.parts.client import Client
from tidegate.sim.parts.service import Replica, Service
from tidegate.sim.parts.steps import Step
from tidegate.units import Duration, Instant

__all__ = ["CallFaults", "ClientFaults", "Faults", "ServiceFaults"]


_Value = TypeVar("_Value")


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

    def _product(self, key: str) -> float:
        result = 1.0
        for trigger, strength in self._active.values():
            value = getattr(trigger, key)
            if value is not None:
                result *= 1 + (value - 1) * strength
        return result

    def _sum(self, key: str) -> Duration:
        return sum(
            int((getattr(trigger, key) or 0) * strength)
            for trigger, strength in self._active.values()
        )

    def _last(self, key: str, base: _Value) -> _Value:
        found = base
        for trigger, _ in self._active.values():
            value = getattr(trigger, key)
            found = found if value is None else value
        return found


@final
class ClientFaults(Faults):
    """Load that surges or is shed."""

    __slots__ = ("_client",)

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client: Final = client

    def apply(self, now: Instant) -> None:
        """Multiply the load."""
        self._client.set_load(now, self._product("load"))


@final
class CallFaults(Faults):
    """A slower way, a tighter limit at the caller, or a release that calls more often."""

    __slots__ = ("_sites", "_steps", "per_request", "rate")

    def __init__(self, sites: list[CallSite], steps: list[Step], rate: RateLimit | None) -> None:
        super().__init__()
        self._sites: Final = sites
        self._steps: Final = steps
        self.per_request = steps[0].per_request
        self.rate = rate

    def apply(self, now: Instant) -> None:
        """Set latency, calls per request and rate limit."""
        for step in self._steps:
            step.per_request = self._last("per_request", self.per_request)
        rate = self._last("rate_limit", self.rate)
        for site in self._sites:
            site.delay(self._sum("latency"))
            site.pipeline.limit_rate(now, rate)


@final
class ServiceFaults(Faults):
    """Slowness, lost capacity, errors, a freeze, a wrong limit: at all replicas or at some.

    `scale` and `rate` are what an action has changed for good.
    """

    __slots__ = ("_errors", "_service", "rate", "scale")

    def __init__(self, service: Service, errors: float, rate: RateLimit | None) -> None:
        super().__init__()
        self._service: Final = service
        self._errors: Final = errors
        self.rate = rate
        self.scale = 1.0

    def apply(self, now: Instant) -> None:
        """Set the state of each replica from the triggers that reach it."""
        rate = self._last("rate_limit", self.rate)
        self._service.limit_rate(now, rate)
        every = dict(self._active)
        for index, replica in enumerate(self._service.replicas):
            self._active.clear()
            self._active.update(
                (name, active)
                for name, active in every.items()
                if active[0].replicas is None or index < active[0].replicas
            )
            self._apply_one(now, replica)
        self._active.clear()
        self._active.update(every)

    def _apply_one(self, now: Instant, replica: Replica) -> None:
        spared = 1.0 - self._errors
        for trigger, strength in self._active.values():
            spared *= 1 - (trigger.errors or 0) * strength
        replica.errors = 1 - spared
        replica.extra_latency = self._sum("latency")
        full = replica.workers_full * self._product("capacity") * self.scale
        workers = ceil(full - 1e-9)
        # Workers come whole. What the rounding added is taken back as slowness, so that a cut by
        # 78 % is one by 78 % also for a service of three workers.
        replica.slowdown = self._product("slowdown") * (workers / full if full else 1.0)
        frozen = any(trigger.freeze for trigger, _ in self._active.values())
        replica.resume(now, workers, frozen=frozen)
