"""The waiting room: who sends a hundred waits behind himself, and nobody fills the house alone."""

import pytest

from tidegate.core.fair_queue import FairQueue, Waiting
from tidegate.core.shares import CRITICAL, DEFAULT, LAST, SHEDDABLE
from tidegate.settings.admission import Admission

NEVER = 1 << 62


def one(since: int, client: str | None = None, rank: int = DEFAULT) -> Waiting:
    return Waiting(since, rank, client, NEVER)


def filled(*items: Waiting, places: int = 10) -> FairQueue:
    queue = FairQueue(Admission(queue=places))
    for item in items:
        queue.push(item)
    assert queue._check()
    return queue


def test_clients_take_turns_however_many_each_has_sent() -> None:
    queue = filled(*(one(i, "hog") for i in range(4)), one(4, "small"), one(5, "other"))
    order = [queue.pop(DEFAULT, newest=False) for _ in range(6)]
    assert [item.client for item in order] == ["hog", "small", "other", "hog", "hog", "hog"]
    assert [item.since for item in order if item.client == "hog"] == [0, 1, 2, 3]
    assert queue._check()


def test_of_a_client_s_own_the_newest_or_the_oldest_is_next() -> None:
    queue = filled(one(1), one(2), one(3))
    assert queue.pop(DEFAULT, newest=True).since == 3
    assert queue.pop(DEFAULT, newest=False).since == 1


def test_classes_do_not_stand_in_each_other_s_way() -> None:
    queue = filled(one(1), one(2, rank=CRITICAL))
    assert queue.has(CRITICAL)
    assert not queue.has(LAST)
    assert queue.pop(CRITICAL, newest=False).since == 2
    assert not queue.has(CRITICAL)


def test_the_last_places_are_kept_from_the_lower_classes() -> None:
    queue = filled(*(one(i) for i in range(8)))
    assert queue.is_full_for(SHEDDABLE)
    assert not queue.is_full_for(DEFAULT)
    assert filled(places=0).is_full_for(CRITICAL)


@pytest.mark.parametrize(("waiting", "free", "has"), [(2, 3, False), (3, 3, True), (4, 3, True)])
def test_a_client_may_have_as_many_as_there_are_places_left(
    waiting: int, free: int, has: bool
) -> None:
    queue = filled(*(one(i, "a") for i in range(waiting)))
    assert queue.has_its_share(DEFAULT, "a", free=free) == has
    assert not queue.has_its_share(DEFAULT, "b", free=free)


def test_who_has_no_name_stands_for_many() -> None:
    queue = filled(*(one(i) for i in range(9)))
    assert not queue.has_its_share(DEFAULT, None, free=1)


def test_one_is_taken_out_wherever_he_stands() -> None:
    items = [one(i, "a") for i in range(3)]
    queue = filled(*items)
    queue.remove(items[1])
    assert queue._check()
    assert queue.oldest() is items[0]
    queue.remove(items[0])
    assert queue.oldest() is items[2]
    queue.remove(items[2])
    assert queue.oldest() is None
    assert queue.waiting == 0
    assert queue._check()


def test_the_oldest_of_the_longest_line_of_the_lowest_class_makes_room() -> None:
    low = [one(1, "b", SHEDDABLE), one(2, "a", SHEDDABLE), one(3, "a", SHEDDABLE)]
    last = one(4, "c", LAST)
    queue = filled(one(0), *low, last)
    assert queue.least(DEFAULT) is last
    queue.remove(last)
    assert queue.least(DEFAULT) is low[1]
    assert queue.least(SHEDDABLE) is None
