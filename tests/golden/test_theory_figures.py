"""The closed forms give the figures that others have published or measured, digit for digit."""

import math

import pytest

from tidegate.analysis.theory import (
    Station,
    admitted_share,
    amplification,
    capacity_to_escape,
    drain_time,
    erlang_b,
    erlang_c,
    folds,
    has_two_states,
    mean_sojourn,
    refusal_cliff,
    refusals,
    smallest_outage,
    sojourn_tail,
    steady_states,
    workers_busy,
)

TEN = Station(servers=10, service=0.01)


def test_ten_servers_at_four_fifths() -> None:
    """The textbook M/M/10 at 800/s: Erlang-C, mean sojourn, and the tail of the sojourn."""
    assert erlang_c(10, 8) == pytest.approx(0.40918, abs=5e-6)
    assert mean_sojourn(TEN, 800) == pytest.approx(0.0120459, abs=5e-8)
    assert sojourn_tail(TEN, 800, 0.05) == pytest.approx(9.476e-3, rel=1e-4)
    assert sojourn_tail(TEN, 800, 0.1) == pytest.approx(6.398e-5, rel=1e-4)


@pytest.mark.parametrize(
    ("theta", "ceiling"), [(2, 0.3304), (5, 0.5438), (10, 0.6936), (20, 0.8080), (50, 0.9034)]
)
def test_ceiling_with_endless_retries(theta: float, ceiling: float) -> None:
    found = folds(Station(service=1, timeout=theta, attempts=math.inf))
    assert found.ceiling == pytest.approx(ceiling, abs=5e-5)
    assert found.recovery == 0
    # theta (1 - rho) = ln(1 + theta rho), where the derivative of g is zero.
    rho = found.utilisation
    assert theta * (1 - rho) == pytest.approx(math.log1p(theta * rho), rel=1e-5)


def test_two_services_near_the_edge() -> None:
    assert folds(Station(service=1, timeout=2, attempts=2)).ceiling == pytest.approx(0.5)
    assert folds(Station(service=1, timeout=2, attempts=4)).ceiling == pytest.approx(
        0.349, abs=5e-4
    )
    assert folds(Station(service=0.1, timeout=4, attempts=4)).ceiling == pytest.approx(
        8.85, abs=5e-3
    )


def test_the_pool_that_the_mean_field_calls_healthy_up_to_876() -> None:
    """Ten workers of 10 ms, 50 ms, 4 attempts. At 800/s it is called healthy; chance says no."""
    found = folds(Station(servers=10, service=0.01, timeout=0.05, attempts=4))
    assert found.ceiling == pytest.approx(876, abs=0.5)
    assert found.recovery == pytest.approx(250)


@pytest.mark.parametrize(("attempts", "threshold"), [(2, 4.156), (4, 1.609)])
def test_threshold_of_two_states_with_ten_servers(attempts: int, threshold: float) -> None:
    def ten(c_mu_t: float) -> Station:
        return Station(servers=10, service=1, timeout=c_mu_t / 10, attempts=attempts)

    assert not has_two_states(ten(threshold - 1e-3))
    assert has_two_states(ten(threshold + 1e-3))


@pytest.mark.parametrize(
    ("load", "outage"),
    [(151, 1.497), (160, 1.458), (200, 1.222), (240, 1.062), (280, 1.005), (299, 1.000)],
)
def test_smallest_outage_of_a_database_of_300(load: float, outage: float) -> None:
    assert smallest_outage(load, 300, 1) == pytest.approx(outage, abs=5e-4)


def test_a_database_just_below_its_recovery_threshold() -> None:
    """149/s against 300/s with one retry: the outage of 10 s left 2,831 requests waiting."""
    assert drain_time(2831, 149, 300, 1, 2) == pytest.approx(1266, abs=1)
    assert drain_time(2831, 151, 300, 1, 2) == math.inf


@pytest.mark.parametrize(("nodes", "minutes"), [(13, 349), (14, 174), (16, 87), (20, 44), (24, 29)])
def test_a_token_service_drains(nodes: int, minutes: float) -> None:
    """300/s of 4 attempts, 100/s a node, 10 s; 2.107 million requests wait."""
    seconds = drain_time(2.107e6, 300, 100 * nodes, 10, 4)
    assert seconds / 60 == pytest.approx(minutes, abs=0.55)
    assert capacity_to_escape(2.107e6, 300, 10, 4, within=seconds) == pytest.approx(100 * nodes)


