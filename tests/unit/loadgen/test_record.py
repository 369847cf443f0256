"""What is counted where, and when a generator says that it fell behind."""

from tidegate.loadgen.record import Record, blank, merged
from tidegate.units import MILLISECOND, SECOND

PATIENCE = 500 * MILLISECOND


def record() -> Record:
    return blank(3 * SECOND, PATIENCE)


def test_a_request_counts_in_the_second_of_its_intended_start() -> None:
    seen = record()
    seen.on_start(900 * MILLISECOND, 1100 * MILLISECOND)  # 200 ms late: still of second 0
    seen.on_attempt(1100 * MILLISECOND, retry=False)
    seen.on_answer(900 * MILLISECOND, 1300 * MILLISECOND)
    assert seen.offered[:2] == [1, 0]
    assert seen.good[:2] == [1, 0]
    assert seen.attempts[:2] == [0, 1]
    assert seen.latencies == [400 * MILLISECOND]  # from the intended start, not from the real one


def test_an_answer_after_the_client_has_left_is_no_goodput() -> None:
    seen = record()
    seen.on_answer(0, PATIENCE)
    seen.on_answer(0, PATIENCE + 1)
    assert (seen.good[0], seen.eventual[0], len(seen.latencies)) == (1, 2, 1)


def test_retries_and_outcomes_are_told_apart() -> None:
    seen = record()
    seen.on_attempt(0, retry=False)
    seen.on_attempt(SECOND, retry=True)
    for name in ("timeout", "success", "timeout"):
        seen.on_outcome(name)
    assert (seen.attempts[:2], seen.retries[:2]) == ([1, 1], [0, 1])
    assert seen.outcomes == {"timeout": 2, "success": 1}


def test_what_ends_after_the_last_bin_counts_there() -> None:
    seen = record()
    seen.on_attempt(60 * SECOND, retry=True)
    assert seen.attempts[-1] == 1


def test_one_late_start_in_fifty_is_noise_and_more_are_saturation() -> None:
    seen = record()
    for _ in range(49):
        seen.on_start(0, 50 * MILLISECOND)  # exactly a tenth of the patience: not late
    seen.on_start(0, 51 * MILLISECOND)
    assert (seen.late, seen.saturated) == (1, False)
    assert seen.says == (
        "1 of 50 starts were more than 50ms late (the latest 51ms) and 0 were missed"
    )
    seen.on_missed(0)
    assert seen.saturated
    assert seen.says.startswith("the generator was saturated: 1 of 51 starts")
    assert seen.offered[0] == 51  # what was not sent was offered, too


def test_percentiles_are_those_of_the_good_answers() -> None:
    seen = record()
    assert seen.latency(0.5) is None
    for milliseconds in (40, 10, 30, 20):
        seen.on_answer(0, milliseconds * MILLISECOND)
    assert seen.latency(0.5) == 20 * MILLISECOND
    assert seen.latency(0.99) == 40 * MILLISECOND
    assert seen.latency(0.0) == 10 * MILLISECOND


def test_generators_that_share_a_plan_are_added_up() -> None:
    one, other = record(), record()
    one.on_start(0, 0)
    one.on_answer(0, 1)
    one.on_outcome("success")
    one.rejected = 2
    other.on_start(SECOND, SECOND + PATIENCE)
    other.on_outcome("success")
    other.unfinished = 1
    whole = merged([one, other])
    assert whole.offered[:3] == [1, 1, 0]
    assert (whole.rejected, whole.unfinished, whole.late, whole.latest) == (2, 1, 1, PATIENCE)
    assert (whole.outcomes, whole.latencies, whole.patience) == ({"success": 2}, [1], PATIENCE)
    assert len(whole.good) == len(one.good)
