"""Turns: asked for by who has most, counted from before they were asked for, given on in time."""

from random import Random

from tidegate.core.errands import Release, Renew, Report, Take
from tidegate.core.leases import Leases
from tidegate.core.turns import GUARD, TimeSlots, Turn
from tidegate.settings import spool as settings
from tidegate.units import MILLISECOND, MINUTE, SECOND

MS = MILLISECOND
TTL = 10 * SECOND
TWO = settings.Turns(through="nats://a:1", leases=2)


def reports(**backlogs: int) -> list[Report]:
    return [Report(name, backlog, 0, 0.0) for name, backlog in backlogs.items()]


def a_turn(name: str = "a", of: settings.Turns = TWO, **backlogs: int) -> Turn:
    turn = Turn(of, Random(1), name)
    line = backlogs or {name: 1}
    turn.on_reports(reports(**line), line[name])
    return turn


def taken(turn: Turn, now: int, leases: Leases, name: str = "a", *, paced: bool = True) -> None:
    """Run what it asks for until it asks for nothing."""
    for _ in range(20):
        errand = turn.errand(now, wants=True, paced=paced)
        if errand is None:
            return
        answer = leases.run(now, errand, name)
        if isinstance(errand, Take):
            assert answer is None or type(answer) is int
            turn.on_taken(now, errand, answer)
        elif isinstance(errand, Renew):
            turn.on_renewed(errand, ours=answer is True)
    raise AssertionError("it does not stop to ask")


def test_it_asks_for_nothing_before_it_knows_its_fleet_or_without_a_wish() -> None:
    turn = Turn(TWO, Random(1), "a")
    assert turn.errand(0, wants=True, paced=False) is None
    assert turn.next_wakeup(0, wants=True) is None
    turn = a_turn()
    assert turn.errand(0, wants=False, paced=False) is None
    assert turn.errand(0, wants=True, paced=False) == Take(0, 0, TTL)


def test_a_lease_is_counted_from_before_it_was_asked_for() -> None:
    turn = a_turn()
    turn.on_taken(4 * SECOND, Take(SECOND, 0, TTL), 7)
    assert (turn.slot, turn.fence) == (0, 7)
    assert turn.holds(11 * SECOND - 1)
    assert not turn.holds(11 * SECOND)


