"""Small simulated systems whose story is told in instants: at 0 ms this, at 5 ms that."""

from typing import Any

from tidegate.settings.system import Call, Client, Service, System, Time, Trigger
from tidegate.sim.invariants import check
from tidegate.sim.world import World
from tidegate.units import HOUR, MILLISECOND

MS = MILLISECOND


def ms(length: int) -> Time:
    """Work that always takes so many milliseconds."""
    return Time(constant=length * MS)


class Story:
    """Somebody asks for the first of `services` when told to, and otherwise stays silent.

    `calls` is how: one call of a second's timeout to the first service, unless it is given.
    """

    def __init__(
        self, services: dict[str, Service], calls: dict[str, Call] | None = None, **world: Any
    ) -> None:
        if calls is None:
            calls = {"ask": Call(to=next(iter(services)), timeout=1000 * MS)}
        system = System(clients={"me": Client(rate=1e-6, calls=calls)}, services=services)
        self.world = World(system, seed=1, horizon=HOUR, **world)
        self.me = self.world.clients["me"].tally

    def ask(self, *instants_ms: int) -> None:
        for instant in instants_ms:
            self.world.loop.at(instant * MS, self.world.clients["me"].request)

    def until(self, instant_ms: int) -> "Story":
        """Go on until just after that instant, and check that nothing is lost."""
        self.world.run(instant_ms * MS + 1)
        check(self.world)
        return self

    def begin(self, **trigger: Any) -> Trigger:
        made = Trigger(**trigger)
        self.world.begin("trigger", made)
        return made

    def end(self, trigger: Trigger) -> None:
        self.world.end("trigger", trigger)

    @property
    def served(self) -> int:
        """Requests answered well so far."""
        return sum(self.me.eventual)

    @property
    def failed(self) -> int:
        return sum(self.me.failed)

    def call(self, name: str = "ask") -> tuple[int, int, int, int, int]:
        """Attempts sent, and how they ended: success, failure, timeout, overloaded."""
        tally = self.world.calls[name]
        ends = tally.successes, tally.failures, tally.timeouts, tally.overloaded
        return (tally.sent.count, *ends)

    def service(self, name: str) -> dict[str, int]:
        """What became of what arrived at a service; without what is zero."""
        service = self.world.services[name]
        tally = service.tally
        counts = {
            "served": tally.finished.count,
            "late": tally.wasted.count,
            "refused": tally.refusals.count,
            "dropped": tally.dropped,
            "cancelled": tally.cancelled,
            "inside": service.in_system,
        }
        return {what: count for what, count in counts.items() if count}
