"""Which storms the lab can raise, and what its figures are made of."""

from typing import Any

import pytest

from tidegate.errors import SettingsError
from tidegate.lab.storm import Series, agreement, guarded, predicted, story, told
from tidegate.settings.load import loads
from tidegate.settings.policies import Adaptive, Breaker, Budget, Limit
from tidegate.units import MILLISECOND, SECOND

TEXT = """\
tidegate: 1
clients:
  shoppers: {rate: 140/s, calls: {prices: {to: market, timeout: 500ms, attempts: 4}}}
services:
  market: {workers: 8, time: {constant: 40ms}}
triggers:
  slow market: {service: market, slowdown: 3x, for: 20s}
"""


def test_a_story_is_read_from_a_system_file() -> None:
    storm = story(loads(TEXT).system())
    assert (storm.client, storm.call_name, storm.service_name) == ("shoppers", "prices", "market")
    assert (storm.rate, storm.slowdown, storm.lasts) == (140, 3, 20 * SECOND)
    assert storm.left == pytest.approx(8 / 0.12)
    assert storm.patience == 500 * MILLISECOND
    assert storm.whole == storm.before + 20 * SECOND + storm.after


def test_what_is_left_is_never_more_than_what_is_offered() -> None:
    assert story(loads(TEXT.replace("140/s", "20/s")).system()).left == 20


def test_a_surge_is_a_storm_too() -> None:
    text = TEXT.replace("{service: market, slowdown: 3x,", "{client: shoppers, load: 2x, ramp: 4s,")
    storm = story(loads(text).system())
    assert storm.slowdown == 1
    assert sum(part.lasts for part in storm.plan) == storm.whole
    # 8 workers of 40 ms do 200/s; the ramp passes that in its second second and a half.
    ramp = [140 + 35 * (second + 0.5) for second in range(4)]
    assert storm.left == pytest.approx((sum(min(200, rate) for rate in ramp) + 16 * 200) / 20)
    assert sum(predicted(storm, 1).offered) == pytest.approx(
        140 * 14 + 280 * 16 + 210 * 4, rel=0.06
    )


def test_how_long_it_lasts_can_be_said_and_is_counted_in_whole_seconds() -> None:
    storm = story(loads(TEXT).system(), lasts=4100 * MILLISECOND)
    assert storm.lasts == 5 * SECOND


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "services:",
            "  walkers: {rate: 1/s, calls: {look: {to: market}}}\nservices:",
            "one client",
        ),
        ("rate: 140/s", "users: 5, think: 1s", "needs a rate"),
        ("attempts: 4}", "attempts: 4, per_request: 2}", "one call a request"),
        ("attempts: 4}", "attempts: 4, network: 1ms}", "over the loopback"),
        ("attempts: 4}}", "attempts: 4}, other: {to: market}}", "one call a request"),
        ("workers: 8", "workers: 8, replicas: 2", "not replicas"),
        ("slowdown: 3x", "freeze: true", "there is neither"),
        ("slowdown: 3x", "slowdown: 3x, ramp: 1s", "there is neither"),
        (", for: 20s", "", "how long it lasts"),
    ],
)
def test_what_the_lab_cannot_raise_is_said_in_a_sentence(old: str, new: str, says: str) -> None:
    assert old in TEXT
    with pytest.raises(SettingsError, match=says):
        story(loads(TEXT.replace(old, new)).system())


def test_a_guard_adds_the_safe_set() -> None:
    call = guarded(story(loads(TEXT).system())).call
    assert (call.attempts, call.timeout) == (4, 500 * MILLISECOND)  # what the file says stays
    assert (call.budget, call.breaker) == (Budget(), Breaker())
    assert call.limit == Limit(adaptive=Adaptive())
    own = TEXT.replace("attempts: 4}", "attempts: 4, limit: 24}")
    assert guarded(story(loads(own).system())).call.limit == Limit(max=24)


def test_a_prediction_is_a_function_of_its_seed() -> None:
    storm = story(loads(TEXT).system(), lasts=SECOND, before=SECOND, after=SECOND)
    one = predicted(storm, 1)
    assert one == predicted(storm, 1)
    assert one != predicted(storm, 2)
    assert {len(part) for part in one[:4]} == {3}


def series(good: list[int], **more: Any) -> Series:
    size = len(good)
    return Series(more.get("offered", [100] * size), good, good, [200] * size, seed=7)


def short() -> Any:
    return story(loads(TEXT).system(), lasts=2 * SECOND, before=SECOND, after=8 * SECOND)


def test_figures_are_means_over_their_seconds_with_the_spread_of_the_runs() -> None:
    one = series([90, 10, 20, *[100] * 8])
    other = series([80, 30, 40, *[100] * 8])
    run = told(short(), "guarded", "simulated", [one, other])
    assert (run.before.value, run.before.low, run.before.high) == (85, 80, 90)
    assert (run.during.value, run.during.runs, run.during.how) == (25, 2, "simulated")
    assert run.kept.low == pytest.approx(15 / (8 / 0.12))
    assert (run.after.value, run.attempts.value) == (100, 200)
    assert run.timeline.goodput[:3] == [90, 10, 20]  # of the first run
    assert (run.timeline.start, run.timeline.end, run.timeline.seed) == (1, 3, 7)


@pytest.mark.parametrize(
    ("after", "back"),
    [
        ([100] * 8, 0),
        ([80, 80, *[100] * 6], 1),  # a good mean of five seconds with one of them bad
        ([0, 0, 0, *[100] * 5], 3),
        ([0, 0, 0, 0, *[100] * 4], None),  # well for four seconds: not seen for long enough
        ([94] * 8, None),
    ],
)
def test_back_is_the_first_of_five_seconds_at_95_percent(
    after: list[int], back: float | None
) -> None:
    run = told(short(), "guarded", "measured", [series([100, 0, 0, *after])])
    assert (None if run.back_after is None else run.back_after.value) == back


def test_one_run_that_does_not_come_back_is_enough_to_say_no() -> None:
    well, down = series([100, 0, 0, *[100] * 8]), series([100, 0, 0, *[0] * 8])
    assert told(short(), "guarded", "simulated", [well, down]).back_after is None


def test_a_doubt_is_passed_on() -> None:
    doubtful = series([100] * 11)._replace(doubt="the generator was saturated")
    run = told(short(), "guarded", "measured", [doubtful])
    assert run.doubt == "the generator was saturated"


def test_simulator_and_reality_are_compared_by_what_was_offered() -> None:
    said = [series([50] * 4), series([60] * 4)]
    seen = [series([110] * 4, offered=[200] * 4)]
    goodput, attempts = agreement("guarded", said, seen)
    assert goodput.simulated.value == pytest.approx(0.55)
    assert goodput.measured.value == pytest.approx(0.55)
    assert goodput.difference == pytest.approx(0)
    assert (goodput.simulated.low, goodput.simulated.high) == (0.5, 0.6)
    assert (attempts.what, attempts.difference) == ("attempts", -0.5)
