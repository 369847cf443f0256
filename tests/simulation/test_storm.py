"""The storm in the simulator: it outlives its trigger, and a guard takes that away.

8 workers of 40 ms, 140 requests a second, 500 ms, three retries at once, three times slower for 20
seconds. What is left then is 67 a second.
"""

from pathlib import Path

import pytest

from tidegate.lab.storm import Series, Storm, guarded, predicted, story, told
from tidegate.settings.load import load
from tidegate.units import SECOND

pytestmark = pytest.mark.slow  # twelve storms of 20 seconds and what comes after

EXAMPLE = Path(__file__).parents[2] / "examples" / "storm.yaml"
SEEDS = range(1, 7)


@pytest.fixture(scope="module")
def storm() -> Storm:
    return story(load(EXAMPLE).system())


def runs(storm: Storm) -> list[Series]:
    return [predicted(storm, seed) for seed in SEEDS]


def test_without_a_guard_it_stays_down_when_its_cause_has_gone(storm: Storm) -> None:
    seen = runs(storm)
    end = (storm.before + storm.lasts) // SECOND
    assert all(sum(run.good[end:]) == 0 for run in seen)
    # Attempts stay far above the 200 a second that it can do in health: that is what holds it down.
    assert all(sum(run.attempts[end:]) > 450 * (len(run.attempts) - end) for run in seen)


def test_with_a_guard_nearly_all_of_what_is_left_is_served_and_it_is_back_at_once(
    storm: Storm,
) -> None:
    run = told(storm, "guarded", "simulated", runs(guarded(storm)))
    assert run.kept.value >= 0.95, f"{run.kept}, seeds {SEEDS}"
    assert run.back_after is not None, f"seeds {SEEDS}"
    assert run.back_after.high <= 5
    assert run.attempts.high < 1.1 * storm.rate