def test_it_renews_at_a_third_and_what_it_misses_it_asks_for_again() -> None:
    turn = a_turn()
    turn.on_taken(0, Take(0, 0, TTL), 7)
    assert turn.errand(TTL // 3 - 1, wants=True, paced=True) is None
    renew = turn.errand(TTL // 3, wants=True, paced=True)
    assert renew == Renew(TTL // 3, 0, 7, TTL)
    turn.on_lost(TTL // 3 + SECOND)
    again = turn.errand(2 * (TTL // 3), wants=True, paced=True)
    assert type(again) is Renew
    turn.on_renewed(again, ours=True)
    assert turn.holds(again.asked + TTL - 1)


def test_a_lease_that_was_lost_is_not_held() -> None:
    turn = a_turn()
    turn.on_taken(0, Take(0, 0, TTL), 7)
    turn.on_renewed(Renew(SECOND, 0, 6, TTL), ours=False)  # of another lease
    assert turn.holds(SECOND)
    turn.on_renewed(Renew(SECOND, 0, 7, TTL), ours=False)
    assert not turn.holds(SECOND)


def test_the_further_back_the_more_rarely_it_asks() -> None:
    asks = []
    for backlog in (1, 50, 100):
        turn = a_turn(a=backlog, b=90, c=80, d=40, e=30, f=20)
        asked = 0
        for now in range(0, MINUTE, 100 * MS):
            for _ in range(3):
                errand = turn.errand(now, wants=True, paced=True)
                if type(errand) is Take:
                    asked += 1
                    turn.on_taken(now, errand, None)
        asks.append(asked)
    few, more, most = asks
    assert few < more < most
    assert few >= 2 * 60 // 6  # both leases within every half ttl, and a fifth by chance


def test_its_turn_is_over_after_a_slice_if_somebody_waits() -> None:
    turn, leases = a_turn(a=3, b=2, c=1), Leases()
    taken(turn, 0, leases)
    now = 0
    for now in range(SECOND, MINUTE, SECOND):
        taken(turn, now, leases)
        assert turn.holds(now)
    assert turn.errand(MINUTE, wants=True, paced=True) == Release(MINUTE, 0, 1)
    assert not turn.holds(MINUTE)
    waits = turn.next_wakeup(MINUTE, wants=True)
    assert waits is not None
    assert waits >= MINUTE + 4 * SECOND  # though it has the most: the others first


def test_an_amount_ends_a_turn_as_well_and_alone_it_goes_on() -> None:
    turn = a_turn(a=3, b=2, c=1)
    turn.on_taken(0, Take(0, 0, TTL), 1)
    turn.on_sent(10**9)
    assert type(turn.errand(SECOND, wants=True, paced=True)) is Release
    turn = a_turn(a=3, b=2)
    turn.on_taken(0, Take(0, 0, TTL), 1)
    turn.on_sent(10**9)
    assert turn.errand(SECOND, wants=True, paced=True) is None
    assert turn.holds(SECOND)


def test_who_no_longer_wants_it_gives_it_back() -> None:
    turn = a_turn()
    turn.on_taken(0, Take(0, 0, TTL), 3)
    assert turn.errand(SECOND, wants=False, paced=True) == Release(SECOND, 0, 3)
    assert turn.errand(SECOND, wants=False, paced=True) is None


def test_a_lease_without_a_share_moves_down() -> None:
    turn, leases = a_turn(a=3, b=2), Leases()
    leases.take(0, 0, "b", TTL)
    taken(turn, 0, leases)
    assert turn.slot == 1
    turn.on_reports(reports(a=3), 3)  # b is done
    leases.release(SECOND, 0, 1)
    taken(turn, SECOND, leases)
    assert turn.slot == 0
    assert leases.holder(SECOND, 1) is None


def test_when_nobody_paces_the_holder_of_another_lease_does() -> None:
    turn, leases = a_turn(a=3, b=2), Leases()
    leases.take(0, 0, "b", TTL)
    taken(turn, 0, leases)
    taken(turn, 5 * SECOND, leases)
    assert turn.slot == 1
    leases.release(6 * SECOND, 0, 1)
    taken(turn, 7 * SECOND, leases, paced=True)
    assert turn.slot == 1
    taken(turn, 8 * SECOND, leases, paced=False)
    assert turn.slot == 0


def test_it_says_where_it_stands() -> None:
    turn = a_turn(a=1, b=9, c=8, d=7)
    assert turn.snapshot(0) == (None, 0, 0, 2)
    turn.on_taken(0, Take(0, 1, TTL), 5)
    assert turn.snapshot(SECOND) == (1, 5, 59 * SECOND, 2)
    assert turn.seats == 2


def test_slots_of_time_belong_to_one_part_of_the_fleet_each() -> None:
    of = settings.Turns(through="slots", members=12, leases=4)
    fleet = [TimeSlots(of, f"c{number}") for number in range(12)]
    for member in fleet:
        member.on_wall(0, 0)
    assert {member.slots for member in fleet} == {3}
    had = dict.fromkeys(range(12), 0)
    for now in range(0, 9 * MINUTE, SECOND):
        for number, member in enumerate(fleet):
            had[number] += member.holds(now)
        assert sum(member.holds(now) for member in fleet) < 12
    assert set(had.values()) == {3 * 58}  # each its third, less a second on either side


def test_clocks_that_differ_by_a_second_never_bring_two_slots_together() -> None:
    of = settings.Turns(through="slots", members=8, leases=4)
    early, late = TimeSlots(of, "c0"), TimeSlots(of, "c4")
    early.on_wall(0, 0)
    late.on_wall(0, SECOND)
    assert {early.holds(30 * SECOND), late.holds(30 * SECOND)} == {True, False}
    assert not any(early.holds(at) and late.holds(at) for at in range(0, 4 * MINUTE, 100 * MS))


def test_a_slot_wakes_when_it_begins_and_when_it_ends() -> None:
    of = settings.Turns(through="slots", members=8, leases=4)
    slots = TimeSlots(of, "c0")
    assert not slots.holds(0)
    assert slots.next_wakeup(0) is None
    slots.on_wall(0, 17 * SECOND)
    now, edges = 0, []
    for _ in range(6):
        at = slots.next_wakeup(now)
        assert at is not None
        assert at > now
        assert slots.holds(at) is not slots.holds(at - 1)
        now = at
        edges.append(now)
    assert edges[2] - edges[0] == 2 * MINUTE
    assert edges[1] - edges[0] in {MINUTE - 2 * GUARD, MINUTE + 2 * GUARD}


def test_one_slot_is_always_ours() -> None:
    slots = TimeSlots(settings.Turns(through="slots", members=3), "a")
    slots.on_wall(0, 0)
    assert slots.holds(MINUTE)
    assert slots.next_wakeup(0) is None
