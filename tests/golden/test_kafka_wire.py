"""A topic has too few replicas for a minute: the client makes a storm of it, a spool's sink none.

The figures of docs/spool/kafka.md; `benchmarks/kafka_wire.py` prints them.
"""

from collections.abc import Callable

import pytest
from kafka_mock import KafkaMock, MockMissingError
from kafka_storm import Wire, Work, as_it_is, measured, ours

pytestmark = pytest.mark.golden  # a minute each of real time

BAR = 1.2  # of the bytes in peace


def wire(way: Callable[[KafkaMock, str], Work], seconds: int) -> Wire:
    try:
        return measured(way, seconds)
    except MockMissingError as missing:
        pytest.skip(str(missing))


def test_a_sink_sends_no_more_than_in_peace_for_a_minute() -> None:
    found = wire(ours, 60)
    assert found.times < BAR
    assert max(found.starved) < 2 * BAR * max(found.calm)


def test_the_client_alone_sends_more_with_every_second() -> None:
    found = wire(as_it_is, 20)
    assert found.times > 3
    assert found.at_last > 2 * found.starved[4] / max(found.calm)
