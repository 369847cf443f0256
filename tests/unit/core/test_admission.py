"""The door of a server, told in instants (milliseconds)."""

import pytest

from tidegate.core.admission import NEVER, Admission
from tidegate.core.fair_queue import Waiting
from tidegate.core.outcome import (
    FAILURE,
    IGNORED,
    SUCCESS,
    TIMEOUT,
    Reason,
    Rejection,
)
from tidegate.core.shares import CRITICAL, DEFAULT, LAST, SHEDDABLE
from tidegate.settings.admission import Admission as Settings
from tidegate.settings.policies import Adaptive, CoDel, Limit
from tidegate.units import MILLISECOND

ms = MILLISECOND


def door(limit: int = 2, **changes: object) -> Admission:
    return Admission(Settings(limit=Limit(max=limit), **changes))  # type: ignore[arg-type]


def full(limit: int = 2, **changes: object) -> Admission:
    """A house that is full of what came at 0."""
    policy = door(limit, **changes)
    for _ in range(limit):
        assert policy.try_admit(0, DEFAULT) is None
    return policy


def reason(answer: object) -> Reason:
    assert isinstance(answer, Rejection)
    return answer.reason


def waits(answer: object) -> Waiting:
    assert isinstance(answer, Waiting)
    assert answer.answer is None
    return answer


def test_there_is_room_until_there_is_none() -> None:
    policy = full(queue=0)
    assert reason(policy.try_admit(1 * ms, CRITICAL)) is Reason.LIMIT
    policy.on_done(5 * ms, 0, SUCCESS)
    assert policy.try_admit(5 * ms, CRITICAL) is None
    assert policy.snapshot(5 * ms)[:4] == (2, 2, 0, 5 * ms)


def test_who_waits_gets_the_place_that_becomes_free() -> None:
    policy = full()
    item = waits(policy.try_admit(1 * ms, DEFAULT, shell="a request"))
    assert policy.drain_decided() == []
    policy.on_done(5 * ms, 0, SUCCESS)
    assert policy.drain_decided() == [item]
    assert item.answer is True
    assert item.shell == "a request"
    assert policy.waiting == 0
    assert policy._check()


def test_nobody_works_for_a_caller_who_has_gone() -> None:
    policy = door()
    assert reason(policy.try_admit(5 * ms, CRITICAL, None, 5 * ms)) is Reason.DEADLINE
    assert policy.try_admit(5 * ms, CRITICAL, None, 6 * ms) is None


def test_who_cannot_be_served_in_time_is_sent_away_at_his_turn() -> None:
    policy = full()
    policy.on_done(100 * ms, 0, SUCCESS)  # the mean is 100 ms
    policy.try_admit(100 * ms, DEFAULT)
    late = waits(policy.try_admit(110 * ms, DEFAULT, None, 200 * ms))
    calm = waits(policy.try_admit(120 * ms, DEFAULT, None, 900 * ms))
    policy.on_done(160 * ms, 60 * ms, SUCCESS)
    assert policy.drain_decided() == [late, calm]
    assert reason(late.answer) is Reason.DEADLINE
    assert calm.answer is True


def test_the_lower_classes_leave_the_last_places_alone() -> None:
    policy = door(10, queue=0)
    for _ in range(6):
        assert policy.try_admit(0, DEFAULT) is None
    assert reason(policy.try_admit(0, LAST)) is Reason.SHED
    for _ in range(2):
        assert policy.try_admit(0, SHEDDABLE) is None
    assert reason(policy.try_admit(0, SHEDDABLE)) is Reason.SHED
    assert policy.try_admit(0, DEFAULT) is None


def test_the_highest_class_is_called_in_first() -> None:
    policy = full(1)
    low = waits(policy.try_admit(1 * ms, SHEDDABLE))
    high = waits(policy.try_admit(2 * ms, CRITICAL))
    policy.on_done(3 * ms, 0, SUCCESS)
    assert policy.drain_decided() == [high]
    policy.on_done(4 * ms, 3 * ms, SUCCESS)
    assert policy.drain_decided() == [low]


def test_what_matters_less_makes_room_in_a_full_queue() -> None:
    policy = full(queue=2)
    retry = waits(policy.try_admit(1 * ms, SHEDDABLE))
    waits(policy.try_admit(2 * ms, DEFAULT))
    waits(policy.try_admit(3 * ms, DEFAULT))
    assert policy.drain_decided() == [retry]
    assert reason(retry.answer) is Reason.SHED
    assert reason(policy.try_admit(4 * ms, DEFAULT)) is Reason.LIMIT
    assert reason(policy.try_admit(4 * ms, SHEDDABLE)) is Reason.LIMIT  # as full for everybody
    assert policy._check()


