"""More of what is short, the least first, as it would be written into the file."""

import msgspec
from systems import store

from tidegate.analysis.capacity import FACTORS, more_capacity
from tidegate.analysis.cures import changed
from tidegate.settings.admission import Admission
from tidegate.settings.policies import Limit, RateLimit
from tidegate.settings.system import Service, System


def with_store(**settings: object) -> System:
    system = store()
    record = msgspec.structs.replace(system.services["store"], **settings)
    return msgspec.structs.replace(system, services={"store": record})


def test_each_is_one_change_and_the_least_comes_first() -> None:
    system = store()
    offered = list(more_capacity(system, "store"))
    workers = [candidate.system.services["store"].workers or 0 for candidate in offered]
    assert workers == [10, 12, 16, 20, 24, 32, 48, 64, 96, 128]
    assert len(offered) == len(FACTORS)
    for candidate in offered:
        assert changed(system, candidate.changes) == candidate.system
    assert offered[0].name == "1.25x the capacity of store"
    assert offered[0].yaml == "services: {store: {workers: 10}}"
    assert offered[0].cost == (
        "10 workers instead of 8 a replica, at all times; no policy that was tried suffices"
    )


def test_a_part_of_a_worker_is_a_whole_one() -> None:
    first = next(more_capacity(with_store(workers=1), "store"))
    assert first.system.services["store"].workers == 2


def test_limits_grow_with_the_workers() -> None:
    limited = with_store(rate_limit=RateLimit(rate=100.0, burst=7), limit=Limit(max=5))
    *_, most = more_capacity(limited, "store")
    record = most.system.services["store"]
    assert record.rate_limit == RateLimit(rate=1600.0, burst=7)
    assert (record.workers, record.limit) == (128, Limit(max=80))
    assert most.cost.startswith(
        "128 workers instead of 8 and a limit of 1,600/s instead of 100/s and 80 at once instead"
        " of 5, at all times"
    )


def test_a_door_lets_in_as_many_more_as_there_are_workers() -> None:
    door = Admission(limit=Limit(max=10), queue=7)
    first = next(more_capacity(with_store(admission=door), "store"))
    record = first.system.services["store"]
    assert (record.workers, record.admission) == (10, Admission(limit=Limit(max=13), queue=7))
    assert changed(with_store(admission=door), first.changes) == first.system
    assert "10 workers instead of 8 and 13 let in at once instead of 10" in first.cost


def test_who_has_no_limit_cannot_have_more_of_it() -> None:
    free = msgspec.structs.replace(store(), services={"store": Service()})
    assert list(more_capacity(free, "store")) == []
