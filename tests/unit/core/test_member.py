"""A collector in its fleet: who paces, whose word counts and for how long."""

from random import Random

import pytest

from tidegate.core.errands import Budget, Look, Publish, Release, Report, Say, Take
from tidegate.core.leases import Leases
from tidegate.core.member import YOUNG, Member
from tidegate.settings import spool as settings
from tidegate.units import MILLISECOND, MINUTE, SECOND, Instant

MS = MILLISECOND
LIVE = 1_000_000.0
BASE = 5 * MS


def lane(**turns: object) -> settings.Lane:
    of = settings.Turns(**{"through": "nats://a:1", **turns})  # type: ignore[arg-type]
    return settings.Lane(to="file:x", turns=of)


def member(name: str = "a", **turns: object) -> Member:
    it = Member(lane(**turns), Random(name), name)
    it.on_live(LIVE)
    it.on_backlog(0, 10**9, 0)
    return it


def asked(it: Member, now: Instant, leases: Leases, name: str = "a", *, wants: bool = True) -> None:
    for _ in range(30):
        errand = it.errand(now, wants=wants)
        if errand is None:
            return
        assert it.errand(now, wants=wants) is None  # one at a time
        it.on_errand(now, errand, leases.run(now, errand, name))
    raise AssertionError("it does not stop to ask")


