"""Which replica takes what arrives, and what the replicas of a service share."""

import pytest
from stories import MS, Story, ms

from tidegate.settings.policies import Adaptive, Limit, Queue, RateLimit
from tidegate.settings.system import Call, Restart, Service


def shop(balance: str, **service: object) -> Story:
    """Three replicas of one worker and 100 ms, unless told otherwise."""
    settings = {"replicas": 3, "workers": 1, "time": ms(100), "balance": balance} | service
    return Story({"shop": Service(**settings)}, {"ask": Call(to="shop", timeout=9999 * MS)})


def holding(story: Story) -> list[int]:
    return [replica.in_system for replica in story.world.services["shop"].replicas]


def test_round_robin_takes_turns_whatever_they_hold() -> None:
    story = shop("round_robin")
    story.ask(*range(7))
    story.until(10)
    assert sorted(holding(story)) == [2, 2, 3]


def test_at_random_each_gets_about_its_share() -> None:
    story = shop("random", workers=1000)
    story.ask(*[0] * 900)
    story.until(10)
    assert holding(story) == pytest.approx([300, 300, 300], abs=57)  # four standard deviations


def test_the_least_loaded_is_the_one_that_holds_fewest() -> None:
    story = shop("least_loaded")
    story.begin(service="shop", freeze=True, replicas=1)
    story.ask(*range(0, 1000, 40))
    story.until(1000)
    assert holding(story)[0] <= min(holding(story)[1:]) + 1
    assert story.served > 15


def test_a_frozen_replica_still_gets_its_turn() -> None:
    story = shop("round_robin")
    story.begin(service="shop", freeze=True, replicas=1)
    story.ask(*range(0, 900, 50))
    story.until(2000)
    assert (story.served, holding(story)) == (12, [6, 0, 0])


def test_a_rate_limit_is_for_all_replicas_together() -> None:
    story = shop("round_robin", rate_limit=RateLimit(rate=1, burst=2))
    story.ask(0, 0, 0)
    assert story.until(1).failed == 1


# One line for all.


def test_whoever_is_free_takes_the_next_of_a_shared_line() -> None:
    story = shop("shared_queue")
    story.ask(*[0] * 5)
    story.until(10)
    assert story.world.services["shop"].in_system == 5
    assert [replica.busy for replica in story.world.services["shop"].replicas] == [1, 1, 1]
    assert [story.until(at).served for at in (99, 100, 200)] == [0, 3, 5]


def test_idle_replicas_of_a_shared_line_take_turns() -> None:
    story = shop("shared_queue")
    story.begin(service="shop", errors=1.0, replicas=1)
    story.ask(0, 200, 400, 600, 800, 1000)
    story.until(2000)
    assert (story.served, story.failed) == (4, 2)


def test_one_frozen_replica_of_three_leaves_two_thirds_of_a_shared_line() -> None:
    """What it has in hand stays there; what waits is taken by the others."""
    story = shop("shared_queue")
    story.ask(*[0] * 7)
    story.until(50)
    frozen = story.begin(service="shop", freeze=True, replicas=1)
    assert [story.until(at).served for at in (100, 200, 300, 1000)] == [2, 4, 6, 6]
    story.end(frozen)
    assert story.until(1051).served == 7


def test_places_and_limits_are_those_of_all_replicas_together() -> None:
    story = shop("shared_queue", queue=Queue(limit=2))
    story.ask(*[0] * 10)
    assert story.until(1).failed == 1  # three work and six wait
    story = shop("shared_queue", limit=Limit(max=2))
    story.ask(*[0] * 7)
    assert story.until(1).failed == 1
    adaptive = Adaptive(start=20, max=400_000)
    (limiter,) = {
        replica.limiter
        for replica in shop("shared_queue", limit=Limit(adaptive=adaptive))
        .world.services["shop"]
        .replicas
    }
    assert limiter is not None
    assert limiter.limit == 60


def test_replicas_that_share_a_line_break_together_when_it_is_too_long() -> None:
    story = shop("shared_queue", restart=Restart(backlog=1, down=100 * MS))
    story.ask(*[0] * 6)
    assert story.until(1).service("shop") == {"inside": 6}
    story.ask(2, 50, 150)
    assert story.until(2).service("shop") == {"dropped": 7}
    assert story.until(50).service("shop") == {"dropped": 8}
    assert story.until(250).served == 1
