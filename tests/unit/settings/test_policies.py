"""What a policy's settings refuse, in one sentence that names the key."""

import math

import pytest

from tidegate.errors import SettingsError
from tidegate.settings.policies import (
    Adaptive,
    Backoff,
    Breaker,
    Budget,
    CoDel,
    Limit,
    Queue,
    RateLimit,
    Settings,
)
from tidegate.units import HOUR, MILLISECOND, SECOND

REFUSED = [
    (Budget, {"ratio": -0.1}, "ratio"),
    (Budget, {"ratio": math.nan}, "ratio"),
    (Budget, {"ratio": "10%"}, "ratio"),
    (Budget, {"window": 10}, "window"),  # ten seconds, meant; ten nanoseconds, said
    (Backoff, {"base": 0.5}, "base"),
    (Backoff, {"base": -1}, "base"),
    (Backoff, {"factor": 0.5}, "factor"),
    (Backoff, {"base": 30 * SECOND}, "max"),  # the default maximum is 20 s
    (Backoff, {"jitter": "ful"}, "jitter"),
    (Breaker, {"failures": 50}, "failures"),
    (Breaker, {"volume": 2.5}, "volume"),
    (Breaker, {"volume": True}, "volume"),
    (Breaker, {"open_for": 0}, "open_for"),
    (Breaker, {"probes": 0}, "probes"),
    (Breaker, {"lease": 2 * HOUR}, "lease"),
    (Breaker, {"ramp": -1}, "ramp"),
    (Breaker, {"ramp_from": 1.1}, "ramp_from"),
    (RateLimit, {"rate": 0}, "rate"),
    (RateLimit, {"rate": 2e7}, "rate"),
    (RateLimit, {"rate": 1, "burst": 0}, "burst"),
    (Adaptive, {"min": 0}, "min"),
    (Adaptive, {"min": 30}, "start"),
    (Adaptive, {"min": 30, "start": 40, "max": 20}, "max"),
    (Adaptive, {"decrease": 1}, "decrease"),
    (Adaptive, {"latency": 0}, "latency"),
    (Limit, {}, "max"),
    (Limit, {"max": 1, "adaptive": Adaptive()}, "max"),
    (Limit, {"max": 0}, "max"),
    (CoDel, {"target": 0}, "target"),
    (CoDel, {"target": SECOND}, "interval"),
    (Queue, {"limit": -1}, "limit"),
    (Queue, {"order": "newest"}, "order"),
    (Queue, {"full": "drop"}, "full"),
]


@pytest.mark.parametrize(("record", "values", "key"), REFUSED)
def test_a_wrong_value_is_refused_by_its_key(
    record: type[Settings], values: dict[str, object], key: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        record(**values)
    assert caught.value.path == (key,)
    assert caught.value.expected
    assert "\n" not in str(caught.value)


def test_the_nearest_word_is_named() -> None:
    with pytest.raises(SettingsError, match=r"jitter: there is no jitter 'ful'.*'full'"):
        Backoff(jitter="ful")


@pytest.mark.parametrize(
    "fine",
    [
        lambda: Backoff(base=0),
        lambda: Backoff(base=20 * SECOND),
        lambda: Breaker(ramp=0, probes=1, volume=1),
        lambda: Limit(adaptive=Adaptive(latency=250 * MILLISECOND)),
        lambda: Queue(limit=0, order="adaptive_lifo", full="silence", codel=CoDel(), late=True),
        lambda: RateLimit(rate=1 / 3600),
    ],
)
def test_the_edges_of_what_is_allowed(fine: object) -> None:
    assert fine() == fine()


@pytest.mark.parametrize("record", [Budget, Backoff, Breaker, Adaptive, CoDel, Queue])
def test_every_default_is_allowed(record: type[Settings]) -> None:
    record()
