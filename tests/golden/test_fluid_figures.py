"""The fluid gives the figures that others have published or measured, to the last digit shown.

The long searches are marked golden; what is left runs in a second or two.
"""

import math

import pytest

from tidegate.analysis.fluid.line import Change, Line, Run, jittered, run, series, smallest
from tidegate.analysis.theory import refusal_cliff, refusals, smallest_outage

NEVER = math.inf


# A database of 300/s, 1 s, one retry, and an outage of 10 s (Bronson et al., HotOS'21, 2.1).


def database(load: float, *, outage: float, seconds: float, dt: float = 0.0025) -> Run:
    down = series(300, seconds, dt, Change(0, outage))
    return run(Line(timeout=1, attempts=2), series(load, seconds, dt), down, dt=dt)


def test_at_280_it_never_comes_back() -> None:
    after = database(280, outage=10, seconds=200, dt=0.01)
    assert after.share(100) == 0
    assert after.rate(100) == pytest.approx(560)


@pytest.mark.parametrize(
    ("load", "back", "backlog", "seconds"),
    [(140, 119, 2660, 200), (149, 1267, 2831, 1400), (151, NEVER, 5649, 1400)],
)
@pytest.mark.slow  # 1,400 s in steps of 10 ms
def test_around_its_recovery_threshold(
    load: float, back: float, backlog: float, seconds: float
) -> None:
    after = database(load, outage=10, seconds=seconds, dt=0.01)
    assert after.back_at(0.99, 10) - 10 == pytest.approx(back, abs=1)
    assert max(after.backlog) == pytest.approx(backlog, rel=0.005)


def tipping_outage(load: float, *, dt: float) -> float:
    def tips(outage: float) -> bool:
        return database(load, outage=outage, seconds=40, dt=dt).share(35) < 0.5

    return smallest(tips, 0.9, 1.7, tolerance=dt / 2)


@pytest.mark.slow  # a search
@pytest.mark.parametrize("load", [160, 280])
def test_smallest_outage_is_that_of_the_closed_form(load: float) -> None:
    dt = 0.0025  # a 400th of the timeout; results move by a step or two
    assert tipping_outage(load, dt=dt) == pytest.approx(smallest_outage(load, 300, 1), abs=2 * dt)


@pytest.mark.golden
@pytest.mark.parametrize("load", [151, 160, 200, 240, 280, 299])
def test_smallest_outage_at_half_a_millisecond(load: float) -> None:
    assert tipping_outage(load, dt=5e-4) == pytest.approx(smallest_outage(load, 300, 1), abs=1e-3)


# A replicated store at 6,200/s, 3 s, 5 attempts, CPU cut at 60 s (Huang et al., OSDI'22, figure 5).


def store(
    load: float, cut: float, lasts: float, *, capacity: float, dt: float, attempts: int = 5
) -> Run:
    less = series(capacity, 150, dt, Change(60, lasts, 1 - cut))
    return run(Line(timeout=3, attempts=attempts), series(load, 150, dt), less, dt=dt)


@pytest.mark.slow  # four runs of 20,000 steps
@pytest.mark.parametrize(("capacity", "attempts"), [(16_000, 5), (17_000, 5), (17_000, 4)])
def test_four_cuts_of_a_store(capacity: float, attempts: int) -> None:
    """78 % for 10 s, 80 % for 9 s, 80 % for 10 s at two thirds of the load recover; 80 % stays."""

    def late(load: float, cut: float, lasts: float) -> float:
        with_cut = store(load, cut, lasts, capacity=capacity, dt=0.0075, attempts=attempts)
        return with_cut.share(140)

    assert late(6200, 0.78, 10) == pytest.approx(1)
    assert late(6200, 0.80, 10) == 0
    assert late(6200, 0.80, 9) == pytest.approx(1)
    assert late(4200, 0.80, 10) == pytest.approx(1)


@pytest.mark.golden
@pytest.mark.parametrize(
    ("load", "cut", "lasts"), [(6200, 0.799, 9.95), (5200, 0.848, 12.9), (4200, 0.903, 21.5)]
)
def test_smallest_cut_and_shortest_cut_of_a_store(load: float, cut: float, lasts: float) -> None:
    def stays(share: float, seconds: float) -> bool:
        return store(load, share, seconds, capacity=17_000, dt=0.004).share(140) < 0.5

    assert smallest(lambda c: stays(c, 10), 0.5, 1, tolerance=2e-4) == pytest.approx(cut, abs=1e-3)
    found = smallest(lambda d: stays(0.8, d), 5, 30, tolerance=0.01)
    assert found == pytest.approx(lasts, abs=0.07)


# Ten workers of 10 ms, 100 ms, 4 attempts, all workers frozen at 5 s.


