"""One more per round trip without trouble, seven tenths of it after one with."""

import pytest

from tidegate.core.limit.aimd import AimdLimit
from tidegate.core.outcome import FAILURE, IGNORED, OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.settings import policies as settings
from tidegate.units import MILLISECOND, SECOND

RTT = 10 * MILLISECOND


def limit(**changes: object) -> AimdLimit:
    return AimdLimit(settings.Adaptive(**changes))


def round_trip(policy: AimdLimit, at: int, outcome: Outcome) -> int:
    """All places of the limit end at `at`, having begun one round trip before."""
    for _ in range(policy.limit):
        policy.on_sample(at, RTT, policy.limit, outcome)
    return policy.limit


def test_a_full_round_trip_of_successes_is_worth_one_more() -> None:
    policy = limit(start=20)
    assert [round_trip(policy, n * SECOND, SUCCESS) for n in (1, 2, 3)] == [21, 22, 23]


def test_it_grows_with_the_last_success_of_the_round_trip() -> None:
    policy = limit(start=3)
    assert [policy.on_sample(SECOND, RTT, 3, SUCCESS) for _ in range(3)] == [3, 3, 4]


@pytest.mark.parametrize("outcome", [TIMEOUT, OVERLOADED])
def test_a_round_trip_of_trouble_cuts_once(outcome: Outcome) -> None:
    policy = limit(start=100)
    assert round_trip(policy, SECOND, outcome) == 70
    assert round_trip(policy, 2 * SECOND, outcome) == 49


def test_what_began_before_the_cut_says_nothing_afterwards() -> None:
    policy = limit(start=10)
    policy.on_sample(SECOND, RTT, 10, TIMEOUT)
    for _ in range(100):
        policy.on_sample(SECOND + RTT - 1, RTT, 10, SUCCESS)
        policy.on_sample(SECOND + RTT - 1, RTT, 10, TIMEOUT)
    assert policy.limit == 7
    assert round_trip(policy, SECOND + RTT, SUCCESS) == 8


@pytest.mark.parametrize("outcome", [FAILURE, IGNORED])
def test_an_error_or_a_cancelled_call_says_nothing_about_load(outcome: Outcome) -> None:
    policy = limit(start=10, latency=MILLISECOND)
    assert round_trip(policy, SECOND, outcome) == 10


def test_slower_than_the_latency_is_trouble() -> None:
    policy = limit(start=10, latency=RTT)
    assert policy.on_sample(SECOND, RTT, 10, SUCCESS) == 10
    assert policy.on_sample(2 * SECOND, RTT + 1, 10, SUCCESS) == 7


def test_an_unused_limit_does_not_grow() -> None:
    policy = limit(start=10)
    for _ in range(100):
        policy.on_sample(SECOND, RTT, 4, SUCCESS)
    assert policy.limit == 10
    for _ in range(10):
        policy.on_sample(SECOND, RTT, 5, SUCCESS)
    assert policy.limit == 11


def test_a_cut_takes_the_credit_towards_the_next_increase() -> None:
    policy = limit(start=10)
    for _ in range(9):
        policy.on_sample(SECOND, RTT, 10, SUCCESS)
    policy.on_sample(SECOND, RTT, 10, TIMEOUT)
    policy.on_sample(2 * SECOND, RTT, 7, SUCCESS)
    assert policy.limit == 7


def test_it_stays_between_its_bounds() -> None:
    policy = limit(start=3, min=2, max=4)
    for second in range(1, 9):
        round_trip(policy, second * SECOND, SUCCESS)
    assert policy.limit == 4
    for second in range(9, 20):
        round_trip(policy, second * SECOND, TIMEOUT)
    assert policy.limit == 2


def test_from_one_it_comes_back() -> None:
    policy = limit(start=1)
    assert round_trip(policy, SECOND, TIMEOUT) == 1
    assert round_trip(policy, 2 * SECOND, SUCCESS) == 2


def test_copies_start_and_grow_together_as_one_would() -> None:
    policy = limit(start=20)
    assert policy.on_others(SECOND, 3) == 5
    grown = [round_trip(policy, n * SECOND, SUCCESS) for n in range(2, 10)]
    assert grown == [5, 5, 5, 6, 6, 6, 6, 7]
    assert round_trip(policy, 20 * SECOND, TIMEOUT) == 4  # a cut is a share, whoever has how much


def test_who_goes_leaves_his_part_to_the_rest_and_who_comes_has_it_from_them() -> None:
    policy = limit(start=20, max=50)
    seen = [policy.on_others(n * SECOND, others) for n, others in enumerate([0, 1, 3, 3, 1, 0])]
    assert seen == [20, 10, 5, 5, 10, 20]


def test_the_part_of_a_copy_is_within_its_bounds() -> None:
    policy = limit(start=20, min=2, max=30)
    assert policy.on_others(SECOND, 99) == 2
    assert policy.on_others(SECOND, 0) == 20
    policy.on_others(SECOND, 1)
    for number in range(2, 30):
        round_trip(policy, number * SECOND, SUCCESS)
    assert policy.limit == 24
    assert policy.on_others(30 * SECOND, 0) == 30
    assert policy.indifferent == 15
