"""Laws of the fluid: nothing is lost, no clock is special, and no retries means no second state."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis.fluid.line import Change, Line, jittered, run, series
from tidegate.analysis.theory import Station, folds

STEPS = 300

gaps = st.sampled_from([(((0.0, 1.0),),), (((1.0, 1.0),),), jittered(2, 2, bins=4)])
lines = st.builds(
    Line,
    timeout=st.sampled_from([1.0, 2.0, 5.0]),
    attempts=st.integers(1, 5),
    places=st.just(math.inf) | st.floats(0, 500),
    full=st.sampled_from(["refuse", "silence"]),
    order=st.sampled_from(["fifo", "lifo"]),
    abandoned=st.sampled_from(["finish", "skip", "cancel"]),
    budget=st.none() | st.floats(0, 2),
    saved=st.floats(0, 20),
    gaps=gaps,
    refusal_cost=st.floats(0, 0.5),
    thrash=st.floats(0, 0.05),
)
loads = st.floats(1, 200)
outages = st.floats(0, 20)


def alike(one: list[float], other: list[float]) -> bool:
    return all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in zip(one, other, strict=True)
    )


@settings(max_examples=60)
@given(lines, loads, outages)
def test_nothing_is_lost_and_nobody_is_served_twice(line: Line, load: float, outage: float) -> None:
    dt = 0.1
    down = series(100, STEPS * dt, dt, Change(5, outage))
    after = run(line, [load] * STEPS, down, dt=dt, limit=[150.0] * STEPS)
    served = math.fsum(after.goodput)
    assert served <= math.fsum(after.offered) * (1 + 1e-9)
    assert all(value >= 0 for value in after.goodput)
    assert min(after.backlog) > -1e-6
    assert math.fsum(after.attempts) <= math.fsum(after.offered) * line.attempts * (1 + 1e-9)
    # Once nobody asks any more and there is room for all, nothing is left behind.
    quiet = run(line, [load] * STEPS + [0.0] * 400, down + [1e9] * 400, dt=dt)
    assert quiet.backlog[-1] == pytest.approx(0, abs=1e-6)
    assert all(
        good <= room * dt * (1 + 1e-9) + 1e-9
        for good, room in zip(after.goodput, down, strict=True)
    )


@settings(max_examples=60)
@given(st.integers(1, 6), loads, outages, st.sampled_from([1.0, 2.0, 5.0]))
def test_the_fast_path_and_the_long_one_agree(
    attempts: int, load: float, outage: float, timeout: float
) -> None:
    dt = 0.1
    down = series(100, STEPS * dt, dt, Change(5, outage))
    short = Line(timeout=timeout, attempts=attempts)
    assert short.plain
    fast = run(short, [load] * STEPS, down, dt=dt)
    slow = run(short, [load] * STEPS, down, dt=dt, limit=[math.inf] * STEPS)
    assert alike(fast.goodput, slow.goodput)
    assert alike(fast.attempts, slow.attempts)
    assert alike(fast.backlog, slow.backlog)


@settings(max_examples=30)
@given(lines, loads, outages, st.sampled_from([0.01, 7.0]))
def test_no_clock_is_special(line: Line, load: float, outage: float, factor: float) -> None:
    """Counted in other units of time, everything comes out the same, request for request."""
    dt = 0.125  # binary, so that the steps of both clocks are exactly the same
    slow_line = Line(
        **{
            **{name: getattr(line, name) for name in line.__struct_fields__},
            "timeout": line.timeout * factor,
            "gaps": tuple(tuple((s * factor, p) for s, p in gap) for gap in line.gaps),
        }
    )
    down = series(100, STEPS * dt, dt, Change(5, outage))
    ours = run(line, [load] * STEPS, down, dt=dt)
    slow_down = [rate / factor for rate in down]
    theirs = run(slow_line, [load / factor] * STEPS, slow_down, dt=dt * factor)
    assert alike(ours.goodput, theirs.goodput)
    assert alike(ours.backlog, theirs.backlog)


def late_share(load: float, **line: Any) -> float:
    """Ten workers of 10 ms, frozen for a second; the last of ten seconds after it."""
    dt = 0.005
    frozen = series(1000, 12, dt, Change(1, 1))
    return run(Line(timeout=0.1, **line), series(load, 12, dt), frozen, dt=dt).share(11)


@settings(max_examples=15)
@given(st.floats(50, 990))
def test_one_attempt_has_no_basin(load: float) -> None:
    """It comes back as soon as the outage's own backlog has drained, and that takes under 9 s."""
    late = late_share(min(load, 880), attempts=1)
    assert late == pytest.approx(1)


@settings(max_examples=15)
@given(st.floats(50, 800), st.integers(2, 6), st.floats(0, 0.05))
def test_a_budget_of_next_to_nothing_has_no_basin(load: float, tries: int, ratio: float) -> None:
    assert late_share(load, attempts=tries, budget=ratio) == pytest.approx(1)


@settings(max_examples=20)
@given(st.integers(2, 6), st.sampled_from([0.9, 1.1]))
def test_below_the_recovery_threshold_it_heals_and_above_it_does_not(
    tries: int, beside: float
) -> None:
    """The lower fold of the closed form is where the fluid changes its mind."""
    station = Station(servers=10, service=0.01, timeout=0.1, attempts=tries)
    load = beside * folds(station).recovery
    assert late_share(load, attempts=tries) == pytest.approx(1 if beside < 1 else 0)