def pool(load: float, freeze: float, *, dt: float, after: float, line: Line | None = None) -> Run:
    seconds = 5 + freeze + after
    frozen = series(1000, seconds, dt, Change(5, freeze))
    line = line or Line(timeout=0.1, attempts=4)
    return run(line, series(load, seconds, dt), frozen, dt=dt)


def tipping_freeze(load: float, *, dt: float, after: float) -> float:
    def tips(freeze: float) -> bool:
        return pool(load, freeze, dt=dt, after=after).share(5 + freeze + after / 2) < 0.5

    return smallest(tips, 0.09, 0.25, tolerance=dt)


FREEZES = [(300, 0.218), (400, 0.176), (500, 0.150), (600, 0.131), (700, 0.115), (750, 0.110)]


@pytest.mark.slow  # a search
@pytest.mark.parametrize(("load", "freeze"), FREEZES[::3])
def test_smallest_freeze_of_a_pool(load: float, freeze: float) -> None:
    assert tipping_freeze(load, dt=5e-4, after=2) == pytest.approx(freeze, abs=2e-3)


@pytest.mark.golden
@pytest.mark.parametrize(("load", "freeze"), FREEZES)
def test_smallest_freeze_of_a_pool_at_a_tenth_of_a_millisecond(load: float, freeze: float) -> None:
    assert tipping_freeze(load, dt=1e-4, after=20) == pytest.approx(freeze, abs=8e-4)


def cured(
    load: float, freeze: float, *, dt: float = 0.005, after: float = 8, **cure: object
) -> float:
    line = Line(timeout=0.1, attempts=4, **cure)  # type: ignore[arg-type]
    return pool(load, freeze, dt=dt, after=after, line=line).share(5 + freeze + 0.8 * after)


CURES: list[tuple[dict[str, object], tuple[float, float]]] = [
    ({}, (0, 0)),
    ({"gaps": jittered(0.05, 3)}, (0, 0)),
    ({"places": 200}, (0, 0)),
    ({"places": 200, "full": "silence"}, (0, 0)),
    ({"places": 90}, (1, 1)),
    ({"places": 90, "full": "silence"}, (1, 1)),
    ({"places": 50}, (1, 1)),
    ({"order": "lifo"}, (1, 1)),
    ({"budget": 0.1}, (1, 1)),
    ({"budget": 0.5}, (1, 0)),
]
"""What holds after a freeze of half a second at 600/s, and at 750/s."""


@pytest.mark.slow  # twenty runs
def test_what_fixes_a_pool_and_what_does_not() -> None:
    for cure, expected in CURES:
        shares = (cured(600, 0.5, **cure), cured(750, 0.5, **cure))
        assert shares == pytest.approx(expected), cure


@pytest.mark.golden
@pytest.mark.parametrize("freeze", [0.5, 10])
def test_what_fixes_a_pool_after_a_long_freeze(freeze: float) -> None:
    others = [({"gaps": jittered(1, 3)}, (0, 0)), ({"budget": 0.2}, (1, 1))]
    for cure, expected in [*CURES, *others]:
        shares = [cured(load, freeze, dt=0.002, after=120, **cure) for load in (600, 750)]
        assert shares == pytest.approx(expected), (cure, freeze)


def test_without_service_times_dropping_late_work_is_enough() -> None:
    """With service times it lifts goodput to 7 % and no more: the fluid cannot see why."""
    assert cured(600, 0.5, abandoned="skip") == pytest.approx(1)
    assert cured(600, 0.5, abandoned="cancel") == pytest.approx(1)


# A front end that repeats every second what a limit refused (SRE book, chapter 22).


def test_refused_calls_come_again() -> None:
    dt, seconds = 0.1, 1500
    steps = round(seconds / dt)
    line = Line(timeout=60, attempts=10, gaps=(((1.0, 1.0),),))
    front = run(line, [10_100.0] * steps, [NEVER] * steps, dt=dt, limit=[10_000.0] * steps)
    assert front.rate(1, 2) == pytest.approx(10_200)
    assert front.rate(2, 3) == pytest.approx(10_300)
    assert front.rate(200, 201) == pytest.approx(25_900, rel=0.002)
    assert front.rate(1400) == pytest.approx(refusals(10_100, 10_000, 10).attempts, rel=1e-3)
    assert front.share(1400) == pytest.approx(10_000 / 10_100)


# 700 sign-ins a second against a limit of 600, 1,200 of work, 1 s, 9 attempts a second apart.


def sign_in(
    cost: float,
    *,
    seconds: float = 400,
    rollback: float = NEVER,
    double: float = NEVER,
    dt: float = 0.05,
    budget: float | None = None,
) -> Run:
    line = Line(
        timeout=1,
        attempts=9,
        gaps=(((1.0, 1.0),),),
        places=1800,  # a second and a half of work
        full="silence",
        refusal_cost=cost,
        budget=budget,
    )
    limit = series(600, seconds, dt, Change(rollback, factor=NEVER))
    capacity = series(1200, seconds, dt, Change(double, factor=2))
    return run(line, series(700, seconds, dt), capacity, dt=dt, limit=limit)


