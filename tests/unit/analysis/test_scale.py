"""A smaller copy of a system keeps its ratios, and what cannot be divided is simulated whole."""

import msgspec
import pytest

from tidegate.analysis.graph import Graph
from tidegate.analysis.scale import choose_scale, scaled
from tidegate.settings.admission import Admission
from tidegate.settings.policies import Adaptive, Limit, Queue, RateLimit
from tidegate.settings.system import Call, Client, Restart, Service, System, Time, Trigger
from tidegate.units import MILLISECOND, SECOND


def shop(**changes: object) -> System:
    service = {
        "workers": 100,
        "time": Time(mean=50 * MILLISECOND),
        "queue": Queue(limit=200),
        "rate_limit": RateLimit(rate=1500.0, burst=100),
        "limit": Limit(max=300),
        "restart": Restart(backlog=5000),
        "contention": 10_000,
        "thrash": 0.001,
    } | changes
    return System(
        clients={"users": Client(rate=1000.0, calls={"shop": Call(timeout=SECOND)})},
        services={"shop": Service(**service)},  # type: ignore[arg-type]
        triggers={"wrong limit": Trigger(service="shop", rate_limit=RateLimit(rate=500.0))},
    )


def test_a_copy_keeps_every_ratio() -> None:
    copy = scaled(shop(), 5)
    small = copy.services["shop"]
    assert copy.clients["users"].rate == 200
    assert (small.workers, small.queue.limit) == (20, 40)
    assert small.rate_limit == RateLimit(rate=300.0, burst=20)
    assert small.limit == Limit(max=60)
    assert small.restart is not None
    assert small.restart.backlog == 1000
    # Ten microseconds for each in flight become fifty: a fifth is in flight.
    assert (small.contention, small.thrash) == (50_000, pytest.approx(0.005))
    assert copy.triggers["wrong limit"].rate_limit == RateLimit(rate=100.0)


def test_a_door_is_scaled_with_what_it_leads_to() -> None:
    door = Admission(limit=Limit(max=300), queue=200, client_share=0.5)
    small = scaled(shop(limit=None, admission=door), 5).services["shop"].admission
    assert small == Admission(limit=Limit(max=60), queue=40, client_share=0.5)
    assert choose_scale(shop(limit=None, admission=door), 5) == 5


def test_a_copy_is_as_busy_as_the_original() -> None:
    for before, after in zip(Graph(shop()).facts(), Graph(scaled(shop(), 5)).facts(), strict=True):
        assert after.utilisation == pytest.approx(before.utilisation)
        assert after.state == before.state


def test_an_original_is_its_own_copy_at_scale_one() -> None:
    assert scaled(shop(), 1) == shop()


def test_twenty_workers_are_kept() -> None:
    assert choose_scale(shop(), 100) == 5
    assert choose_scale(shop(workers=20), 100) == 1


def test_no_larger_scale_than_wanted_is_chosen() -> None:
    assert choose_scale(shop(), 4.9) == 4
    assert choose_scale(shop(), 1.9) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"workers": 45, "queue": Queue()},  # 22.5 is no number of workers
        {"queue": Queue(limit=1)},
        {"limit": None, "admission": Admission(limit=Limit(max=300), queue=1)},
        {"limit": None, "admission": Admission(queue=200)},
        {"limit": Limit(adaptive=Adaptive())},  # steps of one do not shrink
    ],
)
def test_what_does_not_divide_is_simulated_whole(changes: dict[str, object]) -> None:
    assert choose_scale(shop(**changes), 2) == 1


def test_users_of_a_closed_client_come_whole() -> None:
    client = Client(users=50, think=Time(mean=SECOND), calls={"shop": Call(timeout=SECOND)})
    system = msgspec.structs.replace(shop(), clients={"users": client})
    assert choose_scale(system, 5) == 5
    assert scaled(system, 5).clients["users"].users == 10
    odd = msgspec.structs.replace(
        system, clients={"users": msgspec.structs.replace(client, users=7)}
    )
    assert choose_scale(odd, 5) == 1
