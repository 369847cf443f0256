"""Any coming and going in the waiting room, against one list that is searched from end to end."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidegate.core.fair_queue import FairQueue, Waiting
from tidegate.core.shares import RANKS, ceilings
from tidegate.settings.admission import Admission, Shares

NEVER = 1 << 62


class FairQueueMachine(RuleBasedStateMachine):
    @initialize(places=st.integers(0, 12), low=st.sampled_from([0.0, 0.3, 1.0]))
    def begin(self, places: int, low: float) -> None:
        shares = Shares(sheddable=max(low, 0.5), last=low)
        self.queue = FairQueue(Admission(queue=places, shares=shares))
        self.places, self.shares = places, shares
        self.line: list[Waiting] = []

    def of(self, rank: int, client: str | None) -> list[Waiting]:
        return [item for item in self.line if (item.rank, item.client) == (rank, client)]

    @rule(
        rank=st.sampled_from(RANKS),
        clients=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=6),
    )
    def push(self, rank: int, clients: list[str | None]) -> None:
        for client in clients:
            full = len(self.line) >= ceilings(self.shares, self.places)[rank]
            assert self.queue.is_full_for(rank) == full
            free = self.places - len(self.line)
            share = client is not None and bool(mine := self.of(rank, client)) and len(mine) >= free
            assert self.queue.has_its_share(rank, client, free=free) == share
            if not full and not share:
                item = Waiting(len(self.line), rank, client, NEVER)
                self.queue.push(item)
                self.line.append(item)

    @precondition(lambda self: getattr(self, "line", None))
    @rule(data=st.data(), newest=st.booleans())
    def pop(self, data: st.DataObject, newest: bool) -> None:
        rank = data.draw(st.sampled_from(sorted({item.rank for item in self.line})))
        item = self.queue.pop(rank, newest=newest)
        mine = self.of(rank, item.client)
        assert item is mine[-1 if newest else 0]
        self.line.remove(item)

    @precondition(lambda self: getattr(self, "line", None))
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(self.line))
        self.queue.remove(item)
        self.line.remove(item)

    @precondition(lambda self: getattr(self, "line", None))
    @rule(data=st.data(), newest=st.booleans())
    def empty_a_class(self, data: st.DataObject, newest: bool) -> None:
        """Served to its end, no client has two turns while another who waits has none."""
        rank = data.draw(st.sampled_from(sorted({item.rank for item in self.line})))
        had: dict[str | None, int] = {}
        while self.queue.has(rank):
            waiting = {item.client for item in self.line if item.rank == rank}
            item = self.queue.pop(rank, newest=newest)
            assert had.get(item.client, 0) == min(had.get(client, 0) for client in waiting)
            had[item.client] = had.get(item.client, 0) + 1
            self.line.remove(item)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "queue"):
            return
        assert self.queue._check()
        assert self.queue.waiting == len(self.line)
        assert self.queue.oldest() is (self.line[0] if self.line else None)
        for rank in RANKS:
            assert self.queue.has(rank) == any(item.rank == rank for item in self.line)
            least = self.queue.least(rank)
            lower = [item for item in self.line if item.rank > rank]
            assert (least is None) == (not lower)
            if least is not None:
                assert least.rank == max(item.rank for item in lower)
                line = self.of(least.rank, least.client)
                assert least is line[0]
                assert all(
                    len(self.of(item.rank, item.client)) <= len(line)
                    for item in lower
                    if item.rank == least.rank
                )


TestFairQueueMachine = pytest.mark.slow(FairQueueMachine.TestCase)
