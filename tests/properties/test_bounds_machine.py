"""Any sequence of arrivals, deliveries and other files, against bounds checked one by one."""

import itertools
from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate.core.bounds import AGAIN_MAX, AGAIN_MIN, Bounds, Cause, Stock
from tidegate.settings import spool as settings
from tidegate.units import HOUR, SECOND

DISK = 100_000
SIZES = st.one_of(st.integers(1, 50), st.integers(1, DISK))


class BoundsMachine(RuleBasedStateMachine):
    """The world: `kept` and `records` of the lane, `others` on the disk, and who knows of it."""

    @initialize(
        own=st.one_of(st.none(), st.integers(1000, DISK)),
        most=st.one_of(st.none(), st.integers(1, 200)),
        low=st.sampled_from([0.1, 0.5, 0.95, 1.0]),
        free=st.sampled_from([0.0, 0.1, 0.5]),
        full=st.sampled_from(["refuse", "drop_oldest"]),
        promised=st.sampled_from([0, DISK // 4]),
    )
    def begin(
        self, own: int | None, most: int | None, low: float, free: float, full: str, promised: int
    ) -> None:
        self.settings = settings.Bounds(
            bytes=own, records=most, low=low, free=free, full=full, age=HOUR
        )
        self.policy = Bounds(self.settings, Random(7), 0)
        self.now, self.promised, self.no_space = 0, promised, False
        self.kept = self.records = self.others = 0
        self.oldest: int | None = None
        self.look()

    def spare(self) -> int:
        free = DISK - self.kept - self.others
        return free - int(self.settings.free * DISK) - self.promised

    def fits(self, size: int, records: int) -> bool:
        """By definition, bound by bound."""
        own, most = self.settings.bytes, self.settings.records
        if (own is not None and size > own) or (most is not None and records > most):
            return False
        if self.no_space:
            return False
        if self.settings.full == "drop_oldest":
            return bool(self.records) or self.spare() >= size
        if self.spare() < max(size, 1):
            return False
        if not self.records:
            return True
        return (own is None or self.kept + size <= own) and (
            most is None or self.records + records <= most
        )

    @rule(size=SIZES, records=st.integers(1, 250))
    def accept(self, size: int, records: int) -> None:
        was_full = self.policy.full
        refusal = self.policy.try_accept(self.now, size, records)
        if was_full is not None:
            assert refusal is was_full  # nobody slips in
            return
        assert (refusal is None) == self.fits(size, records)
        if refusal is None:
            self.kept += size
            self.records += records
            self.oldest = self.now if self.oldest is None else self.oldest
        elif self.policy.full is not None:
            assert refusal.passes

    @rule(part=st.floats(0, 1))
    def deliver(self, part: float) -> None:
        gone = int(self.kept * part) if part < 1 else self.kept
        self.policy.on_delivered(self.now, gone)
        self.kept -= gone
        self.records = 0 if part == 1 else self.records - int(self.records * part)
        self.oldest = self.oldest if self.records else None
        self.look()

    @rule(others=st.integers(0, DISK))
    def others_write(self, others: int) -> None:
        self.others = min(others, DISK - self.kept)
        self.look()

    @rule(works=st.booleans())
    def the_disk_speaks(self, works: bool) -> None:
        self.no_space = not works
        if works:
            self.policy.on_space(self.now)
        else:
            self.policy.on_no_space(self.now)
            assert self.policy.full is not None

    @rule(step=st.one_of(st.integers(0, SECOND), st.integers(0, 2 * HOUR)))
    def wait(self, step: int) -> None:
        self.now += step
        self.look()

    def look(self) -> None:
        was = self.policy.full
        age = None if self.oldest is None else self.now - self.oldest
        free = DISK - self.kept - self.others
        self.policy.on_stock(
            self.now, Stock(self.kept, self.records, age, free, DISK, self.promised)
        )
        if self.fits(0, 0) and not self.records:
            assert self.policy.full is None
        if was is not None and self.policy.full is None:
            room = self.kept + max(0, self.spare())
            own = self.settings.bytes
            room = room if own is None else min(own, room)
            assert not self.records or self.kept <= self.settings.low * room

    @rule()
    def drop_what_is_to_go(self) -> None:
        for _ in range(3):
            drop = self.policy.to_drop()
            if drop is None:
                break
            if drop.cause is Cause.EXPIRED:
                assert self.oldest is not None
                assert self.now - self.oldest > HOUR
                self.kept = self.records = 0
            else:
                assert self.settings.full == "drop_oldest"
                assert drop.bytes + drop.records > 0
                assert drop.bytes <= self.kept
                assert drop.records <= self.records
                self.kept -= drop.bytes
                self.records -= max(drop.records, self.records * drop.bytes // (self.kept + 1))
                self.records = max(0, self.records)
            self.oldest = self.oldest if self.records else None
            self.look()

    @invariant()
    def tells_a_time_that_makes_sense(self) -> None:
        if hasattr(self, "policy"):
            assert AGAIN_MIN <= self.policy.retry_after(self.now) <= AGAIN_MAX
            left = self.policy.time_to_full(self.now)
            assert left is None or left >= 0
            assert (left == 0) >= (self.policy.full is not None)

    @invariant()
    def changes_take_turns(self) -> None:
        if hasattr(self, "policy"):
            changes = self.policy.drain_transitions()
            assert all(c.before != c.after for c in changes)
            for one, other in itertools.pairwise(changes):
                assert one.after == other.before
            seen = self.policy.snapshot(self.now)
            assert seen.full == (self.policy.full is not None)
            assert seen.kept == self.kept
            assert seen.accept_rate >= 0 <= seen.drain_rate


TestBoundsMachine = pytest.mark.slow(BoundsMachine.TestCase)  # a hundred runs
