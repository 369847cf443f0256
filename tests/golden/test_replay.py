"""The bars of a replay, each for five seeds: run with `make golden`, which prints the figures.

Scenario A: the sink takes twice the live load, and as much as the live load at its worst; it comes
back with 75 % of its health, an hour of backlog waits, and one of its three brokers is lost from
15 to 20 minutes. The fleet decides with the controller that a spool runs.
"""

import pytest
from replay_bars import BARS, LIVE, A, Bar, hold

pytestmark = pytest.mark.golden


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("name", BARS)
def test_twenty_collectors(name: str, seed: int) -> None:
    hold(name, BARS[name], seed)


def test_two_hundred_collectors() -> None:
    """As fast each as one of twenty: then a few at a time can use the sink, and 200 could break it.

    One seed: it takes a minute or two.
    """
    case = A._replace(collectors=200, each=0.6 * LIVE)
    hold("A, normal, 200 collectors", Bar(case, "normal", 1.5), 1)
