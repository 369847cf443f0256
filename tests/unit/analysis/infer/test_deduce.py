"""Counts of one call become its settings, and too few cases become nothing."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.infer.deduce import (
    backoff_of,
    duration,
    is_optional,
    is_unwaited,
    network_of,
    retries_of,
    rounded,
    spread_of,
    time_of,
    timeout_of,
)
from tidegate.analysis.infer.sketch import Sketch
from tidegate.analysis.infer.tally import CallTally
from tidegate.analysis.ingest.span import Ending
from tidegate.settings.policies import Backoff
from tidegate.settings.system import Time
from tidegate.units import DAY, MILLISECOND, SECOND

MS = MILLISECOND


def attempts(
    good: list[int] | None = None,
    silent: list[int] | None = None,
    ending: Ending = Ending.BROKEN,
) -> CallTally:
    """A tally of single attempts, in milliseconds."""
    tally = CallTally()
    for length in good or []:
        tally.durations.add(length * MS)
        tally.good.add(length * MS)
        tally.attempts[Ending.OK] += 1
    for length in silent or []:
        tally.durations.add(length * MS)
        tally.silent.add(length * MS)
        tally.attempts[ending] += 1
    tally.calls = tally.durations.count
    return tally


@pytest.mark.parametrize("timeout", [50, 100, 250, 750, 1000, 2500, 10_000, 30_000, 12_345])
def test_a_wall_of_failures_is_the_timeout(timeout: int) -> None:
    late = [timeout + timeout * n // 1000 for n in range(10)]
    found = timeout_of(attempts(good=[10] * 100, silent=late))
    assert found.value == pytest.approx(timeout * MS, rel=0.01)
    assert "10 of 10 attempts without an answer" in found.says


@given(st.integers(1, 600).map(lambda n: n * 100))
def test_a_round_timeout_is_found_exactly(timeout: int) -> None:
    two_digits = round(timeout, 2 - len(str(timeout)))
    late = [two_digits + 1] * 10 if two_digits >= 200 else [two_digits] * 10
    assert timeout_of(attempts(good=[1], silent=late)).value == two_digits * MS


@pytest.mark.parametrize(
    ("good", "silent", "ending"),
    [
        ([10] * 100, [500] * 4, Ending.BROKEN),  # too few
        ([10] * 100, [500], Ending.TIMEOUT),  # too few even if named
        ([10] * 50 + [900] * 50, [500] * 20, Ending.BROKEN),  # answers lie behind it
        ([10] * 100, list(range(100, 2000, 100)), Ending.BROKEN),  # no wall
        ([10] * 100, [0] * 20, Ending.BROKEN),  # refused at once
        ([10] * 100, [], Ending.BROKEN),
    ],
)
def test_no_wall_no_timeout(good: list[int], silent: list[int], ending: Ending) -> None:
    found = timeout_of(attempts(good, silent, ending))
    assert found.value is None
    assert found.at_least == pytest.approx(max(good) * MS, rel=0.01)


def test_two_are_enough_where_each_is_named_a_timeout() -> None:
    assert timeout_of(attempts([10], [500, 501], Ending.TIMEOUT)).value == 500 * MS


def test_refused_connections_do_not_hide_the_wall() -> None:
    assert timeout_of(attempts([10] * 500, [0] * 20 + [500] * 10)).value == 500 * MS


@pytest.mark.parametrize(
    ("draw", "kind"),
    [
        (lambda rng: 50 * MS, "constant"),
        (lambda rng: round(rng.expovariate(1 / (50 * MS))), "mean"),
        (lambda rng: round(50 * MS * 3 ** rng.gauss(0, 1)), "median"),
    ],
)
def test_the_simplest_form_that_fits(draw: object, kind: str) -> None:
    rng = Random(1)
    time = time_of(Sketch(draw(rng) for _ in range(20_000)))  # type: ignore[operator]
    assert time is not None
    assert getattr(time, kind) == pytest.approx(50 * MS, rel=0.05)
    if kind == "median":
        assert time.p99 == pytest.approx(50 * MS * 3**2.326, rel=0.1)


def test_no_time_from_nothing() -> None:
    assert time_of(Sketch()) is None
    assert time_of(Sketch([0, 0, 0])) is None
    assert time_of(Sketch([MS, 2 * MS, 4 * MS])) == Time(median=2 * MS, p99=4 * MS)


def calls(sizes: dict[int, tuple[int, int]], ending: Ending = Ending.BROKEN) -> CallTally:
    """A tally of calls: attempts -> (ended well, in vain)."""
    tally = CallTally()
    for size, (well, in_vain) in sizes.items():
        tally.calls += well + in_vain
        tally.sizes[size] += well + in_vain
        tally.used_up[size] += in_vain
        tally.retried[ending] += (size - 1) * (well + in_vain)
        tally.given_up[ending, size] += in_vain
        tally.attempts[ending] += (size - 1) * (well + in_vain) + in_vain
        tally.attempts[Ending.OK] += well
        tally.after_good[1] += well
        tally.after_bad[0] += (size - 1) * (well + in_vain)
        tally.after_bad[1] += (size - 1) * (well + in_vain) + in_vain
    return tally


def test_attempts_are_the_largest_number_seen() -> None:
    found = retries_of(calls({1: (90, 0), 2: (8, 0), 3: (2, 0)}), None)
    assert found.attempts == 3
    assert "2 of 100 calls used all 3, 0 in vain; told by siblings" in found.says


def test_a_few_longer_rows_are_two_calls_taken_for_one() -> None:
    found = retries_of(calls({1: (900, 0), 3: (20, 60), 6: (1, 1)}), None)
    assert found.attempts == 3
    assert "2 longer rows taken for several calls" in found.says


def test_what_is_tried_again_is_told_by_kind() -> None:
    tally = calls({1: (900, 0), 3: (20, 10)}, Ending.TIMEOUT)
    tally.given_up[Ending.FAILED, 1] += 50
    found = retries_of(tally, None)
    assert found.retry_on == ("timeout", "overloaded")
    assert "60 of 60 after timeout, 0 of 50 after failure" in found.says_on
    assert "overloaded never seen, taken as retried" in found.says_on


def test_an_error_without_an_answer_is_a_timeout_where_there_is_one() -> None:
    tally = calls({1: (900, 0), 3: (20, 10)}, Ending.BROKEN)
    assert "60 of 60 after timeout" in retries_of(tally, SECOND).says_on
    assert "60 of 60 after failure" in retries_of(tally, None).says_on


def test_what_did_not_happen_is_left_open() -> None:
    silent = retries_of(calls({1: (100, 0)}), None)
    assert silent.attempts is None
    assert silent.says == "none of 100 calls failed, so a retry could not show"
    partly = retries_of(calls({1: (100, 9)}, Ending.FAILED), None)
    assert (partly.attempts, partly.retry_on) == (None, ("timeout", "overloaded"))
    assert "none of 9 failures was tried again, but timeout and overloaded" in partly.says


def test_no_retries_where_every_kind_of_failure_was_final() -> None:
    tally = calls({1: (100, 9)}, Ending.FAILED)
    tally.given_up[Ending.TIMEOUT, 1] = tally.given_up[Ending.OVERLOADED, 1] = 5
    assert retries_of(tally, None).attempts == 1


def test_a_loop_is_no_retry() -> None:
    """Ten items, one after another; a failed one is followed as often as any other."""
    tally = calls({1: (850, 0), 2: (50, 0)})
    tally.after_good, tally.after_bad = [855, 950], [45, 50]
    found = retries_of(tally, None)
    assert found.attempts == 1
    assert found.calls == pytest.approx(950 / 900)


def test_retries_within_a_loop_are_retries() -> None:
    tally = calls({1: (850, 0), 2: (50, 0)})
    tally.after_good, tally.after_bad = [600, 900], [50, 50]
    assert retries_of(tally, None).attempts == 2


def test_the_client_s_own_count_is_never_a_loop() -> None:
    tally = calls({1: (850, 0), 2: (50, 0)})
    tally.after_good, tally.after_bad, tally.counted = [900, 900], [50, 50], 900
    found = retries_of(tally, None)
    assert found.attempts == 2
    assert "counted by the client" in found.says


@pytest.mark.parametrize("jitter", ["none", "equal", "full"])
def test_the_wait_between_attempts(jitter: str) -> None:
    rng, tally = Random(2), CallTally()
    low = {"none": 1.0, "equal": 0.5, "full": 0.0}[jitter]
    for nth, full in ((1, 100), (2, 300)):
        tally.gaps[nth] = Sketch(round(full * MS * rng.uniform(low, 1)) for _ in range(1000))
    backoff, says = backoff_of(tally)
    assert backoff is not None
    assert backoff.jitter == jitter
    assert backoff.base == pytest.approx(100 * MS, rel=0.1)
    assert backoff.factor == pytest.approx(3, rel=0.1)
    assert "n=1,000" in says


def test_retries_at_once_have_no_backoff() -> None:
    tally = CallTally()
    assert backoff_of(tally) == (None, "")
    tally.gaps[1] = Sketch([MS] * 5)
    backoff, says = backoff_of(tally)
    assert backoff is None
    assert says.startswith("at once; ")
    tally.gaps[1] = Sketch([100 * MS] * 5)
    assert backoff_of(tally)[0] == Backoff(base=100 * MS, jitter="none")


@pytest.mark.parametrize(
    ("failed", "forgiven", "optional"), [(4, 4, False), (10, 9, True), (10, 8, False)]
)
def test_optional_is_what_requests_survive(failed: int, forgiven: int, optional: bool) -> None:
    tally = CallTally()
    tally.failed, tally.forgiven = failed, forgiven
    assert is_optional(tally) is optional


@pytest.mark.parametrize(
    ("made", "outlives", "unwaited"), [(4, 4, False), (10, 9, True), (10, 8, False)]
)
def test_unwaited_is_what_outlasts_its_request(made: int, outlives: int, unwaited: bool) -> None:
    tally = CallTally()
    tally.calls, tally.outlives = made, outlives
    assert is_unwaited(tally) is unwaited


def test_the_network_is_what_is_always_there() -> None:
    tally = CallTally()
    assert network_of(tally) == (None, "")
    tally.network = Sketch([5 * MS] * 50 + [500 * MS] * 50)
    network, says = network_of(tally)
    assert network == Time(constant=5 * MS)
    assert "n=100" in says
    tally.network = Sketch([MS // 100] * 50)
    assert network_of(tally)[0] is None


@given(st.integers(-5, 10**20))
def test_durations_can_always_be_written(value: int) -> None:
    assert 1 <= duration(value) <= DAY


def test_rounding_and_words() -> None:
    assert [rounded(value) for value in (0, 1234567, 0.00123456, 99.96)] == [
        0, 1230000, 0.00123, 100
    ]  # fmt: skip
    assert spread_of(Sketch()) == "n=0"
    assert spread_of(Sketch([10 * MS] * 1000)).startswith("n=1,000: median 10ms, p90 10ms")
