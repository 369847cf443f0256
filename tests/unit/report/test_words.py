"""The verdict leads with three numbers, and each says the truth in every case."""

from typing import Any

import pytest
from msgspec.structs import replace
from sample_reports import cures, empty, half, marketplace, migration, mixed, part, stable, took

from tidegate.findings import Fall, Measure, TriggerResult
from tidegate.report import html, text, words
from tidegate.report.words import three_numbers


def headline(report: Any, position: int) -> tuple[str, str]:
    told = three_numbers(report)[position]
    return told.short, told.long


def test_harm_is_told_with_both_sides_of_the_division() -> None:
    assert headline(marketplace(), 0) == (
        "3.33x",
        "581k (574k..589k) requests fail in migration, 174k (171k..178k) without retries",
    )


def test_harm_that_exists_only_because_of_retries_is_all_of_it() -> None:
    alone = replace(migration(), harm_ratio=None, harm_without=part(0, 0, 0))
    report = replace(marketplace(), harm_ratio=None, triggers=[alone])
    assert headline(report, 0)[0] == "all of it"


def test_harm_is_none_when_nothing_fails_and_unknown_when_nothing_was_tried() -> None:
    harmless = replace(half(), harm=part(0, 0, 0), harm_ratio=None)
    calm = replace(stable(), harm_ratio=None, triggers=[harmless, harmless])
    assert headline(calm, 0) == ("none", "no request fails in any of 2 triggers")
    assert headline(empty(), 0) == ("not known", "no trigger was tried")


def test_who_falls_is_named_with_what_they_truly_need() -> None:
    assert headline(marketplace(), 1) == (
        "open a page (readers)",
        "open a page (readers): 6% (5..8%) answered in time; only 30% need what was hit",
    )
    assert headline(stable(), 1)[0] == "nobody"
    assert headline(empty(), 1)[0] == "not known"


def test_who_needs_nothing_of_it_is_told_so() -> None:
    fall = Fall(client="b", journey=None, goodput=part(0, 0, 0), needed=0, says="")
    assert words.who_falls(fall) == "b: 0% (0..0%) answered in time; no request needs what was hit"


def test_more_than_two_who_fall_are_counted() -> None:
    falls = [replace(migration().falls[0], client=f"c{i}", journey=None) for i in range(5)]
    report = replace(
        marketplace(), falls=["c0", "c1"], triggers=[replace(migration(), falls=falls)]
    )
    assert headline(report, 1)[1].endswith("; and 3 more")


@pytest.mark.parametrize(
    ("report", "short", "long"),
    [
        (marketplace(), "yes", "after migration, in 100% (84..100%) of 20 runs"),
        (replace(marketplace(), stays=["by hand"]), "yes", "after by hand"),
        (
            replace(marketplace(), verdict="collapses by itself"),
            "yes",
            "it goes down under today's load, without any trigger",
        ),
        (mixed(), "no", "but it does not settle after health checks"),
        (
            stable(),
            "no",
            (
                "it comes back after the one trigger tried, at the latest 8s (5s..13s) after the"
                " end of half of marketplace"
            ),
        ),
        (empty(), "not known", "no trigger was tried"),
    ],
)
def test_whether_it_stays(report: Any, short: str, long: str) -> None:
    assert headline(report, 2) == (short, long)


def after(outcome: str, **changes: Any) -> TriggerResult:
    return replace(migration(), outcome=outcome, **changes)


@pytest.mark.parametrize(
    ("trigger", "told"),
    [
        (after("recovers", recovered_after=took(8, 5, 13)), "back 8s (5s..13s) after its end"),
        (after("recovers"), "comes back by itself"),
        (after("slow to drain", finishes_at=took(90, 80, 99)), "done 1.5min"),
        (after("sticks"), "stays down"),
        (after("oscillates"), "comes and goes"),
        (after("unharmed"), "nobody notices"),
    ],
)
def test_each_outcome_has_its_sentence(trigger: TriggerResult, told: str) -> None:
    sentence = words.outcome_of(trigger)
    assert sentence.startswith(told)
    assert sentence.endswith(" in 100% (84..100%) of 20 runs")


def test_an_outcome_of_the_fluid_model_alone_claims_no_runs() -> None:
    sure = Measure(value=1, low=1, high=1, unit="share", how="fluid")
    assert words.outcome_of(after("sticks", confidence=sure)) == "stays down in 100% (fluid)"


def test_a_cure_that_no_simulation_confirmed_is_a_maybe() -> None:
    first, _, last = cures()
    assert words.cure_verdict(first) == "yes"
    assert words.cure_verdict(replace(first, confirmed=False)) == "maybe"
    assert words.cure_verdict(last) == "1 of 2"
    assert words.cures_best_first([last, first]) == [first, last]


def test_a_cure_of_an_open_file_says_in_what_share_of_it() -> None:
    some = Measure(value=0.875, low=0.75, high=0.94, unit="share", runs=48, how="fluid")
    first, _, last = cures()
    assert words.cure_verdict(replace(first, holds_in=some)) == "yes in 88%"
    assert words.cure_verdict(replace(first, confirmed=False, holds_in=some)) == "maybe in 88%"
    assert words.cure_verdict(replace(last, holds_in=some)) == "1 of 2"
    report = replace(marketplace(), cures=[replace(first, holds_in=some)])
    told = " ".join(text.render(report, width=100, color=False).split())
    assert "in 88% (75..94%, fluid) of what the file leaves open (48 samples)" in told
    page = html.render(report)
    assert "It cures in 88% (75..94%, fluid) of what is open (48 samples)." in page


def test_actions_say_what_they_did() -> None:
    stuck, healed, _ = migration().actions
    assert words.action_outcome(stuck) == "still stuck"
    assert words.action_outcome(healed) == "recovers in 41s (36s..55s)"
    assert words.action_outcome(replace(healed, recovered_after=None)) == "recovers"
    assert words.action_name(healed) == "roll back + open licences"


def test_the_worst_comes_first() -> None:
    report = marketplace()
    triggers = words.triggers_worst_first(mixed().triggers)
    assert [t.outcome for t in triggers] == ["oscillates", "slow to drain", "unharmed"]
    services = words.services_worst_first(report.services, "marketplace")
    assert [s.service for s in services] == ["marketplace", "tracker", "edge"]
    fullest = words.services_worst_first([report.services[0], report.services[2]], None)
    assert [s.service for s in fullest] == ["marketplace", "tracker"]
    audit = words.audit_worst_first(report.audit)
    assert [f.severity for f in audit] == ["error", "warning", "warning", "note"]


def test_work_done_twice_is_told_only_if_there_is_any() -> None:
    assert "done twice" in dict(words.work_of(migration()))
    assert "done twice" not in dict(words.work_of(half()))


def test_what_a_journey_needs_leaves_out_what_it_does_not() -> None:
    journey = marketplace().journeys[0]
    assert words.needs_of(journey) == "tracker 100%, edge 30%, marketplace 30%"
    assert words.needs_of(replace(journey, services=[])) == "nothing"
