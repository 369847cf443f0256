"""A sink is whole when every way to it tells the same story, and the story has no gap."""

import pytest

from tidegate.core.health import Health, Partition, View, flaw

WHOLE = Partition("events-7", leader="1", replicas=3, in_sync=3)


def seen(by: str, *parts: Partition, brokers: int = 3, **others: str) -> View:
    return View(seen_from=by, brokers=brokers, partitions=parts or (WHOLE,), **others)


def test_three_brokers_that_agree_have_no_flaw() -> None:
    assert flaw(Health((seen("a"), seen("b"), seen("c"))), brokers=3) is None


@pytest.mark.parametrize(
    ("health", "says"),
    [
        (Health((), ("a",)), "nobody answers (a)"),
        (Health(()), "nobody answers"),
        (Health((seen("a"),), ("b",)), "b does not answer"),
        (Health((seen("a", brokers=2),)), "a knows 2 of 3 brokers"),
        (Health((seen("a", WHOLE._replace(leader=None)),)), "events-7 has no leader"),
        (
            Health((seen("a", WHOLE._replace(in_sync=2)),)),
            "events-7 has 2 of 3 replicas in step",
        ),
        (
            Health((seen("a", cluster="x"), seen("b", cluster="y"))),
            "a and b disagree: they are of two clusters",
        ),
        (
            Health((seen("a", controller="1"), seen("b", controller="2"))),
            "a and b disagree on who rules the cluster",
        ),
        (
            Health((seen("a"), seen("b", WHOLE._replace(leader="2")))),
            "a and b disagree on events-7",
        ),
        (
            Health((seen("a"), seen("b", WHOLE, WHOLE._replace(name="events-8")))),
            "a and b disagree on which partitions there are",
        ),
    ],
)
def test_a_flaw_is_told_in_words(health: Health, says: str) -> None:
    assert flaw(health, brokers=3) == says


def test_one_broker_out_of_step_shows_by_contradicting_the_others() -> None:
    """It believes itself the leader and its set complete; asked alone it would have seemed well."""
    sick = seen("b", WHOLE._replace(leader="2", in_sync=3))
    assert flaw(Health((sick,)), brokers=3) is None
    assert flaw(Health((seen("a"), sick, seen("c"))), brokers=3) == "a and b disagree on events-7"
