"""Laws of the closed forms: monotone, scale-free, and in agreement with each other."""

import math

from hypothesis import assume, given
from hypothesis import strategies as st

from tidegate.analysis.theory import (
    Station,
    amplification,
    drain_time,
    erlang_b,
    erlang_c,
    folds,
    has_two_states,
    refusals,
    sojourn_tail,
    steady_states,
    timeout_probability,
)

servers = st.integers(1, 60)
attempts = st.integers(1, 8)
shares = st.floats(0.01, 0.999)
stations = st.builds(
    Station,
    servers=servers,
    service=st.floats(1e-3, 10),
    timeout=st.floats(1e-3, 100),
    attempts=attempts,
    budget=st.none() | st.floats(0, 3),
)


@given(servers, shares)
def test_erlang_c_from_erlang_b(c: int, rho: float) -> None:
    b = erlang_b(c, c * rho)
    assert math.isclose(erlang_c(c, c * rho), b / (1 - rho * (1 - b)), rel_tol=1e-9)


@given(stations, shares, shares)
def test_more_load_means_more_timeouts(station: Station, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert timeout_probability(station, low) <= timeout_probability(station, high) + 1e-12


@given(stations, shares, st.floats(0, 50), st.floats(0, 50))
def test_a_tail_only_falls(station: Station, rho: float, one: float, other: float) -> None:
    early, late = sorted((one, other))
    rate = rho * station.capacity
    assert 0 <= sojourn_tail(station, rate, late) <= sojourn_tail(station, rate, early) + 1e-12 <= 2


@given(stations, st.floats(0.01, 1.5), st.sampled_from([0.001, 0.5, 60.0]))
def test_no_clock_is_special(station: Station, share: float, factor: float) -> None:
    """Time counted in other units changes no share, and scales every rate."""
    slow = Station(
        servers=station.servers,
        service=station.service * factor,
        timeout=station.timeout * factor,
        attempts=station.attempts,
        budget=station.budget,
    )
    ours, theirs = folds(station), folds(slow)
    assert math.isclose(ours.ceiling, theirs.ceiling * factor, rel_tol=1e-6)
    assert math.isclose(ours.recovery, theirs.recovery * factor, rel_tol=1e-6)
    load = share * station.capacity
    assume(all(abs(load / edge - 1) > 1e-6 for edge in ours[:2]))
    before = [state.kind for state in steady_states(station, load)]
    assert before == [state.kind for state in steady_states(slow, load / factor)]


@given(stations, st.floats(0.01, 2))
def test_states_come_best_first_and_agree_with_the_folds(station: Station, share: float) -> None:
    load = share * station.capacity
    found = folds(station)
    assume(all(abs(load / edge - 1) > 1e-6 for edge in found[:2]))
    states = steady_states(station, load)
    utilisations = [state.utilisation for state in states]
    assert utilisations == sorted(utilisations)
    kinds = [state.kind for state in states]
    if found.ceiling > found.recovery:
        assert ("healthy" in kinds) == (load < found.ceiling)
        assert ("collapsed" in kinds) == (load > found.recovery)
    else:
        assert kinds == (["healthy"] if load < found.recovery else ["collapsed"])


@given(servers, st.floats(0.05, 20), st.integers(2, 8), st.sampled_from([0.97, 0.99, 1.01, 1.03]))
def test_the_rule_for_two_states_and_the_folds_agree(
    c: int, x: float, tries: int, beside: float
) -> None:
    """Also close to the threshold, which is where an expansion could be wrong."""
    low, high = 1e-9, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        if has_two_states(Station(servers=c, service=1, timeout=middle, attempts=tries)):
            high = middle
        else:
            low = middle
    for timeout in (x, high * beside):
        station = Station(servers=c, service=1, timeout=timeout, attempts=tries)
        if abs(timeout / high - 1) > 0.005:
            found = folds(station)
            assert has_two_states(station) == (found.ceiling > found.recovery)


@given(st.floats(0, 1), attempts, st.none() | st.floats(0, 3))
def test_amplification_is_the_sum(failing: float, tries: int, budget: float | None) -> None:
    whole = sum(failing**k for k in range(tries))
    expected = whole if budget is None else min(whole, 1 + budget)
    assert math.isclose(amplification(failing, tries, budget), expected, rel_tol=1e-9)


@given(st.floats(1, 1e5), st.floats(0.01, 0.999), st.integers(1, 30))
def test_a_limit_is_used_in_full(demand: float, share: float, tries: int) -> None:
    limit = demand * share
    found = refusals(demand, limit, tries)
    assert math.isclose(found.attempts * (1 - found.refused), limit, rel_tol=1e-9)
    assert math.isclose(found.failing, 1 - share, rel_tol=1e-9)


@given(st.floats(1, 1e6), st.floats(0.1, 1e4), st.floats(0.1, 10), attempts)
def test_more_capacity_drains_sooner(
    backlog: float, load: float, timeout: float, tries: int
) -> None:
    times = [drain_time(backlog, load, load * tries * x, timeout, tries) for x in (0.9, 1.1, 2)]
    assert times == sorted(times, reverse=True)
