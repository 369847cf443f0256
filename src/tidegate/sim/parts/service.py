"""Which replica of a service takes what arrives?

A `Service` is its replicas behind a balancer, and what they share: the tally, the rate limit and,
if that is how they work, the line before their workers.
"""

from collections.abc import Callable
from operator import attrgetter
from random import Random
from typing import Final, final

from tidegate.core.token_bucket import TokenBucket
from tidegate.settings import system as settings
from tidegate.settings.policies import RateLimit
from tidegate.sim.measure import ServiceTally
from tidegate.sim.parts.replica import Replica
from tidegate.sim.parts.work import OVER, Attempt
from tidegate.units import Instant

__all__ = ["Service"]

_in_system = attrgetter("in_system")


@final
class Service:
    """The replicas of one service behind their balancer."""

    __slots__ = (
        "_luck",
        "_turn",
        "arrive",
        "cancels",
        "name",
        "rate",
        "replicas",
        "tally",
    )

    def __init__(
        self, name: str, service: settings.Service, luck: Random, tally: ServiceTally
    ) -> None:
        self.name: Final = name
        self.replicas: Final[list[Replica]] = []
        self.tally: Final = tally
        self.cancels: Final = service.abandoned == "cancel"
        self.rate = TokenBucket(service.rate_limit) if service.rate_limit else None
        self._luck: Final = luck
        self._turn = 0
        self.arrive: Callable[[Instant, Attempt], None] = {
            "round_robin": self._in_turn,
            "random": self._at_random,
            "least_loaded": self._to_least_loaded,
            "shared_queue": self._to_a_free_one,
        }[service.balance]

    def add(self, replica: Replica) -> None:
        """Put one more replica behind the balancer."""
        self.replicas.append(replica)

    def complete(self) -> None:
        """All replicas are there; a single one needs no balancer."""
        if len(self.replicas) == 1:
            self.arrive = self.replicas[0].arrive

    @property
    def in_system(self) -> int:
        """Requests that wait, are worked on, or make their calls."""
        lines = {id(replica.line): replica.line for replica in self.replicas}
        doors = {id(replica.door): replica.door for replica in self.replicas if replica.door}
        waiting = sum(line.waiting for line in lines.values())
        waiting += sum(door.waiting for door in doors.values())
        return waiting + sum(replica.holding for replica in self.replicas)

    def limit_rate(self, now: Instant, rate: RateLimit | None) -> None:
        """Change the rate limit while requests are under way."""
        if rate is None or self.rate is None:
            self.rate = None if rate is None else TokenBucket(rate)
        else:
            self.rate.reconfigure(now, rate)
        for replica in self.replicas:
            replica.settle_in()

    def abandoned(self, now: Instant, attempt: Attempt) -> None:
        """The caller of `attempt` has left, and this service cancels what it abandoned.

        What is still on its way is turned away at the door.
        """
        if attempt.work is not OVER and attempt.replica is not None:
            attempt.replica.abandoned(now, attempt)

    def _in_turn(self, now: Instant, attempt: Attempt) -> None:
        self._turn = (self._turn + 1) % len(self.replicas)
        self.replicas[self._turn].arrive(now, attempt)

    def _at_random(self, now: Instant, attempt: Attempt) -> None:
        self.replicas[int(self._luck.random() * len(self.replicas))].arrive(now, attempt)

    def _to_least_loaded(self, now: Instant, attempt: Attempt) -> None:
        min(self.replicas, key=_in_system).arrive(now, attempt)

    def _to_a_free_one(self, now: Instant, attempt: Attempt) -> None:
        """The next with a worker to spare; if there is none, any: they share one line."""
        replicas, turn = self.replicas, self._turn
        for step in range(1, len(replicas) + 1):
            replica = replicas[(turn + step) % len(replicas)]
            if replica.busy < replica.workers:
                self._turn = (turn + step) % len(replicas)
                replica.arrive(now, attempt)
                return
        replicas[turn].arrive(now, attempt)
