"""Whatever is late, lost or doubled on the way to a coordinator: one holder, one budget."""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count, cycle, pairwise
from random import Random
from typing import Final, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.core.errands import Budget, Errand, Report, Take
from tidegate.core.leases import Answer, Leases
from tidegate.core.member import YOUNG, Member
from tidegate.core.turns import TimeSlots
from tidegate.settings import spool as settings
from tidegate.units import MILLISECOND, SECOND, Instant

LANE: Final = settings.Lane(
    to="file:x",
    turns=settings.Turns(
        through="nats://a:1", leases=2, ttl=4 * SECOND, slice=5 * SECOND, amount=10_000
    ),
)
NAMES: Final = ("a", "b", "c", "d")


class Asked(NamedTuple):
    who: int
    errand: Errand


class Told(NamedTuple):
    who: int
    errand: Errand
    answer: Answer


class Fleet:
    """Four members, a ledger, and a network that keeps what it carries as long as it likes."""

    def __init__(self) -> None:
        self.now: Instant = 0
        self.leases = Leases()
        self.members = [Member(LANE, Random(name), name) for name in NAMES]
        self.backlogs = [400, 300, 200, 100]
        for member, backlog in zip(self.members, self.backlogs, strict=True):
            member.on_live(1000.0)
            member.on_backlog(0, backlog, 0)
        self.wants = [True] * 4
        self.requests: list[Asked] = []
        self.answers: list[Told] = []
        self.waits: list[Errand | None] = [None] * 4
        self.fences: list[int] = []
        self.said: dict[tuple[int, int], Budget] = {}

    def ask(self, who: int) -> None:
        errand = self.members[who].errand(self.now, wants=self.wants[who])
        if errand is not None:
            self.waits[who] = errand
            self.requests.append(Asked(who, errand))

    def arrive(self, which: int) -> None:
        """A request, not always the first, reaches the ledger."""
        if self.requests:
            who, errand = self.requests.pop(which % len(self.requests))
            answer = self.leases.run(self.now, errand, NAMES[who])
            if isinstance(errand, Take) and answer is not None:
                assert type(answer) is int
                self.fences.append(answer)
            if (budget := self.leases.budget) is not None:
                self.said[budget.number, budget.fence] = budget
            self.answers.append(Told(who, errand, answer))

    def come_back(self, which: int) -> None:
        """An answer reaches who asked, if it still waits for that."""
        if self.answers:
            who, errand, answer = self.answers.pop(which % len(self.answers))
            if self.waits[who] is errand:
                self.waits[who] = None
                self.members[who].on_errand(self.now, errand, answer)

    def give_up(self, who: int) -> None:
        """Nothing has come in time; what is on its way stays on its way."""
        if self.waits[who] is not None:
            self.waits[who] = None
            self.members[who].on_lost(self.now)

    def round_trip(self, who: int) -> None:
        """All that it wants to ask, at once."""
        for _ in range(20):
            before = len(self.requests)
            self.ask(who)
            if len(self.requests) == before:
                return
            self.arrive(before)
            self.come_back(len(self.answers) - 1)

    def window(self, who: int) -> None:
        self.members[who].on_window(self.now, 5, 5, 0, used=True)
        self.members[who].on_sent(1000)

    def close(self, who: int) -> None:
        self.wants[who] = not self.wants[who]
        if not self.wants[who]:
            self.members[who].on_close(self.now)

    def finish(self, who: int) -> None:
        self.backlogs[who] = 0 if self.backlogs[who] else 150
        self.members[who].on_backlog(self.now, self.backlogs[who], 0)
        self.wants[who] = self.backlogs[who] > 0

    def check(self) -> None:
        held = [member.slot(self.now) for member in self.members]
        slots = [slot for slot in held if slot is not None]
        assert len(slots) == len(set(slots)), "two hold one lease"
        for who, slot in enumerate(held):
            if slot is not None:
                assert self.leases.holder(self.now, slot) == NAMES[who]
        assert sum(member.paces(self.now) for member in self.members) <= 1
        self.check_shares()

    def check_shares(self) -> None:
        shares: dict[tuple[int, int], float] = {}
        for member in self.members:
            share = member.share(self.now)
            if share > 0:
                assert member.slot(self.now) is not None
                budget = member._budget
                assert budget is not None
                key = budget.number, budget.fence
                shares[key] = shares.get(key, 0.0) + share
        for key, total in shares.items():
            assert key in self.said
            assert total <= self.said[key].rate * (1 + 1e-9)


ACTIONS: Final = (
    "ask",
    "arrive",
    "come_back",
    "give_up",
    "round_trip",
    "window",
    "close",
    "finish",
)
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 3), st.integers(0, 3000)), max_size=120
)


