"""Who believes to hold which lease, and what must be true of it whatever keeps the leases."""

from typing import NamedTuple

from tidegate.runtime.clock import current
from tidegate.spooler.coordinators.coordinator import Budget, Coordinator
from tidegate.units import Duration, Instant


class Belief(NamedTuple):
    who: str
    fence: int
    end: Instant  # by the clock of the witness, from before it was asked


class Witness:
    """Sees every lease that is taken, and fails at the first that two hold at once."""

    def __init__(self) -> None:
        self.beliefs: dict[int, Belief] = {}
        self.fences: dict[int, int] = {}
        self.said = 0  # the highest fence under which a budget was published
        self.taken = self.renewed = self.published = 0

    def on_taken(self, slot: int, belief: Belief, now: Instant) -> None:
        before = self.beliefs.get(slot)
        if before is not None and before.who != belief.who:
            assert before.end <= now, f"{before} and {belief} both hold {slot} at {now}"
        assert belief.fence > self.fences.get(slot, 0), "a fence that does not grow"
        self.fences[slot] = belief.fence
        self.beliefs[slot] = belief
        self.taken += 1

    def on_renewed(self, slot: int, belief: Belief) -> None:
        before = self.beliefs[slot]
        assert before[:2] == belief[:2], f"{belief} renewed what {before} holds"
        self.beliefs[slot] = belief
        self.renewed += 1

    def on_published(self, fence: int, said_before: int) -> None:
        assert fence >= said_before, f"a budget of fence {fence} after one of {said_before}"
        self.said = max(self.said, fence)
        self.published += 1

    def on_given_back(self, slot: int, who: str) -> None:
        before = self.beliefs.get(slot)
        if before is not None and before.who == who:
            del self.beliefs[slot]


class Watched:
    """A collector that tells a witness what it is told, and stops by its own clock."""

    def __init__(self, who: str, coordinator: Coordinator, witness: Witness) -> None:
        self.who = who
        self.coordinator = coordinator
        self.witness = witness
        self.held: dict[int, int] = {}

    async def take(self, slot: int, ttl: Duration) -> int | None:
        clock = current().now
        sent = clock()
        fence = await self.coordinator.take(slot, ttl)
        if fence is not None:
            self.witness.on_taken(slot, Belief(self.who, fence, sent + ttl), clock())
            self.held[slot] = fence
        return fence

    async def renew(self, slot: int, ttl: Duration) -> bool:
        fence = self.held[slot]
        sent = current().now()
        if not await self.coordinator.renew(slot, fence, ttl):
            self.held.pop(slot, None)
            return False
        self.witness.on_renewed(slot, Belief(self.who, fence, sent + ttl))
        return True

    async def release(self, slot: int) -> None:
        fence = self.held.pop(slot)
        self.witness.on_given_back(slot, self.who)  # it has stopped before it says so
        await self.coordinator.release(slot, fence)

    async def publish(self, *, rate: float) -> bool:
        fence, said = self.held[0], self.witness.said
        budget = Budget(self.witness.published + 1, rate, fence)
        if not await self.coordinator.publish(budget):
            return False
        self.witness.on_published(fence, said)
        return True
