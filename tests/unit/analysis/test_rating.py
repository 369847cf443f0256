"""What the fluid says of a system under one trigger, in the words of the report."""

import pytest
from systems import stall, store

from tidegate.analysis.rating import Case, Rating, ends_well, is_bad, rate
from tidegate.findings import Outcome
from tidegate.units import MILLISECOND, SECOND


def test_a_store_that_stays_down_is_rated_so() -> None:
    rating = rate(Case(store(), "stall"))
    assert rating.outcome == "sticks"
    assert rating.recovered_after is None
    assert rating.recovery_measure() is None
    assert rating.during == pytest.approx(0.0, abs=0.05)


def test_the_same_store_without_retries_comes_back() -> None:
    rating = rate(Case(store(attempts=1), "stall"))
    assert rating.outcome == "recovers"
    assert rating.recovered_after is not None
    assert (measure := rating.recovery_measure()) is not None
    assert (measure.value, measure.unit, measure.how) == (rating.recovered_after, "s", "fluid")


def test_what_nobody_notices_is_back_at_once() -> None:
    rating = rate(Case(store(rate=20.0, triggers={"blink": stall(50 * MILLISECOND)}), "blink"))
    assert (rating.outcome, rating.recovered_after) == ("unharmed", 0.0)


def test_the_client_that_fares_worst_counts() -> None:
    rating = Rating("recovers", {"a": 0.9, "b": 0.4}, 3.0)
    measure = rating.during_measure()
    assert (measure.value, measure.low, measure.high, measure.runs) == (0.4, 0.4, 0.4, 0)
    assert (measure.unit, measure.how) == ("share", "fluid")


def test_bad_is_what_is_worse_than_a_recovery() -> None:
    assert [o for o in ("unharmed", "recovers") if is_bad(o)] == []  # type: ignore[arg-type]
    assert all(map(is_bad, ("slow to drain", "oscillates", "sticks")))


def test_to_end_well_is_to_recover_as_soon_as_the_objective_asks() -> None:
    def ended(outcome: Outcome, after: float | None) -> bool:
        return ends_well(Rating(outcome, {}, after), 60 * SECOND)

    assert ended("recovers", 60.0)
    assert ended("unharmed", 0.0)
    assert not ended("recovers", 60.1)
    assert not ended("sticks", None)
    assert not ended("slow to drain", 5.0)
