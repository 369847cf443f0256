"""Which attempts are one call: told in instants of milliseconds."""

from typing import Any

from tidegate.analysis.infer.calls import calls_of, own_time
from tidegate.analysis.infer.trace import Attempt, Request
from tidegate.analysis.ingest.span import Ending, Kind
from tidegate.analysis.ingest.store import Packed
from tidegate.units import MILLISECOND

OK, BROKEN, FAILED = Ending.OK, Ending.BROKEN, Ending.FAILED


def packed(start: float, end: float, ending: Ending, **more: int) -> Packed:
    fields: dict[str, Any] = {
        "trace": 1, "id": 1, "parent": 9, "resource": 0, "name": 1, "peer": 1, "target": 0,
        "kind": Kind.CLIENT, "resend": -1,
    } | more  # fmt: skip
    return Packed(
        start=round(start * MILLISECOND),
        duration=round((end - start) * MILLISECOND),
        ending=ending,
        **fields,
    )


def grouped(*attempts: Packed, counts: bool = False, length: float = 100) -> list[list[float]]:
    """The starts of each call's attempts, and behind them the request's own time."""
    request = Request(packed(0, length, OK, kind=Kind.SERVER), 0, root=True, complete=True)
    request.attempts = [Attempt(one, waits=True) for one in attempts]
    calls = calls_of(request, lambda attempt: counts)
    own = own_time(request, calls) / MILLISECOND
    return [[a.start / MILLISECOND for a in call.attempts] for call in calls] + [[own]]


def test_a_sibling_after_a_failure_is_its_retry_and_the_wait_between_is_no_work() -> None:
    assert grouped(packed(10, 20, BROKEN), packed(30, 40, FAILED), packed(60, 70, OK)) == [
        [10, 30, 60],
        [40],
    ]


def test_a_sibling_after_a_success_is_another_call() -> None:
    assert grouped(packed(10, 20, OK), packed(30, 40, OK)) == [[10], [30], [80]]


def test_a_sibling_that_began_before_the_failure_is_another_call() -> None:
    assert grouped(packed(10, 20, BROKEN), packed(15, 40, OK)) == [[10], [15], [70]]


def test_a_microsecond_of_rounding_is_forgiven() -> None:
    assert grouped(packed(10, 20, BROKEN), packed(19.999, 40, OK)) == [[10, 19.999], [70]]


def test_another_operation_peer_parent_or_target_is_another_call() -> None:
    first = packed(10, 20, BROKEN, target=5)
    for more in ({"name": 2}, {"peer": 2}, {"parent": 8}, {"target": 6}):
        assert grouped(first, packed(30, 40, OK, **{"target": 5} | more)) == [[10], [30], [80]]
    assert grouped(first, packed(30, 40, OK, target=5)) == [[10, 30], [70]]
    assert grouped(first, packed(30, 40, OK, target=0)) == [[10, 30], [70]]


def test_calls_retried_side_by_side_keep_their_own_attempts() -> None:
    assert grouped(
        packed(10, 20, BROKEN),
        packed(11, 25, BROKEN),
        packed(20.5, 30, OK),
        packed(26, 40, OK),
    ) == [[10, 20.5], [11, 26], [70]]


def test_where_the_client_counts_a_sibling_without_a_count_is_another_call() -> None:
    failed = packed(10, 20, FAILED)
    assert grouped(failed, packed(30, 40, OK), counts=True) == [[10], [30], [80]]
    assert grouped(failed, packed(30, 40, OK, resend=1), counts=True) == [[10, 30], [70]]


def test_a_redirect_counts_as_a_resend_and_is_no_retry() -> None:
    assert grouped(packed(10, 20, OK), packed(20, 30, OK, resend=1), counts=True) == [
        [10],
        [20],
        [80],
    ]


def test_own_time_is_what_no_call_covers() -> None:
    assert grouped(packed(10, 50, OK), packed(20, 30, OK)) == [[10], [20], [60]]
    assert grouped(packed(-10, 20, OK), packed(90, 130, OK)) == [[-10], [90], [70]]
    assert grouped(packed(0, 100, OK)) == [[0], [0]]
    assert grouped() == [[100]]
