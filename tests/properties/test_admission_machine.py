"""Any sequence of requests at a server's door, against lists that are searched from end to end."""

from itertools import count

import pytest
from hypothesis import settings as Examples  # noqa: N812 - ours are called settings as well
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidegate.core.admission import NEVER, Admission
from tidegate.core.codel import CoDel
from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.fair_queue import Waiting
from tidegate.core.outcome import IGNORED, Outcome, Reason, Rejection
from tidegate.core.queue_order import can_finish, takes_newest
from tidegate.core.shares import RANKS, ceilings
from tidegate.settings import admission as settings
from tidegate.settings.policies import Adaptive, Limit
from tidegate.settings.policies import CoDel as CoDelSettings
from tidegate.units import MILLISECOND

LIMITS = st.one_of(
    st.integers(1, 4).map(lambda most: Limit(max=most)),
    st.integers(1, 4).map(lambda start: Limit(adaptive=Adaptive(start=start, max=5))),
)
SETTINGS = st.builds(
    settings.Admission,
    limit=LIMITS,
    queue=st.integers(0, 12),
    wait=st.integers(1, 50).map(lambda n: n * MILLISECOND),
    order=st.sampled_from(["fifo", "lifo", "adaptive_lifo"]),
    codel=st.just(CoDelSettings(target=2 * MILLISECOND, interval=5 * MILLISECOND)),
    shares=st.sampled_from([settings.Shares(), settings.Shares(sheddable=0.3, last=0.0)]),
    client_share=st.sampled_from([None, 0.5, 1.0]),
)


