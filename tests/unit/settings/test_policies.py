"""Settings of policies: defaults that fit one another, and rules that hold in a line of Python."""

import msgspec
import pytest

from tidegate.errors import SettingsError
from tidegate.settings.policies import (
    Adaptive,
    Backoff,
    Breaker,
    Budget,
    CoDel,
    Gradient,
    Hedge,
    Limit,
    Queue,
    RateLimit,
    Settings,
    Throttle,
    Vegas,
)
from tidegate.units import HOUR, MILLISECOND, SECOND

ALL = [
    Adaptive(),
    Backoff(),
    Breaker(),
    Budget(),
    CoDel(),
    Limit(max=1),
    Queue(),
    RateLimit(rate=1),
]


@pytest.mark.parametrize("record", ALL, ids=lambda record: type(record).__name__)
def test_a_record_is_frozen_and_knows_its_keys(record: Settings) -> None:
    key = type(record).__struct_fields__[0]
    with pytest.raises(AttributeError):
        setattr(record, key, getattr(record, key))
    with pytest.raises(TypeError):
        type(record)(surely_unknown=1)
    assert record.shorthand is None or record.shorthand in type(record).__struct_fields__


@pytest.mark.parametrize(
    ("record", "change"),
    [
        (Budget(), {"ratio": -0.1}),
        (Budget(), {"ratio": 10.1}),
        (Budget(), {"window": SECOND - 1}),
        (Backoff(), {"base": 0.1}),
        (Backoff(), {"factor": 0.9}),
        (Backoff(), {"max": 99 * MILLISECOND}),
        (Backoff(), {"jitter": "ful"}),
        (Backoff(jitter="decorrelated"), {"factor": 3.0}),
        (Breaker(), {"failures": 0.0}),
        (Breaker(), {"volume": 2.5}),
        (Breaker(), {"probes": 0}),
        (Breaker(), {"lease": 0}),
        (Breaker(), {"ramp": HOUR + 1}),
        (Breaker(), {"ramp_from": 1.1}),
        (RateLimit(rate=1), {"rate": 0.0}),
        (RateLimit(rate=1), {"burst": 0}),
        (Adaptive(), {"min": 21, "max": 20}),
        (Adaptive(), {"start": 1001}),
        (Adaptive(), {"decrease": 1.0}),
        (Gradient(), {"min": 21, "max": 20}),
        (Gradient(), {"start": 1001}),
        (Gradient(), {"queue": 0}),
        (Gradient(), {"tolerance": 0.9}),
        (Gradient(), {"smoothing": 0.0}),
        (Gradient(), {"samples": 0}),
        (Gradient(), {"baseline": SECOND - 1}),
        (Vegas(), {"start": 1001}),
        (Vegas(), {"alpha": 0}),
        (Vegas(), {"beta": 2}),
        (Hedge(after=1), {"after": 0}),
        (Hedge(after=1), {"max": 5}),
        (Throttle(), {"ratio": 0.9}),
        (Throttle(), {"window": 2 * HOUR}),
        (Throttle(), {"volume": 0}),
        (Throttle(), {"most": 0.0}),
        (Limit(max=1), {"max": 0}),
        (CoDel(), {"interval": 4 * MILLISECOND}),
        (Queue(), {"limit": -1}),
        (Queue(), {"order": "filo"}),
        (Queue(), {"full": "ignore"}),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(record: Settings, change: dict[str, object]) -> None:
    with pytest.raises(SettingsError) as refused:
        msgspec.structs.replace(record, **change)
    assert refused.value.path[0] in change


@pytest.mark.parametrize(
    "both",
    [
        {},
        {"max": 5, "adaptive": Adaptive()},
        {"gradient": Gradient(), "vegas": Vegas()},
    ],
)
def test_a_limit_is_fixed_or_finds_itself_in_one_way(both: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="either max, adaptive, gradient or vegas, just one"):
        Limit(**both)


def test_a_limit_knows_its_law() -> None:
    assert Limit(max=5).law is None
    for law in (Adaptive(), Gradient(), Vegas()):
        assert Limit(**{type(law).__name__.lower(): law}).law is law


def test_a_budget_of_nothing_and_a_queue_without_places_are_allowed() -> None:
    assert Budget(ratio=0.0).ratio == 0
    assert Queue(limit=0).limit == 0


def test_the_longest_wait_before_a_retry() -> None:
    doubled = Backoff(base=100 * MILLISECOND, max=SECOND)
    assert [doubled.longest(n) / MILLISECOND for n in (1, 2, 4, 5, 99)] == [
        100,
        200,
        800,
        1000,
        1000,
    ]
    decorrelated = Backoff(base=100 * MILLISECOND, max=SECOND, jitter="decorrelated")
    assert [decorrelated.longest(n) / MILLISECOND for n in (1, 2, 3, 99)] == [300, 900, 1000, 1000]
