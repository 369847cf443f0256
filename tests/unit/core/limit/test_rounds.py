"""A round is over when enough attempts that began in it have ended."""

import pytest

from tidegate.core.limit.rounds import Rounds
from tidegate.core.outcome import FAILURE, IGNORED, OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.units import MILLISECOND, SECOND

RTT = 10 * MILLISECOND


def test_it_is_over_with_the_last_sample_that_it_needs() -> None:
    rounds = Rounds(3)
    assert [rounds.add(SECOND, n * RTT, 5 - n, SUCCESS) for n in (1, 2, 3)] == [False, False, True]
    assert (rounds.mean, rounds.most, rounds.trouble) == (2 * RTT, 4, False)


def test_trouble_of_what_began_before_it_says_nothing() -> None:
    rounds = Rounds(1)
    rounds.begin(SECOND)
    assert not rounds.add(SECOND + RTT - 1, RTT, 9, TIMEOUT)
    assert (rounds.most, rounds.trouble) == (0, False)
    assert rounds.add(SECOND + RTT, RTT, 1, TIMEOUT)
    assert (rounds.most, rounds.trouble) == (1, True)


def test_latency_of_what_began_before_it_counts_but_does_not_end_it() -> None:
    """Else only the fastest of those that began in it would be seen."""
    rounds = Rounds(2)
    rounds.begin(SECOND)
    assert [rounds.add(SECOND + RTT, 4 * RTT, 1, SUCCESS) for _ in range(3)] == [False] * 3
    assert rounds.add(SECOND + RTT, RTT, 1, SUCCESS)
    assert rounds.mean == (3 * 4 * RTT + RTT) / 4


@pytest.mark.parametrize("outcome", [TIMEOUT, OVERLOADED])
def test_trouble_counts_as_a_sample_and_not_as_a_latency(outcome: Outcome) -> None:
    rounds = Rounds(2)
    rounds.add(SECOND, 100 * RTT, 7, outcome)
    assert (rounds.mean, rounds.most, rounds.trouble) == (0, 7, True)
    assert rounds.add(SECOND, RTT, 3, SUCCESS)
    assert (rounds.mean, rounds.most, rounds.trouble) == (RTT, 7, True)
    rounds.begin(SECOND)
    assert (rounds.mean, rounds.most, rounds.trouble) == (0, 0, False)


@pytest.mark.parametrize("outcome", [FAILURE, IGNORED])
def test_an_error_says_nothing_about_load(outcome: Outcome) -> None:
    rounds = Rounds(1)
    assert not rounds.add(SECOND, RTT, 9, outcome)
    assert (rounds.mean, rounds.most, rounds.trouble) == (0, 0, False)


def test_answers_that_take_no_time_are_answers() -> None:
    rounds = Rounds(2)
    rounds.add(SECOND, 0, 1, SUCCESS)
    rounds.add(SECOND, 0, 1, SUCCESS)
    assert 0 < rounds.mean < 1