class AdmissionMachine(RuleBasedStateMachine):
    @initialize(record=SETTINGS)
    def begin(self, record: settings.Admission) -> None:
        self.record = record
        self.policy = Admission(record)
        self.limiter = ConcurrencyLimiter(record.limit)
        self.codels = [CoDel(record.codel) for _ in RANKS]
        self.now = 0
        self.mean = 0
        self.names = count()
        self.inside: list[tuple[int, str | None]] = []
        self.line: list[Waiting] = []  # of those who wait, in the order in which they came
        self.turns: dict[int, list[str | None]] = {rank: [] for rank in RANKS}
        self.decided: list[tuple[Waiting, Reason | None]] = []
        self.came = self.gone = self.left = self.refused = 0

    # The reference.

    def room(self, rank: int, places: int) -> int:
        return ceilings(self.record.shares, places)[rank]

    def of(self, rank: int, client: str | None) -> list[Waiting]:
        return [i for i in self.line if i.rank == rank and i.client == client]

    def held(self, client: str | None) -> int:
        inside = [name for _, name in self.inside if name == client]
        return len(inside) + len([item for item in self.line if item.client == client])

    def take_out(self, item: Waiting) -> None:
        self.line.remove(item)
        if not self.of(item.rank, item.client):
            self.turns[item.rank].remove(item.client)

    def notice(self, rank: int) -> None:
        if not self.turns[rank]:
            self.codels[rank].on_dequeue(self.now, self.now, queue_empty=True)

    def send_away(self, item: Waiting, reason: Reason) -> None:
        self.decided.append((item, reason))
        self.refused += 1

    def call_in(self) -> None:
        for rank in RANKS:
            while self.turns[rank] and len(self.inside) < self.room(rank, self.limiter.limit):
                newest = takes_newest(self.record.order, len(self.line), self.limiter.limit)
                client = self.turns[rank][0]
                item = self.of(rank, client)[-1 if newest else 0]
                self.take_out(item)
                if client in self.turns[rank]:
                    self.turns[rank].remove(client)
                    self.turns[rank].append(client)
                since = min(self.now, item.since + self.mean)
                ends = not self.turns[rank]
                if not self.codels[rank].on_dequeue(self.now, since, ends):
                    self.send_away(item, Reason.WAITED)
                elif item.leaves_at < NEVER and not can_finish(
                    self.now, item.leaves_at, self.mean, enqueued_at=item.since
                ):
                    self.send_away(item, Reason.DEADLINE)
                else:
                    self.limiter.try_acquire(self.now)
                    self.inside.append((self.now, item.client))
                    self.decided.append((item, None))

    def expected(self, rank: int, client: str | None, leaves_at: int) -> Reason | bool | None:
        """Why not; or True for in, None for wait."""
        share = self.record.client_share
        if leaves_at <= self.now:
            return Reason.DEADLINE
        if client and share and self.held(client) >= max(1, int(self.limiter.limit * share)):
            return Reason.CLIENT
        if len(self.inside) < self.room(rank, self.limiter.limit):
            return True
        loser = None
        if len(self.line) >= self.room(rank, self.record.queue):
            lower = [item for item in self.line if item.rank > rank]
            if not lower:
                full = self.room(rank, self.limiter.limit) == self.limiter.limit
                return Reason.LIMIT if full else Reason.SHED
            worst = max(item.rank for item in lower)
            longest = max(self.turns[worst], key=lambda name: len(self.of(worst, name)))
            loser = self.of(worst, longest)[0]
        free = self.record.queue - len(self.line) + bool(loser)
        if client and (mine := self.of(rank, client)) and len(mine) >= free:
            return Reason.CLIENT
        if loser is not None:
            self.take_out(loser)
            self.notice(loser.rank)
            self.send_away(loser, Reason.SHED)
        return None

    # Events.

    @rule(step=st.integers(0, 20))
    def wait(self, step: int) -> None:
        self.now += step * MILLISECOND
        self.policy.on_wakeup(self.now)
        for item in [i for i in self.line if i.since + self.record.wait <= self.now]:
            self.take_out(item)
            self.notice(item.rank)
            self.send_away(item, Reason.WAITED)

    @rule(
        those=st.lists(
            st.tuples(st.sampled_from(RANKS), st.sampled_from([None, "a", "b", "c"])),
            min_size=1,
            max_size=10,
        ),
        patience=st.one_of(st.none(), st.integers(0, 40)),
    )
    def arrive(self, those: list[tuple[int, str | None]], patience: int | None) -> None:
        leaves_at = NEVER if patience is None else self.now + patience * MILLISECOND
        for rank, client in those:
            self.came += 1
            due = self.expected(rank, client, leaves_at)
            answer = self.policy.try_admit(self.now, rank, client, leaves_at, next(self.names))
            if due is True:
                assert answer is None
                self.limiter.try_acquire(self.now)
                self.inside.append((self.now, client))
            elif due is None:
                assert isinstance(answer, Waiting)
                self.line.append(answer)
                if client not in self.turns[rank]:
                    self.turns[rank].append(client)
            else:
                assert isinstance(answer, Rejection)
                assert answer.reason is due
                self.refused += 1
            self.compare()

    @precondition(lambda self: hasattr(self, "policy") and self.inside)
    @rule(data=st.data(), outcome=st.sampled_from(Outcome))
    def end(self, data: st.DataObject, outcome: Outcome) -> None:
        began, client = data.draw(st.sampled_from(self.inside))
        self.inside.remove((began, client))
        time = self.now - began
        self.limiter.release(self.now, time, outcome)
        if outcome is not IGNORED:
            self.mean = self.mean + ((time - self.mean) // 8) if self.mean else time
        self.gone += 1
        self.call_in()
        self.policy.on_done(self.now, began, outcome, client)

    @precondition(lambda self: hasattr(self, "policy") and self.line)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(self.line))
        self.take_out(item)
        self.notice(item.rank)
        self.left += 1
        self.policy.on_left(self.now, item)

    # Agreement.

    def compare(self) -> None:
        decided = self.policy.drain_decided()
        assert len(decided) == len(self.decided)
        for item, (due, reason) in zip(decided, self.decided, strict=True):
            assert item is due
            if reason is None:
                assert item.answer is True
            else:
                assert isinstance(item.answer, Rejection)
                assert item.answer.reason is reason
        self.decided.clear()

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "policy"):
            return
        self.compare()
        found = self.policy.snapshot(self.now)
        assert found[:4] == (len(self.inside), self.limiter.limit, len(self.line), self.mean)
        assert sum(found.refused) == self.refused
        ended = self.gone + self.left + self.refused
        assert self.came == found.inside + found.waiting + ended
        assert (sum(found.done), found.left) == (self.gone, self.left)
        assert self.policy._check()
        oldest = self.line[0].since + self.record.wait if self.line else None
        assert self.policy.next_wakeup() == oldest
        assert len(self.line) <= self.record.queue
        assert all(item.answer is None for item in self.line)

    @invariant()
    def nobody_waits_before_an_empty_house(self) -> None:
        if hasattr(self, "policy") and not self.inside:
            assert not self.line


AdmissionMachine.TestCase.settings = Examples(max_examples=300)
TestAdmissionMachine = pytest.mark.slow(AdmissionMachine.TestCase)
