"""Durations as the settings describe them, drawn from the part's own luck."""

from random import Random
from statistics import fmean, quantiles

import pytest

from tidegate.settings.system import Time
from tidegate.sim.draw import drawer
from tidegate.units import MILLISECOND

COUNT = 20_000


def drawn(time: Time | None) -> list[float]:
    draw = drawer(time, Random(7))
    return [draw() for _ in range(COUNT)]


def test_no_time_is_no_time() -> None:
    assert set(drawn(None)) == {0.0}


def test_a_constant_takes_no_luck() -> None:
    assert set(drawn(Time(constant=50 * MILLISECOND))) == {50.0 * MILLISECOND}


def test_a_mean_is_that_of_an_exponential() -> None:
    times = drawn(Time(mean=50 * MILLISECOND))
    assert fmean(times) == pytest.approx(50 * MILLISECOND, rel=0.03)  # 4 standard errors
    beyond = sum(time > 100 * MILLISECOND for time in times) / COUNT
    assert beyond == pytest.approx(0.1353, abs=0.01)  # e^-2; 4 standard errors
    assert min(times) >= 0


def test_a_median_and_a_p99_are_those_of_a_lognormal() -> None:
    time = Time(median=50 * MILLISECOND, p99=400 * MILLISECOND)
    cuts = quantiles(drawn(time), n=100)
    assert cuts[49] == pytest.approx(50 * MILLISECOND, rel=0.04)
    assert cuts[98] == pytest.approx(400 * MILLISECOND, rel=0.12)


def test_the_settings_know_the_mean_of_every_form() -> None:
    for time in (
        Time(constant=50 * MILLISECOND),
        Time(mean=50 * MILLISECOND),
        Time(median=50 * MILLISECOND, p99=200 * MILLISECOND),
    ):
        assert fmean(drawn(time)) == pytest.approx(time.average, rel=0.04)