@pytest.mark.slow  # 8,000 steps each
@pytest.mark.parametrize(("cost", "failing"), [(0, 1 / 7), (0.24, 1 / 7), (0.25, 1), (0.26, 1)])
def test_the_cost_of_a_refusal_is_a_cliff(cost: float, failing: float) -> None:
    assert 0.24 < refusal_cliff(700, 600, 9, 1200) < 0.25
    after = sign_in(cost)
    assert 1 - after.share(300) == pytest.approx(failing)
    assert after.rate(300) == pytest.approx(3086 if failing < 1 else 6300, rel=1e-3)


@pytest.mark.slow  # three runs of 8,000 steps
def test_it_takes_a_rollback_and_more_capacity() -> None:
    assert sign_in(0.26, rollback=200).share(300) == 0
    assert sign_in(0.26, double=200).share(300) == pytest.approx(6 / 7)
    both = sign_in(0.26, rollback=200, double=200)
    assert both.share(195, 200) == 0
    assert both.back_at(0.99, 200) - 200 < 30


@pytest.mark.slow  # 8,000 steps
def test_a_budget_keeps_the_mistake_small() -> None:
    after = sign_in(0.26, budget=0.1)
    assert 1 - after.share(300) == pytest.approx(1 / 7)
    assert after.rate(300) == pytest.approx(770)


# A token service: 4 nodes of 100/s, 240/s, 440/s for ten minutes, then 300/s; 10 s, 4 attempts.

SURGE_END = 660.0


def tokens(seconds: float, *more: Change, **line: object) -> Run:
    dt = 0.1
    surge = (Change(60, 600, 440 / 240), Change(SURGE_END, factor=300 / 240))
    settings = {"timeout": 10, "attempts": 4, "gaps": (((1.0, 1.0),),), **line}
    load = series(240, seconds, dt, *surge)
    return run(Line(**settings), load, series(400, seconds, dt, *more), dt=dt)


@pytest.mark.slow  # 20,000 steps
def test_a_token_service_without_retries_comes_back() -> None:
    after = tokens(1200, attempts=1)
    first = next(i for i in range(round(SURGE_END / 0.1), 12_000) if after.goodput[i] > 0)
    empty = next(i for i in range(first, 12_000) if after.backlog[i] <= 0)
    assert first * 0.1 - SURGE_END == pytest.approx(210, abs=1)
    assert empty * 0.1 - SURGE_END == pytest.approx(240, abs=1)


@pytest.mark.slow  # 25,000 steps
def test_a_token_service_with_retries_stays_down_although_three_nodes_would_do() -> None:
    after = tokens(SURGE_END + 1800)
    assert after.share(SURGE_END + 600) == 0
    assert after.rate(SURGE_END + 600) == pytest.approx(1200)
    assert after.backlog[-1] == pytest.approx(2.10e6, rel=0.005)


@pytest.mark.golden
@pytest.mark.parametrize(
    ("nodes", "minutes"), [(12, NEVER), (13, 349), (14, 174), (16, 87), (20, 44), (24, 29)]
)
def test_how_many_nodes_escape(nodes: int, minutes: float) -> None:
    grown = SURGE_END + 1800
    hours = {12: 7, 13: 7, 14: 4}.get(nodes, 2)
    after = tokens(grown + 3600 * hours, Change(grown, factor=nodes / 4))
    assert (after.back_at(0.99, grown) - grown) / 60 == pytest.approx(minutes, abs=0.5)


@pytest.mark.slow  # three runs of 12,000 steps
@pytest.mark.parametrize(
    "cure", [{"places": 400}, {"places": 400, "full": "silence"}, {"abandoned": "skip"}]
)
def test_a_short_queue_or_no_late_work_serves_most_of_the_surge(cure: dict[str, object]) -> None:
    after = tokens(1200, **cure)
    assert after.share(60, SURGE_END) == pytest.approx(0.91, abs=0.005)
    assert after.share(SURGE_END + 30) >= 1 - 1e-6


@pytest.mark.slow  # 18,000 steps
@pytest.mark.parametrize(
    ("saved", "minutes"),
    [
        (10, 10.1),
        (1000, 10.3),
        pytest.param(100, 10.1, marks=pytest.mark.golden),
        pytest.param(10_000, 12.5, marks=pytest.mark.golden),
    ],
)
def test_a_budget_escapes_once_the_queue_has_drained(saved: float, minutes: float) -> None:
    after = tokens(1800, budget=0.1, saved=saved)
    assert (after.back_at(0.99, SURGE_END) - SURGE_END) / 60 == pytest.approx(minutes, abs=0.06)
