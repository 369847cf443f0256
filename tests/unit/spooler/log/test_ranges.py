"""Do ranges hold the numbers that a set of numbers would?"""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tidegate.spooler.log.ranges import Ranges

numbers = st.integers(1, 40)
steps = st.lists(st.tuples(st.booleans(), numbers, numbers), max_size=25)


def both(steps: list[tuple[bool, int, int]]) -> tuple[Ranges, set[int]]:
    ranges, plain = Ranges(), set[int]()
    for put, first, last in steps:
        some = set(range(first, last + 1))
        if put:
            ranges.add(first, last)
            plain |= some
        else:
            assert ranges.remove(first, last) == len(plain & some)
            plain -= some
    return ranges, plain


@given(steps, numbers, numbers)
def test_ranges_are_a_set(steps: list[tuple[bool, int, int]], first: int, last: int) -> None:
    ranges, plain = both(steps)
    listed = list(ranges)
    assert {n for a, b in listed for n in range(a, b + 1)} == plain
    assert ranges.total == len(plain)
    assert len(ranges) == len(listed)
    assert all(a <= b for a, b in listed)
    assert all(b + 1 < c for (_, b), (c, _) in pairwise(listed))
    some = plain & set(range(first, last + 1))
    assert {n for a, b in ranges.common(first, last) for n in range(a, b + 1)} == some
    assert ranges.meets(first, last) == bool(some)


@given(steps, st.integers(1, 5))
def test_few_ranges_cover_all_and_the_least_beside(
    steps: list[tuple[bool, int, int]], most: int
) -> None:
    ranges, plain = both(steps)
    few = Ranges(ranges.few(most))
    covered = {n for a, b in few for n in range(a, b + 1)}
    assert len(few) <= most
    assert plain <= covered
    gaps = sorted(c - b - 1 for (_, b), (c, _) in pairwise(ranges))
    assert len(covered - plain) == sum(gaps[: max(0, len(ranges) - most)])