def test_the_newest_is_next_once_the_queue_is_longer_than_the_limit() -> None:
    policy = full(1)
    items = [waits(policy.try_admit(at * ms, DEFAULT)) for at in (1, 2, 3)]
    policy.on_done(4 * ms, 0, SUCCESS)
    policy.on_done(5 * ms, 4 * ms, SUCCESS)
    policy.on_done(6 * ms, 5 * ms, SUCCESS)
    assert policy.drain_decided() == [items[2], items[1], items[0]]


def test_in_a_queue_that_stands_who_stood_too_long_is_sent_away() -> None:
    policy = full(1, order="fifo", codel=CoDel(target=10 * ms, interval=50 * ms))
    old = [waits(policy.try_admit(at * ms, DEFAULT)) for at in (1, 2, 3)]
    policy.on_done(10 * ms, 0, SUCCESS)  # the mean is 10 ms, so 20 ms are not yet too long
    assert policy.drain_decided() == old[:1]
    new = waits(policy.try_admit(85 * ms, DEFAULT))
    policy.on_done(100 * ms, 90 * ms, SUCCESS)
    assert policy.drain_decided() == [*old[1:], new]
    assert [item.answer for item in old[:1]] == [True]
    assert [reason(item.answer) for item in old[1:]] == [Reason.WAITED] * 2
    assert new.answer is True


def test_what_waits_below_says_nothing_of_the_queue_above() -> None:
    policy = full(1, codel=CoDel(target=1 * ms, interval=1 * ms))
    waits(policy.try_admit(1 * ms, SHEDDABLE))
    for at in range(100, 1000, 100):
        high = waits(policy.try_admit((at - 90) * ms, CRITICAL))
        policy.on_done(at * ms, at * ms, SUCCESS)  # a quick one, which lowers the mean
        assert high.answer is True
        policy.drain_decided()


def test_whoever_waits_too_long_is_sent_away_unasked() -> None:
    policy = full(wait=100 * ms)
    assert policy.next_wakeup() is None
    first = waits(policy.try_admit(5 * ms, DEFAULT))
    second = waits(policy.try_admit(6 * ms, CRITICAL))
    assert policy.next_wakeup() == 105 * ms
    policy.on_wakeup(104 * ms)
    assert policy.drain_decided() == []
    policy.on_wakeup(105 * ms)
    assert policy.drain_decided() == [first]
    assert reason(first.answer) is Reason.WAITED
    assert policy.next_wakeup() == 106 * ms
    policy.on_wakeup(200 * ms)
    assert policy.drain_decided() == [second]
    assert policy.next_wakeup() is None


def test_a_client_alone_leaves_half_of_the_waiting_places_to_others() -> None:
    policy = full(queue=10)
    answers = [policy.try_admit(1 * ms, DEFAULT, "hog") for _ in range(8)]
    assert [type(answer) for answer in answers] == [Waiting] * 5 + [Rejection] * 3
    assert reason(answers[-1]) is Reason.CLIENT
    small = waits(policy.try_admit(2 * ms, DEFAULT, "small"))
    policy.on_done(5 * ms, 0, SUCCESS)
    policy.on_done(5 * ms, 0, SUCCESS)
    assert policy.drain_decided() == [answers[4], small]  # each has had a turn


def test_a_client_may_have_no_more_than_its_share_of_the_house() -> None:
    policy = door(10, client_share=0.2)
    assert policy.try_admit(0, DEFAULT, "a") is None
    assert policy.try_admit(0, DEFAULT, "a") is None
    assert reason(policy.try_admit(0, DEFAULT, "a")) is Reason.CLIENT
    assert policy.try_admit(0, DEFAULT, "b") is None
    assert policy.try_admit(0, DEFAULT) is None  # nobody in particular
    policy.on_done(1 * ms, 0, SUCCESS, "a")
    assert policy.try_admit(1 * ms, DEFAULT, "a") is None
    assert policy._check()


def test_who_waits_counts_towards_his_client_s_share_until_he_goes() -> None:
    policy = full(2, client_share=1.0)
    first = waits(policy.try_admit(1 * ms, DEFAULT, "a"))
    second = waits(policy.try_admit(2 * ms, DEFAULT, "a"))
    assert reason(policy.try_admit(3 * ms, DEFAULT, "a")) is Reason.CLIENT
    policy.on_left(4 * ms, first)
    waits(policy.try_admit(5 * ms, DEFAULT, "a"))
    policy.on_wakeup(second.since + 1000 * ms)
    assert reason(second.answer) is Reason.WAITED
    waits(policy.try_admit(1003 * ms, DEFAULT, "a"))
    assert policy._check()


