"""The order of a showing and its verdict, with a reality that is simulated, too."""

from pathlib import Path

import pytest

from tidegate.lab import show as module
from tidegate.lab.findings import StormReport
from tidegate.lab.show import default_story, show
from tidegate.lab.storm import Series, Storm, predicted, story
from tidegate.settings.load import loads
from tidegate.units import SECOND

EXAMPLE = Path(__file__).parents[3] / "examples" / "storm.yaml"


def simulated(storm: Storm, seed: int, *, guard: bool) -> Series:
    """Reality, as the tests would have it."""
    return predicted(storm, seed + 100)


def dead(storm: Storm, seed: int, *, guard: bool) -> Series:
    """A reality in which nothing is ever answered."""
    run = predicted(storm, seed)
    return run._replace(good=[0] * len(run.good))


def shown(monkeypatch: pytest.MonkeyPatch, reality: object) -> tuple[StormReport, list[str]]:
    said: list[str] = []
    monkeypatch.setattr(module, "live", reality)
    storm = story(loads(default_story()).system(), lasts=4 * SECOND, before=2 * SECOND)
    report = show(storm, source="a file", seed=3, repeat="again", progress=said.append)
    return report, said


def test_the_storm_that_comes_with_us_is_the_example() -> None:
    assert default_story() == EXAMPLE.read_text("utf-8")


@pytest.mark.slow  # forty short storms are simulated
def test_it_predicts_first_and_tells_all_four_in_the_same_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report, said = shown(monkeypatch, simulated)
    assert said == ["predicting", "live, without a guard: 16 s", "live, with a guard: 16 s"]
    assert [(run.client, run.how, run.kept.runs) for run in report.runs] == [
        ("unguarded", "simulated", 20),
        ("unguarded", "measured", 1),
        ("guarded", "simulated", 20),
        ("guarded", "measured", 1),
    ]
    assert report.exit_code == 0
    assert report.says.startswith("with a guard all of what market could still do was answered")
    assert report.says.endswith("and it was not well again while it was watched")
    assert report.seeds == list(range(3, 23))
    assert (report.offered, round(report.left, 1)) == (140, 66.7)
    assert "retry budget 10%" in report.guard
    assert "a limit that finds itself" in report.guard
    assert [(a.client, a.what) for a in report.agreement] == [
        ("unguarded", "goodput"),
        ("unguarded", "attempts"),
        ("guarded", "goodput"),
        ("guarded", "attempts"),
    ]
    assert all(abs(a.difference) < 0.15 for a in report.agreement)


@pytest.mark.slow  # as above
def test_a_guard_that_does_not_hold_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    report, _ = shown(monkeypatch, dead)
    assert report.exit_code == 1
    assert report.says.startswith("with a guard 0% of what market could still do")
