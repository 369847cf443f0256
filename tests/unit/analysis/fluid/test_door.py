"""A door in the fluid: a limit and places before the workers; in a storm it ends as simulated."""

import pytest

from tidegate.analysis.fluid.door import without_door
from tidegate.settings.admission import Admission
from tidegate.settings.policies import Adaptive, Limit
from tidegate.settings.system import Service


@pytest.mark.parametrize(("most", "workers", "places"), [(8, 8, 100), (20, 8, 112), (5, 5, 100)])
def test_as_many_are_inside_and_as_many_wait(most: int, workers: int, places: int) -> None:
    door = Admission(limit=Limit(max=most), queue=100)
    found = without_door(Service(workers=8, admission=door))
    assert (found.workers, found.queue.limit) == (workers, places)
    assert (found.queue.order, found.queue.codel) == (door.order, door.codel)
    assert found.admission is None
    assert found.limit is None


def test_a_limit_that_finds_itself_stays_one() -> None:
    limit = Limit(adaptive=Adaptive())
    found = without_door(Service(workers=8, admission=Admission(limit=limit)))
    assert (found.workers, found.limit, found.admission) == (8, limit, None)


def test_without_workers_there_is_no_line_to_wait_in() -> None:
    found = without_door(Service(admission=Admission(limit=Limit(max=3))))
    assert (found.workers, found.limit) == (None, Limit(max=3))


def test_what_has_no_door_is_left_alone() -> None:
    service = Service(workers=1)
    assert without_door(service) is service