@pytest.mark.slow  # a hundred fleets of up to 120 steps
@given(STEPS)
@example(
    [("round_trip", who, 0) for who in (0, 1, 2, 3)]
    + [("round_trip", step % 4, 200) for step in range(110)]
)
def test_no_delay_brings_two_holders_or_more_than_the_budget(
    steps: list[tuple[str, int, int]],
) -> None:
    fleet = Fleet()
    for action, which, after_ms in steps:
        fleet.now += after_ms * MILLISECOND
        fleet.check()
        getattr(fleet, action)(which)
        fleet.check()
    assert all(before < after for before, after in pairwise(fleet.fences))


@pytest.mark.slow  # a hundred fleets, each for a minute
@given(st.lists(st.integers(0, 5000), min_size=1, max_size=12), st.sampled_from([1000, 9000]))
@example([0, 3000, 0, 0, 0, 3000], 9000)
def test_no_slow_answer_brings_two_holders(delays_ms: list[int], patience_ms: int) -> None:
    """All ask five times a second; each request and each answer takes its time, in turn."""
    fleet, delays = Fleet(), cycle(delays_ms)
    due: list[tuple[Instant, int, Callable[[], None]]] = []
    order = count()

    def later(after: int, what: Callable[[], None]) -> None:
        heappush(due, (fleet.now + after * MILLISECOND, next(order), what))

    def poll(who: int) -> None:
        if fleet.waits[who] is None:
            fleet.ask(who)
            errand = fleet.waits[who]
            if errand is not None:
                later(next(delays), partial(arrive, who, errand))
                later(patience_ms, partial(give_up, who, errand))
        later(200, partial(poll, who))

    def arrive(who: int, errand: Errand) -> None:
        fleet.arrive(fleet.requests.index(Asked(who, errand)))
        later(next(delays), partial(come_back, who, errand))

    def come_back(who: int, errand: Errand) -> None:
        numbers = [number for number, told in enumerate(fleet.answers) if told.errand is errand]
        fleet.come_back(numbers[0])

    def give_up(who: int, errand: Errand) -> None:
        if fleet.waits[who] is errand:
            fleet.give_up(who)

    for who in range(4):
        poll(who)
    while fleet.now < 60 * SECOND:
        now, _, what = heappop(due)
        fleet.now = now - 1  # the last instant of what was
        fleet.check()
        fleet.now = now
        what()
        fleet.check()
    assert all(before < after for before, after in pairwise(fleet.fences))


@pytest.mark.slow  # a hundred fleets, each for a minute or two
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 1500)), min_size=30, max_size=80))
def test_where_nothing_is_lost_all_have_their_turn(steps: list[tuple[int, int]]) -> None:
    """However unevenly they are awake, nobody waits for ever, and somebody always paces."""
    fleet = Fleet()
    had: set[int] = set()
    for number in range(400):
        who, after_ms = steps[number % len(steps)]
        fleet.now += after_ms * MILLISECOND // 4
        for member in (who, number % 4):
            fleet.round_trip(member)
            fleet.window(member)
        fleet.check()
        had |= {w for w, member in enumerate(fleet.members) if member.slot(fleet.now) is not None}
    # Each member is awake each second or so: with slices of 5 s and two leases that is enough.
    assert had == {0, 1, 2, 3} or fleet.now < 30 * SECOND


@pytest.mark.slow  # a hundred times up to forty words
@given(st.lists(st.tuples(st.integers(1, 10), st.integers(0, 4000)), max_size=40))
def test_no_budget_is_gone_by_that_is_three_seconds_old(words: list[tuple[int, int]]) -> None:
    """Against the truth, which only who spoke it knows."""
    member, now = Member(LANE, Random(1), "a"), 0
    member.on_backlog(0, 10, 0)
    leases = Leases()
    leases.report(0, Report("b", 99, 0, 0.0))
    leases.take(0, 0, "b", 10**15)
    spoken: dict[int, Instant] = {}
    for number, (word, after_ms) in enumerate(words):
        now += after_ms * MILLISECOND
        leases.report(now, Report("b", 99, 0, 0.0))
        if word > 3:
            spoken[number] = now
            leases.publish(Budget(number, 100.0, 1, 2))
        for _ in range(10):
            errand = member.errand(now, wants=True)
            if errand is None:
                break
            member.on_errand(now, errand, leases.run(now, errand, "a"))
        if member.share(now) > 0:
            budget = leases.budget
            assert budget is not None
            assert now - spoken[budget.number] < YOUNG


@pytest.mark.slow  # up to eight clocks, 450 instants each
@given(
    st.integers(2, 200),
    st.integers(1, 8),
    st.lists(st.integers(-(SECOND // 2), SECOND // 2), min_size=2, max_size=8),
    st.integers(0, 10**15),
)
def test_clocks_within_a_second_never_bring_two_slots_of_time_together(
    members: int, leases: int, errors: list[int], start: int
) -> None:
    of = settings.Turns(through="slots", members=members, leases=leases)
    fleet = [TimeSlots(of, f"c{number}") for number in range(len(errors))]
    for slots, error in zip(fleet, errors, strict=True):
        slots.on_wall(0, start + error)
    for now in range(0, 150 * SECOND, SECOND // 3):
        mine = {slots._mine for slots in fleet if slots.holds(now)}
        assert len(mine) <= 1
