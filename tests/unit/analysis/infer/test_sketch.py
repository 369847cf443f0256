"""Quantiles from bins are right to a quarter of a percent, and sketches add up."""

import math

from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.infer.sketch import Sketch

durations = st.lists(st.integers(0, 10**14), min_size=1, max_size=60)


@given(durations, st.floats(0, 1))
def test_a_quantile_is_within_a_quarter_of_a_percent(values: list[int], share: float) -> None:
    exact = sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
    assert abs(Sketch(values).quantile(share) - exact) <= 0.0026 * exact + 1


@given(durations, durations)
def test_two_sketches_add_up_to_one_of_all(first: list[int], second: list[int]) -> None:
    both, merged = Sketch(first + second), Sketch(first)
    merged.merge(Sketch(second))
    assert merged.count == both.count
    assert merged.mean == both.mean
    assert [merged.quantile(q / 10) for q in range(11)] == [
        both.quantile(q / 10) for q in range(11)
    ]


@given(durations)
def test_the_mean_is_exact(values: list[int]) -> None:
    assert Sketch(values).mean == sum(values) / len(values)


@given(durations, st.floats(1, 3))
def test_windows_count_what_lies_in_them(values: list[int], ratio: float) -> None:
    sketch = Sketch(values)
    middles = [Sketch([value]).quantile(0) for value in values]
    windows = sketch.windows(ratio)
    assert {low for _, low in windows} == set(middles)
    assert windows == sorted(windows, key=lambda window: -window[0])
    for count, low in windows:
        assert count == sum(low <= middle <= low * ratio for middle in middles)
        assert sketch.above(low) == sum(middle > low for middle in middles)


def test_an_empty_sketch_says_nothing() -> None:
    empty = Sketch()
    assert (empty.count, empty.mean, empty.quantile(0.5)) == (0, 0.0, 0)
    assert empty.windows(2.0) == []