def lived(it: Member, leases: Leases, since: int, until: int, name: str = "a") -> int:
    """Seconds of a life in which all that may be sent is sent, and the sink is well."""
    for now in range(since, until, SECOND // 4):
        asked(it, now, leases, name)
        if now % SECOND == 0:
            it.on_window(now, BASE, BASE, 0, used=it.share(now) > 0)
    return until


def test_alone_it_has_all_of_its_own_pace() -> None:
    it = Member(settings.Lane(to="file:x"), Random(1), "a")
    it.on_live(LIVE)
    it.on_window(0, BASE, BASE, 0, used=True)
    assert it.share(0) == it.budget_rate(0) == pytest.approx(0.03 * LIVE)
    assert it.paces(0)
    assert it.errand(0, wants=True) is None
    assert it.why(0) == "alone"
    it.on_close(0)
    assert it.share(0) == 0.01 * LIVE


def test_it_says_looks_takes_paces_and_only_then_replays() -> None:
    it, leases = member(), Leases()
    kinds = []
    for _ in range(7):
        errand = it.errand(0, wants=True)
        if errand is None:
            break
        kinds.append(type(errand))
        it.on_errand(0, errand, leases.run(0, errand, "a"))
    assert kinds == [Say, Look, Take, Look, Publish]
    assert leases.budget == Budget(1, 0.01 * LIVE, 1, 1)
    assert it.share(0) == 0.01 * LIVE
    assert it.why(0) == "holds lease 0"


def test_a_budget_ends_when_no_new_word_comes() -> None:
    it, leases = member(), Leases()
    asked(it, 0, leases)
    assert it.share(YOUNG - 1) > 0
    assert it.share(YOUNG) == 0
    assert it.budget_rate(YOUNG) is None
    assert it.why(YOUNG) == "holds lease 0, and waits for a budget"


def test_what_was_said_before_one_first_looked_starts_nobody() -> None:
    it, leases = member("b"), Leases()
    leases.take(0, 0, "a", MINUTE)
    leases.publish(Budget(99, 5 * LIVE, 1, 4))
    leases.report(0, Report("a", 2 * 10**9, 0, LIVE))
    asked(it, SECOND, leases, "b")
    assert it.slot(SECOND) == 1
    assert it.share(SECOND) == 0
    leases.publish(Budget(100, LIVE, 1, 4))
    asked(it, 2 * SECOND, leases, "b")
    assert it.share(2 * SECOND) == LIVE / 4
    assert it.share(4 * SECOND - 1) == LIVE / 4  # it is no older than the look before
    assert it.share(4 * SECOND) == 0


def test_an_earlier_fence_is_not_listened_to() -> None:
    it = member()
    it.on_budget(Budget(5, LIVE, 3, 1), 0)
    it.on_budget(Budget(6, LIVE, 2, 1), SECOND)
    assert not it.somebody_replays(SECOND)
    it.on_budget(Budget(6, LIVE, 3, 1), SECOND)
    assert it.somebody_replays(SECOND)


def test_a_coordinator_that_has_lost_all_it_knew_is_listened_to_after_a_while() -> None:
    it = member()
    it.on_budget(Budget(5, LIVE, 3, 1), 0)
    it.on_budget(Budget(6, LIVE, 3, 1), SECOND)
    for second in range(2, 40):
        it.on_budget(Budget(second, 0.7 * LIVE, 1, 1), second * SECOND)
        heard = 0.7 * LIVE if second > 30 else LIVE if second < 3 else None
        assert it.budget_rate(second * SECOND) == heard


def test_a_lease_beyond_the_shares_has_no_part() -> None:
    it, leases = member("b"), Leases()
    leases.take(0, 0, "a", MINUTE)
    leases.report(0, Report("a", 1, 0, 0.0))
    leases.publish(Budget(1, LIVE, 1, 1))
    asked(it, 0, leases, "b")
    leases.publish(Budget(2, LIVE, 1, 1))
    asked(it, SECOND, leases, "b")
    assert it.slot(SECOND) == 1
    assert it.share(SECOND) == 0


def test_the_live_rate_is_that_of_the_fleet() -> None:
    it, leases = member(), Leases()
    leases.report(0, Report("b", 0, 0, 3 * LIVE))
    leases.report(0, Report("a", 0, 0, 77 * LIVE))  # one's own word of old is no other's
    asked(it, 0, leases)
    assert leases.budget is not None
    assert leases.budget.rate == pytest.approx(0.04 * LIVE)


def test_a_gate_that_closes_is_said_before_the_lease_is_given_back() -> None:
    it, leases = member(), Leases()
    now = lived(it, leases, 0, 40 * SECOND)
    assert it.share(now - 1) > 0.5 * LIVE
    it.on_close(now)
    publish = it.errand(now, wants=False)
    assert type(publish) is Publish
    assert publish.budget.rate == 0
    it.on_errand(now, publish, leases.run(now, publish, "a"))
    assert type(it.errand(now, wants=False)) is Release
    assert it.share(now) == 0


def test_who_takes_over_goes_on_from_there_unless_it_has_stopped() -> None:
    for stops in (False, True):
        first, second, leases = member("a"), member("b"), Leases()
        leases.report(0, Report("b", 1, 0, LIVE))
        now = lived(first, leases, 0, 30 * SECOND)
        asked(second, now, leases, "b")  # holds lease 1
        now = lived(first, leases, now, now + 2 * SECOND)
        asked(second, now, leases, "b")
        if stops:
            first.on_close(now)
        else:
            first.on_backlog(now, 0, 0)
        asked(first, now, leases, "a", wants=False)
        rate = leases.budget.rate if leases.budget is not None else 0
        for later in range(now, now + 20 * SECOND, SECOND // 2):
            asked(second, later, leases, "b")
        assert second.slot(now + 19 * SECOND) == 0
        assert leases.budget is not None
        assert leases.budget.rate == pytest.approx(0.02 * LIVE if stops else rate, rel=0.2)


def test_a_lost_coordinator_stops_it_when_the_budget_is_old() -> None:
    it, leases = member(), Leases()
    now = lived(it, leases, 0, 30 * SECOND) - SECOND // 4
    while it.errand(now, wants=True) is None:
        now += SECOND // 4
    it.on_lost(now)
    assert it.errand(now, wants=True) is None  # not at once again
    assert it.next_wakeup(now, wants=True) is not None
    assert it.share(now + YOUNG) == 0
    assert it.why(now) == "the coordinator is lost"
    asked(it, now + SECOND, leases)
    assert it.why(now + SECOND) == "holds lease 0"


def test_slow_goes_on_at_a_tenth_among_those_that_wait_until_the_gate_closes() -> None:
    it, leases = member(lost="slow"), Leases()
    leases.report(0, Report("b", 5, 0, 0.0))
    lived(it, leases, 0, 29 * SECOND)
    now = 29 * SECOND
    asked(it, now, leases)
    said = leases.budget
    assert said is not None
    it.errand(now + SECOND, wants=True)
    it.on_lost(now + SECOND)
    assert it.share(now + 2 * SECOND) == said.rate / 2  # still young
    assert it.share(now + MINUTE) == pytest.approx(said.rate / 10 / 2)
    it.on_close(now + MINUTE)
    assert it.share(now + MINUTE) == 0


def test_in_slots_of_time_it_has_the_pace_of_its_part() -> None:
    it = member(through="slots", members=20, leases=4)
    assert it.share(0) == 0
    assert it.why(0) == "waits for its slot of time"
    it.on_wall(0, 0)
    at = it.next_wakeup(0, wants=True)
    assert at is not None
    assert it.share(at) == pytest.approx(0.01 * LIVE * 5)
    assert it.why(at) == "in its slot of time"
    assert it.next_wakeup(at, wants=False) is None


def test_who_has_nothing_to_replay_asks_rarely() -> None:
    it, leases = member(), Leases()
    it.on_backlog(0, 0, 0)
    asks = 0
    now = 0
    while now < 10 * MINUTE:
        while (errand := it.errand(now, wants=False)) is not None:
            asks += 1
            it.on_errand(now, errand, leases.run(now, errand, "a"))
        woken = it.next_wakeup(now, wants=False)
        assert woken is not None
        assert woken > now
        now = woken
    assert asks <= 62  # a report and a look in twenty seconds
