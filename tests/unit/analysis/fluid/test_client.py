"""Who sends, how often, and who was served: in steps of a tenth of a second."""

import pytest

from tidegate.analysis.fluid.client import Client
from tidegate.analysis.fluid.flow import NEVER, Packet
from tidegate.settings import system as settings
from tidegate.settings.system import Call, Time
from tidegate.units import SECOND

STEP = 0.1
CALLS = {"web": Call(timeout=SECOND)}


def client(*, patience: int = 10, **said: object) -> Client:
    return Client(
        "users",
        settings.Client(calls=CALLS, **said),  # type: ignore[arg-type]
        dt=STEP,
        patience=patience,
    )


def test_an_open_client_sends_its_rate_whatever_happens() -> None:
    users = client(rate=50.0)
    for now in range(3):
        users.arrive(now)
    users.set_load(3.0)
    users.arrive(3)
    users.set_load(0.0)
    users.arrive(4)
    assert users.offered == pytest.approx([5, 5, 5, 15, 0])


def test_a_client_without_calls_to_make_is_served_at_once() -> None:
    users = client(rate=50.0)  # no site was added: every service is taken as healthy
    users.arrive(0)
    assert users.good == [5]


def test_served_in_time_or_not() -> None:
    users = client(rate=50.0, patience=10)
    users.offered[:] = users.good[:] = [0.0] * 20
    request = Packet(None, 1, 5.0, 4, NEVER, 1.0)
    users.finish(13, [(request, 2.0)], ok=True)
    users.finish(14, [(request, 2.0)], ok=True)  # at its timeout: nobody waits any more
    users.finish(13, [(request, 1.0)], ok=False)
    assert users.good[4] == 2


def test_closed_users_think_ask_and_come_back() -> None:
    users = client(users=100, think=Time(mean=SECOND))
    users.slots.clear()
    users.arrive(0)
    assert users.offered[0] == pytest.approx(10)
    users.arrive(1)  # all were answered within the step
    assert users.offered[1] == pytest.approx(users.offered[0])


def test_an_answer_within_the_step_is_a_pause_all_the_same() -> None:
    users = client(users=100, think=Time(constant=0))
    users.set_below(0.5)
    users.arrive(0)
    assert users.offered[0] == pytest.approx(20)


def test_more_users_think_first() -> None:
    users = client(users=100, think=Time(mean=SECOND))
    users.set_load(2.0)
    users.arrive(0)
    assert users.offered[0] == pytest.approx(20)
    users.set_load(0.0)
    users.arrive(1)
    assert users.offered[1] == pytest.approx(0, abs=1e-9)
