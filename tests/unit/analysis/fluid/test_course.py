"""The verdict on a run of the fluid, from what was asked, served and left waiting by the second."""

import math

import pytest

from tidegate.analysis.fluid.course import RUNNING, Course, Drain, drained_after, judge

EMPTY = {"db": Drain([0.0] * 100, 10)}
START, END = 10.0, 20.0


def verdict(
    good: list[float], drains: dict[str, Drain] | None = None
) -> tuple[str, object, object]:
    outcome, after, finish = judge(
        {"users": [100.0] * len(good)},
        {"users": good},
        drains or {"db": Drain([0.0] * len(good), 10)},
        start=START,
        end=END,
        lag=1,
        objective=0.95,
    )
    return outcome["users"], after["users"], finish


def served(*spells: tuple[int, float]) -> list[float]:
    return [share for seconds, share in spells for _ in range(seconds)]


def test_nobody_is_harmed() -> None:
    assert verdict(served((100, 96))) == ("unharmed", 0, None)


def test_one_bad_second_in_twenty_is_no_harm() -> None:
    assert verdict(served((15, 100), (1, 0), (84, 100)))[0] == "unharmed"
    assert verdict(served((15, 100), (2, 0), (83, 100)))[0] == "recovers"


def test_it_recovers_at_the_first_of_thirty_good_seconds() -> None:
    assert verdict(served((10, 100), (17, 0), (RUNNING, 95), (10, 0))) == ("recovers", 7, None)
    almost = served((10, 100), (17, 0), (RUNNING - 1, 95), (10, 0), (34, 0))
    assert verdict(almost)[0] == "sticks"


def test_it_is_back_at_once() -> None:
    assert verdict(served((10, 100), (10, 0), (80, 100))) == ("recovers", 0, None)


def falling(start: float, speed: float) -> list[float]:
    return [100.0] * 20 + [start - speed * second for second in range(80)]


def test_a_queue_that_falls_drains_by_the_drain_law() -> None:
    waiting = falling(1000, 2)
    down = served((10, 100), (90, 0))
    outcome, after, finish = verdict(down, {"db": Drain(waiting, 300)})
    assert (outcome, after) == ("slow to drain", None)
    # It stands at 842 after 80 s and is in time at 300, at two a second.
    assert finish == pytest.approx(80 + (842 - 300) / 2, abs=2)


def test_a_queue_that_stands_or_grows_does_not_drain() -> None:
    assert drained_after({"db": Drain([500.0] * 100, 10)}) is None
    assert drained_after({"db": Drain(falling(500, -1), 10)}) is None
    assert drained_after({"db": Drain([500.0] * 100, 10), "x": Drain(falling(900, 3), 0)}) is None


def test_short_queues_do_not_matter() -> None:
    both = {"db": Drain([9.0] * 100, 10), "x": Drain(falling(900, 3), 0)}
    assert drained_after(both) == pytest.approx((900 - 79 * 3) / 3, abs=1)
    assert drained_after(EMPTY) is None


def test_goodput_that_comes_and_goes_swings() -> None:
    swinging = served((10, 100), (10, 0), *[(10, 100), (10, 0)] * 6)
    assert verdict(swinging)[0] == "oscillates"


def course(**said: object) -> Course:
    return Course(
        outcome="sticks",
        by_client={},
        recovered_after={},
        finishes_after=None,
        lag=1,
        dt=0.1,
        coarse=False,
        attempts={},
        backlog=[],
        **{  # type: ignore[arg-type]
            "start": 2.0,
            "end": 3.5,
            "offered": {"users": [10.0, 10.0, 10.0, 10.0, 10.0]},
            "good": {"users": [10.0, 10.0, 5.0, 0.0, 10.0]},
            "arrived": {"db": [10.0, 10.0, 30.0, 30.0, 10.0], "new": [0.0] * 5},
            **said,
        },
    )


def test_the_last_second_of_a_trigger_counts_as_a_whole() -> None:
    assert course().harm == 15
    assert course().goodput("users", 2, 3.5) == 0.25
    assert course().goodput("users", 0, 2) == 1
    assert course(offered={"users": [0.0] * 5}).goodput("users", 0, 2) == 1


def test_amplification_is_during_over_before() -> None:
    assert course().amplification("db") == 3
    assert course().amplification("new") == 1
    assert math.isclose(course(start=0.0).amplification("db"), 70 / 3 / 10)
