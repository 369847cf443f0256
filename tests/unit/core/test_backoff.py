"""A wait doubles up to its maximum, and is left to chance."""

from random import Random

import pytest

from tidegate.core.backoff import Backoff
from tidegate.settings import policies as settings
from tidegate.units import HOUR, MILLISECOND, SECOND


class Scripted(Random):
    """Luck that is known beforehand."""

    def __init__(self, *draws: float) -> None:
        super().__init__(0)
        self.draws = list(draws)

    def random(self) -> float:
        return self.draws.pop(0)


ALMOST_ONE = 1 - 2**-53


def milliseconds(policy: Backoff, *retries: int) -> list[float]:
    return [policy.delay(retry) / MILLISECOND for retry in retries]


def test_without_jitter_it_doubles_from_the_base_up_to_the_maximum() -> None:
    policy = Backoff(settings.Backoff(jitter="none"), Random(1))
    assert milliseconds(policy, 1, 2, 3, 8, 9, 1000) == [100, 200, 400, 12_800, 20_000, 20_000]


@pytest.mark.parametrize(
    ("jitter", "lowest", "highest"), [("full", 0, 400), ("equal", 200, 400), ("none", 400, 400)]
)
def test_jitter_draws_between_its_bounds(
    jitter: settings.Jitter, lowest: int, highest: int
) -> None:
    policy = Backoff(settings.Backoff(jitter=jitter), Scripted(0.0, ALMOST_ONE))
    low, high = milliseconds(policy, 3, 3)
    assert low == lowest
    assert high == pytest.approx(highest, abs=1e-6)


def test_the_default_is_full_jitter_from_the_first_retry_on() -> None:
    policy = Backoff(settings.Backoff(), Scripted(0.25))
    assert milliseconds(policy, 1) == [25]


def test_a_factor_of_one_is_a_constant_wait() -> None:
    policy = Backoff(settings.Backoff(factor=1, jitter="none"), Random(1))
    assert milliseconds(policy, 1, 2, 1000) == [100, 100, 100]


def test_a_base_of_zero_never_waits() -> None:
    policy = Backoff(settings.Backoff(base=0), Random(1))
    assert milliseconds(policy, 1, 2, 1000) == [0, 0, 0]


def test_a_base_that_is_the_maximum_never_grows() -> None:
    policy = Backoff(settings.Backoff(base=SECOND, max=SECOND, jitter="none"), Random(1))
    assert milliseconds(policy, 1, 2) == [1000, 1000]


@pytest.mark.parametrize("factor", [1 + 2**-52, 1.001, 100])
def test_no_retry_is_too_many(factor: float) -> None:
    extreme = settings.Backoff(base=1, factor=factor, max=24 * HOUR, jitter="none")
    assert Backoff(extreme, Random(1)).delay(10**18) == 24 * HOUR


def test_retries_count_from_one() -> None:
    with pytest.raises(AssertionError):
        Backoff(settings.Backoff(), Random(1)).delay(0)


def test_decorrelated_draws_from_the_base_to_three_times_the_wait_before() -> None:
    given = settings.Backoff(max=SECOND, jitter="decorrelated")
    policy = Backoff(given, Scripted(0.0, ALMOST_ONE, 0.5, ALMOST_ONE))
    waits = [policy.delay(1)]
    for retry in (2, 3, 4):
        waits.append(policy.delay(retry, waits[-1]))
    assert [wait / MILLISECOND for wait in waits] == pytest.approx([100, 300, 500, 1000], abs=1e-5)


def test_decorrelated_takes_a_shorter_wait_before_for_the_base() -> None:
    policy = Backoff(settings.Backoff(jitter="decorrelated"), Scripted(ALMOST_ONE))
    assert policy.delay(2, 50 * MILLISECOND) == pytest.approx(300 * MILLISECOND, abs=1)
