"""Closed forms of one service: what they say at their edges, and for callers who give up."""

import math

import pytest

from tidegate.analysis.theory import (
    Station,
    admitted_share,
    drain_time,
    erlang_b,
    erlang_c,
    folds,
    hysteresis,
    load_carried,
    mean_sojourn,
    refusal_cliff,
    refusals,
    smallest_outage,
    sojourn_tail,
    steady_states,
    timeout_probability,
)

TEN = Station(servers=10, service=0.01, timeout=0.1, attempts=4)


def naive_erlang_b(servers: int, load: float) -> float:
    """As in the textbook, for small numbers."""
    terms = [load**k / math.factorial(k) for k in range(servers + 1)]
    return terms[-1] / sum(terms)


@pytest.mark.parametrize("servers", [1, 2, 7, 40])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.95, 1.0, 3.0])
def test_erlang_b_is_the_textbook_sum(servers: int, share: float) -> None:
    load = share * servers
    assert erlang_b(servers, load) == pytest.approx(naive_erlang_b(servers, load), rel=1e-12)


def test_an_idle_or_overloaded_queue() -> None:
    assert erlang_b(4, 0) == 0
    assert erlang_c(4, 0) == 0
    assert erlang_c(4, 4) == 1
    assert mean_sojourn(TEN, 1000) == math.inf
    assert sojourn_tail(TEN, 1000, 5) == 1
    assert sojourn_tail(TEN, 0, 0.01) == pytest.approx(math.exp(-1))


def test_one_server_is_exponential() -> None:
    one = Station(service=2, timeout=3)
    assert timeout_probability(one, 0.4) == pytest.approx(math.exp(-0.6 * 1.5), rel=1e-12)


def test_a_million_servers() -> None:
    # Half of the arrivals wait once the spare servers are about half the root of all.
    assert erlang_c(1_000_000, 999_500) == pytest.approx(0.5, abs=0.02)
    assert erlang_c(1_000_000, 900_000) == pytest.approx(0, abs=1e-290)


def test_the_two_formulas_of_a_tail_meet_where_one_divides_by_zero() -> None:
    """At rho = 0.9 of ten servers the spare capacity is that of one: mu = delta."""
    exactly = timeout_probability(TEN, 0.9)
    near = [timeout_probability(TEN, 0.9 + step) for step in (-1e-6, 1e-6)]
    assert near[0] < exactly < near[1]
    assert exactly == pytest.approx(sum(near) / 2, rel=1e-8)


def test_waiting_for_ever_never_times_out() -> None:
    patient = Station(servers=3, service=1, attempts=5)
    assert timeout_probability(patient, 0.99) == 0
    assert folds(patient) == (3, 3, 1)
    assert [state.kind for state in steady_states(patient, 2.9)] == ["healthy"]


def test_below_between_and_above_the_folds() -> None:
    found = folds(TEN)
    assert [s.kind for s in steady_states(TEN, found.recovery * 0.99)] == ["healthy"]
    assert [s.kind for s in steady_states(TEN, 600)] == ["healthy", "unstable", "collapsed"]
    assert [s.kind for s in steady_states(TEN, found.ceiling * 1.01)] == ["collapsed"]


def test_every_state_lies_on_the_curve() -> None:
    for state in steady_states(TEN, 600)[:2]:
        assert 1000 * load_carried(TEN, state.utilisation) == pytest.approx(600, rel=1e-9)
        assert state.timeouts == pytest.approx(timeout_probability(TEN, state.utilisation))
        assert state.goodput == pytest.approx(1 - state.timeouts**4, rel=1e-9)
    assert steady_states(TEN, 600)[2] == ("collapsed", 2.4, 1.0, 0.0)


def test_one_attempt_has_no_second_state() -> None:
    single = Station(servers=10, service=0.01, timeout=0.1)
    assert folds(single) == (1000, 1000, 1)
    assert [s.kind for s in steady_states(single, 990)] == ["healthy"]
    assert [s.kind for s in steady_states(single, 1010)] == ["collapsed"]


def test_a_budget_leaves_a_state_in_which_some_time_out() -> None:
    """10 % at 900/s of 1,000/s: 900 x 1.1 is just below capacity, so a third times out for good."""
    tight = Station(servers=10, service=0.01, timeout=0.1, attempts=4, budget=0.1)
    healthy, _, degraded = steady_states(tight, 900)
    assert healthy.goodput > 0.999
    assert degraded.kind == "collapsed"
    assert degraded.utilisation == pytest.approx(0.99)
    assert 0.5 < degraded.goodput < 0.8
    assert folds(tight).recovery < 900 < folds(tight).ceiling


def test_no_budget_at_all_is_one_attempt() -> None:
    assert folds(Station(service=1, timeout=50, attempts=4, budget=0)) == (1, 1, 1)


def test_hysteresis_has_two_branches_between_the_folds() -> None:
    curve = hysteresis("db", TEN, today=600)
    found = folds(TEN)
    assert (curve.hidden, curve.tips_at) == (found.recovery, found.ceiling)
    for load, healthy, collapsed in zip(curve.load, curve.healthy, curve.collapsed, strict=True):
        if load < found.ceiling:
            assert healthy is not None
            assert healthy > 0.95
        if load > found.ceiling:
            assert healthy is None
        assert (collapsed is not None) == (load >= found.recovery)
    assert 600 in curve.load


def test_hysteresis_of_a_service_without_a_second_state() -> None:
    curve = hysteresis("db", Station(service=0.01, timeout=1), today=20)
    assert curve.tips_at is None
    assert curve.load[-1] == pytest.approx(120)


def test_outages_that_are_too_short_or_never_enough() -> None:
    assert smallest_outage(150, 300, 1) == math.inf
    assert smallest_outage(300, 300, 1) == 0
    assert drain_time(299, 100, 300, 1, 2) == 0


def test_a_limit_above_the_demand_refuses_nobody() -> None:
    assert refusals(500, 600, 9) == (0, 500, 0)
    assert refusal_cliff(500, 600, 9, 1200) == math.inf


def test_a_pool_that_suffices_admits_everybody() -> None:
    assert admitted_share(10, 9.5) == 1
    assert admitted_share(10, 20) == 0.5


@pytest.mark.parametrize(
    "wrong",
    [
        {"servers": 0},
        {"service": 0},
        {"service": math.inf},
        {"timeout": 0},
        {"attempts": 0.5},
        {"budget": -0.1},
    ],
)
def test_a_station_refuses_nonsense(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a station needs"):
        Station(**{"service": 1.0, **wrong})  # type: ignore[arg-type]
