"""Batches of eight records, of which the sink does not like one."""

from tidegate.core.bisection import (
    AGAIN,
    IN_A_ROW,
    PAUSE,
    REFUSALS,
    SUSPECTS_MAX,
    Bisection,
    SetAside,
)
from tidegate.units import HOUR


def test_in_peace_everything_goes_as_it_is() -> None:
    search = Bisection()
    assert search.cut(0, 1, 8) == (1, 8)
    search.on_taken(0, 1, 8)
    assert search.snapshot() == (0, 0, False, 0)
    assert search.next_wakeup(0) is None


def test_a_refused_batch_is_halved_until_the_record_is_found() -> None:
    search, sent = Bisection(), []
    waits = list(range(1, 9))
    for _ in range(100):
        if not waits or (part := search.cut(0, waits[0], 8)) is None:
            break
        sent.append(part)
        if part[0] <= 6 <= part[1]:
            assert search.on_refused(0, *part, "too large") is None
        else:
            search.on_taken(0, *part)
            waits = [number for number in waits if not part[0] <= number <= part[1]]
        if waits[0] == 6 == part[0]:
            break
    assert sent == [(1, 8), (1, 4), (5, 8), (5, 6), (5, 5), (6, 6)]


def refused_alone(search: Bisection, now: int = 0) -> SetAside | None:
    return search.on_refused(now, 6, 6, "malformed")


def test_a_record_is_set_aside_when_others_were_taken_between_its_refusals() -> None:
    search = Bisection()
    for _ in range(REFUSALS - 1):
        assert refused_alone(search) is None
        assert search.cut(0, 6, 6) is None
        assert search.cut(0, 6, 9) == (7, 9)  # what is behind it goes on
        search.on_taken(0, 7, 9)
        assert search.cut(0, 6, 9) == (6, 6)
    assert refused_alone(search) == SetAside(6, "malformed")
    assert search.snapshot() == (0, 1, False, 1)
    assert search.cut(0, 6, 9) == (6, 9)  # forgotten: it is for the lane to take it out


def test_refusals_alone_prove_nothing() -> None:
    search, now = Bisection(), 0
    for _ in range(100):
        assert refused_alone(search, now) is None
        now += HOUR
    search.on_taken(now, 7, 7)
    assert refused_alone(search, now) is None


def test_a_suspect_is_tried_again_by_itself_and_ever_more_seldom() -> None:
    search, now = Bisection(), 0
    for wait in (AGAIN, 2 * AGAIN, 4 * AGAIN):
        refused_alone(search, now)
        assert search.next_wakeup(now) == now + wait
        assert search.cut(now + wait - 1, 6, 6) is None
        now += wait
        assert search.cut(now, 6, 6) == (6, 6)
    search.on_taken(now, 6, 6)  # it has been put right over there
    assert search.snapshot().suspects == 0


def test_a_sink_that_refuses_everything_is_left_alone_but_for_one_try_in_a_pause() -> None:
    search = Bisection()
    sends = waits_from = 0
    while (part := search.cut(0, 1, 1000)) is not None:
        assert search.on_refused(0, *part, "no such topic") is None
        sends += 1
    assert sends == IN_A_ROW
    assert search.snapshot().refuses_all
    assert search.next_wakeup(0) == PAUSE
    for pause in range(1, 20):
        assert search.cut(pause * PAUSE - 1, 1, 1000) is None
        part = search.cut(pause * PAUSE, 1, 1000)
        assert part is not None
        assert search.on_refused(pause * PAUSE, *part, "no such topic") is None
        waits_from = max(waits_from, part[0])
    search.on_taken(HOUR, 1, 1)
    assert not search.snapshot().refuses_all
    assert search.snapshot().set_aside == 0
    assert search.cut(HOUR, 2, 1000) is not None


def test_what_is_gone_is_no_suspect() -> None:
    search = Bisection()
    search.on_refused(0, 1, 8, "too large")
    search.on_gone(1, 5)
    assert search.cut(0, 6, 20) == (6, 8)
    search.on_gone(6, 8)
    assert search.cut(0, 6, 20) == (6, 20)


def test_a_part_of_a_suspect_is_searched_by_itself() -> None:
    search = Bisection()
    search.on_refused(0, 1, 16, "too large")
    assert search.cut(0, 3, 6) == (3, 6)  # of 1-8
    search.on_refused(0, 3, 6, "too large")
    assert [search.cut(0, first, 16) for first in (1, 3, 5, 7, 9)] == [
        (1, 2),
        (3, 4),
        (5, 6),
        (7, 8),
        (9, 16),
    ]


def test_suspects_have_a_bound_beyond_which_it_goes_slowly() -> None:
    search = Bisection()
    for number in range(1, SUSPECTS_MAX + 1):
        search.on_refused(0, 2 * number, 2 * number, "malformed")
        if number % 20 == 0:
            search.on_taken(0, 1, 1)
    assert search.cut(0, 1, 1) == (1, 1)
    search.on_refused(0, 1, 1, "malformed")
    assert search.cut(PAUSE - 1, 3, 3) is None
    assert search.cut(PAUSE, 3, 3) == (3, 3)
