"""Triggers that overlap, grow and end, and actions that stay."""

import pytest
from stories import MS, Story, ms

from tidegate.settings.policies import RateLimit
from tidegate.settings.system import Action, Call, Client, Service, System, Time, Trigger
from tidegate.sim.world import World
from tidegate.units import SECOND


def shop(**service: object) -> Story:
    settings = {"workers": 10, "time": ms(100)} | service
    return Story({"shop": Service(**settings)})


def replica(story: Story) -> tuple[int, float]:
    one = story.world.services["shop"].replicas[0]
    return one.workers, one.slowdown


def test_the_end_of_one_trigger_never_undoes_another() -> None:
    story = shop()
    slow, half = Trigger(service="shop", slowdown=3.0), Trigger(service="shop", capacity=0.5)
    slower = Trigger(service="shop", slowdown=2.0, capacity=0.5)
    assert replica(story) == (10, 1.0)
    story.world.begin("slow", slow)
    story.world.begin("half", half)
    assert replica(story) == (5, 3.0)
    story.world.begin("slower", slower)
    assert replica(story) == (3, pytest.approx(6 * 3 / 2.5))
    story.world.end("slow", slow)
    assert replica(story) == (3, pytest.approx(2 * 3 / 2.5))
    story.world.end("half", half)
    assert replica(story) == (5, 2.0)
    story.world.end("slower", slower)
    assert replica(story) == (10, 1.0)


def test_two_freezes_thaw_with_the_last() -> None:
    story = shop()
    first, second = (Trigger(service="shop", freeze=True) for _ in range(2))
    story.world.begin("first", first)
    story.world.begin("second", second)
    story.ask(0)
    story.until(10)
    story.world.end("first", first)
    assert story.until(500).served == 0
    story.world.end("second", second)
    assert story.until(601).served == 1


def test_errors_add_up_as_chances_do() -> None:
    """Half fail by themselves and half of the rest by the trigger: a quarter is spared."""
    story = shop(errors=0.5, workers=None)
    errors = story.begin(service="shop", errors=0.5)
    story.ask(*[0] * 1000)
    assert story.until(200).served == pytest.approx(250, abs=55)  # four standard deviations
    story.end(errors)
    assert story.world.services["shop"].replicas[0].errors == 0.5


def test_a_trigger_may_hit_some_replicas_alone() -> None:
    story = shop(replicas=3)
    story.begin(service="shop", slowdown=2.0, replicas=2)
    slowness = [one.slowdown for one in story.world.services["shop"].replicas]
    assert slowness == [2.0, 2.0, 1.0]


def test_the_last_of_several_limits_holds_and_the_files_own_comes_back() -> None:
    story = shop(rate_limit=RateLimit(rate=100))
    pool = story.world.services["shop"]

    def rate() -> float:
        assert pool.rate is not None
        return pool.rate.snapshot(0).rate

    tight, tighter = (Trigger(service="shop", rate_limit=RateLimit(rate=r)) for r in (20, 10))
    rates = []
    for step in (
        lambda: story.world.begin("tight", tight),
        lambda: story.world.begin("tighter", tighter),
        lambda: story.world.end("tight", tight),
        lambda: story.world.end("tighter", tighter),
        lambda: story.world.act("new", Action(service="shop", rate_limit=RateLimit(rate=500))),
    ):
        step()
        rates.append(rate())
    assert rates == [20, 10, 10, 100, 500]


def test_a_limit_where_the_file_has_none_goes_away_again() -> None:
    story = shop()
    wrong = story.begin(service="shop", rate_limit=RateLimit(rate=1, burst=1))
    story.ask(0, 0, 10, 10)
    assert story.until(5).failed == 1
    story.end(wrong)
    assert story.until(200).served == 3


def test_a_release_calls_more_often_and_a_removal_never_again() -> None:
    story = shop(workers=None)
    more = story.begin(call="ask", per_request=3)
    story.ask(0, 500, 1000)
    assert story.until(400).call()[0] == 3
    story.end(more)
    assert story.until(900).call()[0] == 4
    story.world.act("remove", Action(call="ask", remove=True))
    assert story.until(1500).call()[0] == 4
    assert story.served == 3


# Ramps.


def test_a_ramp_grows_in_equal_steps_and_ends_at_once() -> None:
    story = shop()
    growing = story.begin(service="shop", slowdown=3.0, ramp=1000 * MS)
    seen = [replica(story)[1] for at in (0, 499, 949, 950, 2000) if story.until(at)]
    assert seen == pytest.approx([1.1, 2.0, 2.9, 3.0, 3.0])
    story.end(growing)
    assert replica(story)[1] == 1.0


def test_a_trigger_ended_while_it_grows_stays_ended() -> None:
    story = shop()
    growing = story.begin(service="shop", slowdown=3.0, ramp=1000 * MS)
    story.until(300)
    story.end(growing)
    assert [replica(story)[1] for at in (300, 600, 2000) if story.until(at)] == [1.0] * 3


def test_what_was_planned_to_end_may_be_ended_before() -> None:
    story = shop()
    planned = Trigger(service="shop", slowdown=3.0, ramp=200 * MS, for_=1000 * MS)
    assert story.world.plan("slow", planned, 100 * MS) == 1100 * MS
    seen = [replica(story)[1] for at in (99, 300, 500) if story.until(at)]
    assert seen == [1.0, 3.0, 3.0]
    story.world.end("slow", planned)
    assert [replica(story)[1] for at in (501, 1099, 1101, 1300) if story.until(at)] == [1.0] * 4


def test_a_trigger_without_an_end_lasts() -> None:
    story = shop()
    assert story.world.plan("slow", Trigger(service="shop", slowdown=2.0), 0) is None
    story.until(50_000)
    assert replica(story)[1] == 2.0


# Actions.


def test_an_action_changes_what_the_file_says_and_not_what_it_changed_before() -> None:
    story = shop()
    story.world.act("double", Action(service="shop", capacity=2.0))
    assert replica(story) == (20, 1.0)
    story.world.act("triple", Action(service="shop", capacity=3.0))
    assert replica(story) == (30, 1.0)
    story.begin(service="shop", capacity=0.5)
    assert replica(story) == (15, 1.0)


def test_an_action_may_end_a_trigger() -> None:
    system = System(
        clients={"me": Client(rate=1e-6, calls={"shop": Call()})},
        services={"shop": Service(workers=2, time=Time(mean=MS))},
        triggers={"slow": Trigger(service="shop", slowdown=5.0)},
        actions={"roll back": Action(ends="slow")},
    )
    world = World(system, seed=1, horizon=SECOND)
    world.begin("slow", system.triggers["slow"])
    world.act("roll back", system.actions["roll back"])
    assert world.services["shop"].replicas[0].slowdown == 1.0


def test_shed_load_and_a_surge_multiply() -> None:
    story = shop()
    me = story.world.clients["me"]
    story.begin(client="me", load=4.0)
    story.world.act("shed", Action(client="me", load=0.5))
    assert me.load == 2.0
    story.world.act("shed more", Action(client="me", load=0.25))
    assert me.load == 1.0