def test_a_token_service_of_twelve_nodes_never_escapes() -> None:
    assert drain_time(2.10e6, 300, 1200, 10, 4) == math.inf
    assert capacity_to_escape(2.10e6, 300, 10, 4) == 1200


@pytest.mark.parametrize(("attempts", "rate"), [(10, 27_051), (11, 29_183)])
def test_a_front_end_that_repeats_what_is_refused(attempts: int, rate: float) -> None:
    """SRE book ch. 22: 10,100/s against 10,000/s. If refusing is free, 99 % are served."""
    found = refusals(10_100, 10_000, attempts)
    assert found.attempts == pytest.approx(rate, abs=0.5)
    assert 1 - found.failing == pytest.approx(10_000 / 10_100)
    if attempts == 10:
        assert found.refused == pytest.approx(0.630, abs=5e-4)


def test_a_limit_below_the_demand_is_a_cliff_and_not_a_slope() -> None:
    """700/s against a limit of 600/s, 1,200/s of work, 9 attempts."""
    found = refusals(700, 600, 9)
    assert found.failing == pytest.approx(1 / 7)
    assert found.refused == pytest.approx(0.8056, abs=5e-5)
    assert found.attempts == pytest.approx(3086, abs=0.5)
    assert refusal_cliff(700, 600, 9, 1200) == pytest.approx(0.241, abs=5e-4)


def test_budgets_hold_the_load() -> None:
    """SRE book ch. 21: 3 attempts come to just under 3x, a 10 % budget to 1.1x."""
    assert 2.9 < amplification(0.98, 3) < 3
    assert amplification(0.98, 3, 0.1) == pytest.approx(1.1)
    assert amplification(0.5, 4) == pytest.approx(1.875)


def test_a_fault_of_five_percent_takes_four_fifths_of_a_pool() -> None:
    """SRE book ch. 22: 1,000 threads, 1,000/s of 100 ms; 5 % of the calls hang for 100 s."""
    wanted = workers_busy(1000, 0.95 * 0.1 + 0.05 * 100)
    assert wanted == pytest.approx(5095)
    assert 1 - admitted_share(1000, wanted) == pytest.approx(0.804, abs=5e-4)
    # Erlang's loss formula, which knows that arrivals bunch, says the same.
    assert erlang_b(1000, wanted) == pytest.approx(0.804, abs=5e-4)


@pytest.mark.parametrize(
    ("budget", "load", "collapses"),
    [
        (0.1, 600, False),
        (0.1, 750, False),
        (0.2, 600, False),
        (0.2, 750, False),
        (0.5, 600, False),
        (0.5, 750, True),
        (None, 600, True),
        (None, 750, True),
    ],
)
def test_which_budget_takes_the_collapsed_state_away(
    budget: float | None, load: float, collapses: bool
) -> None:
    """Ten workers of 10 ms, 100 ms, 4 attempts: a budget b does iff load (1 + b) < capacity."""
    station = Station(servers=10, service=0.01, timeout=0.1, attempts=4, budget=budget)
    kinds = {state.kind for state in steady_states(station, load)}
    assert "healthy" in kinds
    assert ("collapsed" in kinds) == collapses


@pytest.mark.slow  # 4,400 and 210 searches for a maximum
def test_the_rule_for_two_states_on_a_grid() -> None:
    """No point of the grid disagrees with the curve itself, for one server and for many."""
    single = [(1, tries, 0.05 * step) for tries in range(2, 13) for step in range(1, 401)]
    many = [
        (servers, tries, c_mu_t / servers)
        for servers in (2, 5, 10, 20, 50)
        for tries in (2, 3, 4, 6, 8, 12)
        for c_mu_t in (0.3, 0.8, 1.3, 2.1, 3.1, 5.1, 9.1)
    ]
    assert (len(single), len(many)) == (4400, 210)
    for servers, tries, timeout in (*single, *many):
        station = Station(servers=servers, service=1, timeout=timeout, attempts=tries)
        found = folds(station)
        threshold = abs((tries - 1) * timeout - 2) < 1e-9 and servers == 1
        assert threshold or has_two_states(station) == (found.ceiling > found.recovery), station