def test_a_client_with_several_inside_gives_them_back_one_by_one() -> None:
    policy = door(10, client_share=0.3)
    for _ in range(3):
        assert policy.try_admit(0, DEFAULT, "a") is None
    for _ in range(2):
        policy.on_done(1 * ms, 0, SUCCESS, "a")
    assert policy.try_admit(1 * ms, DEFAULT, "a") is None
    assert policy.try_admit(1 * ms, DEFAULT, "a") is None
    assert reason(policy.try_admit(1 * ms, DEFAULT, "a")) is Reason.CLIENT


@pytest.mark.slow  # a million of anything takes a second
def test_a_million_clients_leave_nothing_behind() -> None:
    policy = door(4, queue=8, client_share=0.5)
    inside: list[int] = []
    for client in range(1_000_000):
        if policy.try_admit(client, DEFAULT, client) is None:
            inside.append(client)
        if client % 3 == 0:  # so that two in three are refused or wait for long
            policy.on_done(client, client - 1, SUCCESS, inside.pop(0))
        inside += [item.client for item in policy.drain_decided() if item.answer is True]
    assert len(policy._clients) == policy.waiting + 4 <= 12
    assert policy._check()


def test_a_full_queue_is_no_place_for_a_client_s_second() -> None:
    policy = full(queue=2)
    waits(policy.try_admit(1 * ms, SHEDDABLE, "low"))
    waits(policy.try_admit(2 * ms, DEFAULT, "a"))
    assert reason(policy.try_admit(3 * ms, DEFAULT, "a")) is Reason.CLIENT
    assert policy.drain_decided() == []  # and nobody had to go for it
    waits(policy.try_admit(3 * ms, DEFAULT, "b"))
    assert len(policy.drain_decided()) == 1


def test_who_leaves_while_he_waits_frees_his_waiting_place() -> None:
    policy = full()
    item = waits(policy.try_admit(1 * ms, DEFAULT))
    policy.on_left(2 * ms, item)
    assert item.answer is False
    policy.on_left(2 * ms, item)  # again: nothing is left to do
    policy.on_done(5 * ms, 0, SUCCESS)
    assert policy.drain_decided() == []
    found = policy.snapshot(5 * ms)
    assert (found.inside, found.left, sum(found.done)) == (1, 1, 1)


def test_who_leaves_as_he_is_let_in_gives_his_place_to_the_next() -> None:
    policy = full()
    gone, following = (waits(policy.try_admit(at * ms, DEFAULT)) for at in (1, 2))
    policy.on_done(5 * ms, 0, SUCCESS)
    assert policy.drain_decided() == [gone]
    policy.on_left(5 * ms, gone)
    assert policy.drain_decided() == [following]
    found = policy.snapshot(5 * ms)
    assert (found.inside, found.left, found.done[IGNORED]) == (2, 0, 1)  # he was in


def test_the_limit_follows_what_comes_back() -> None:
    policy = Admission(Settings(limit=Limit(adaptive=Adaptive(start=10, decrease=0.5))))
    for _ in range(10):
        policy.try_admit(1, DEFAULT)
    policy.on_done(50 * ms, 1, TIMEOUT)
    assert policy.snapshot(0).limit == 5
    waits(policy.try_admit(50 * ms, CRITICAL))
    for _ in range(4):
        policy.on_done(51 * ms, 1, SUCCESS)
    assert policy.drain_decided() == []
    policy.on_done(52 * ms, 1, SUCCESS)
    assert len(policy.drain_decided()) == 1
    assert policy._check()


def test_who_left_teaches_nothing() -> None:
    policy = full()
    policy.on_done(500 * ms, 0, IGNORED)
    assert policy.snapshot(0).mean == 0
    policy.on_done(80 * ms, 0, FAILURE)
    assert policy.snapshot(0).mean == 80 * ms
    policy.try_admit(100 * ms, DEFAULT)
    policy.on_done(100 * ms, 100 * ms, SUCCESS)
    assert policy.snapshot(0).mean == 70 * ms


def test_everybody_who_came_is_counted_once() -> None:
    policy = full(2, queue=2)
    for at in range(1, 7):
        policy.try_admit(at * ms, DEFAULT)
    policy.try_admit(0, DEFAULT, None, 0)
    policy.on_done(7 * ms, 0, SUCCESS)
    policy.on_left(8 * ms, waits(policy.try_admit(8 * ms, DEFAULT)))
    policy.clear(8 * ms)
    found = policy.snapshot(8 * ms)
    ended = sum(found.done) + sum(found.refused) + found.left
    assert found.inside + found.waiting + ended == 10
    assert found.left == 1
    assert found.refused[Reason.LIMIT] == 5
    assert found.refused[Reason.DEADLINE] == 1
    assert policy.try_admit(9 * ms, DEFAULT, None, NEVER) is not None
