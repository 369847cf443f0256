"""A fixed limit stays what it is."""

import pytest

from tidegate.core.limit.fixed import FixedLimit
from tidegate.core.outcome import Outcome
from tidegate.units import SECOND


@pytest.mark.parametrize("outcome", Outcome)
def test_nothing_moves_it(outcome: Outcome) -> None:
    limit = FixedLimit(7)
    assert limit.on_sample(SECOND, SECOND, 7, outcome) == 7
    assert limit.limit == 7


def test_nobody_could_pass_a_limit_below_one() -> None:
    with pytest.raises(AssertionError):
        FixedLimit(0)
