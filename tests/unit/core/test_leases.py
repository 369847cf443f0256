"""The law of leases, reports and a budget."""

from tidegate.core.errands import Budget, Look, Publish, Release, Renew, Report, Say, Take
from tidegate.core.leases import REPORT_KEPT, Leases
from tidegate.units import SECOND

TTL = 10 * SECOND


def test_a_lease_has_one_holder_until_it_ends() -> None:
    leases = Leases()
    assert leases.take(0, 1, "a", TTL) == 1
    assert leases.take(TTL - 1, 1, "b", TTL) is None
    assert leases.holder(TTL - 1, 1) == "a"
    assert leases.take(TTL, 1, "b", TTL) == 2
    assert not leases.renew(TTL, 1, 1, TTL)
    leases.release(TTL, 1, 1)
    assert leases.holder(TTL, 1) == "b"


def test_renewed_it_goes_on_and_given_back_it_is_free() -> None:
    leases = Leases()
    assert leases.take(0, 0, "a", TTL) == 1
    assert leases.renew(9 * SECOND, 0, 1, TTL)
    assert leases.take(18 * SECOND, 0, "b", TTL) is None
    leases.release(18 * SECOND, 0, 1)
    assert leases.take(18 * SECOND, 0, "b", TTL) == 2
    assert not leases.renew(28 * SECOND, 0, 2, TTL)  # ended: nobody may have it back so


def test_who_has_lost_the_answer_asks_again_and_is_fenced_from_itself() -> None:
    leases = Leases()
    assert leases.take(0, 0, "a", TTL) == 1
    assert leases.take(SECOND, 0, "a", TTL) == 2
    assert not leases.renew(SECOND, 0, 1, TTL)


def test_fences_grow_over_all_slots() -> None:
    leases = Leases()
    assert [leases.take(0, slot, "a", TTL) for slot in (3, 0, 2)] == [1, 2, 3]


def test_a_budget_is_the_word_of_the_last_holder_of_lease_0() -> None:
    leases = Leases()
    assert leases.take(0, 0, "a", TTL) == 1
    assert leases.publish(Budget(1, 5.0, 1))
    assert leases.take(TTL, 0, "b", TTL) == 2
    assert not leases.publish(Budget(2, 9.0, 1))
    assert leases.budget == Budget(1, 5.0, 1)
    assert leases.publish(Budget(2, 6.0, 2))


def test_a_report_stands_for_a_minute() -> None:
    leases = Leases()
    report = Report("a", 1, 2, 3.0)
    leases.report(0, report)
    assert leases.reports(REPORT_KEPT - 1) == [report]
    assert leases.reports(REPORT_KEPT) == []


def test_it_runs_every_errand() -> None:
    leases = Leases()
    report, budget = Report("a", 1, 2, 3.0), Budget(1, 5.0, 1)
    assert leases.run(0, Take(0, 0, TTL), "a") == 1
    assert leases.run(0, Renew(0, 0, 1, TTL), "a") is True
    assert leases.run(0, Say(0, report), "a") is None
    assert leases.run(0, Publish(0, budget), "a") is True
    assert leases.run(0, Look(0), "a") == ([report], budget)
    assert leases.run(0, Release(0, 0, 1), "a") is None
    assert leases.holder(0, 0) is None
