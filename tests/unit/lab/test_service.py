"""The service as an ASGI application, in memory and in virtual time."""

import asyncio
import gc
import json
import weakref
from collections.abc import Mapping
from typing import Any

import pytest
from virtual_seconds import SecondsClock, run

from tidegate.errors import SettingsError
from tidegate.lab.service import Orders, application, playable
from tidegate.runtime import clock
from tidegate.settings.admission import Admission
from tidegate.settings.load import loads
from tidegate.settings.policies import Limit, Queue
from tidegate.settings.system import Service, Time
from tidegate.units import MILLISECOND

EXACT = Time(constant=100 * MILLISECOND)


class Visitor:
    """One connection: what it sends, what it hears, and when it leaves."""

    def __init__(self, method: str = "GET", path: str = "/", body: bytes = b"") -> None:
        self.scope: dict[str, Any] = {"type": "http", "method": method, "path": path}
        self.scope |= {
            "headers": [],
            "query_string": b"",
            "root_path": "",
            "client": ("127.0.0.1", 1),
        }
        self.heard: list[Mapping[str, Any]] = []
        self._inbox: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._inbox.put_nowait({"type": "http.request", "body": body, "more_body": False})

    async def receive(self) -> Mapping[str, Any]:
        return await self._inbox.get()

    async def send(self, message: Mapping[str, Any]) -> None:
        self.heard.append(message)
        if message["type"] == "http.response.body":
            self.leave()  # as a server says that the response is complete

    def leave(self) -> None:
        self._inbox.put_nowait({"type": "http.disconnect"})

    @property
    def status(self) -> int | None:
        return self.heard[0]["status"] if self.heard else None


@pytest.fixture(autouse=True)
def virtual_time() -> Any:
    before = clock.use(SecondsClock())
    yield
    clock.use(before)


def served(service: Service, story: Any) -> Any:
    async def main() -> Any:
        app = application(Orders(service=service), asyncio.get_running_loop())
        return await story(app)

    return run(main())


def visit(app: Any, visitor: Visitor) -> "asyncio.Task[None]":
    return asyncio.create_task(app(visitor.scope, visitor.receive, visitor.send))


async def counts(app: Any) -> dict[str, int]:
    visitor = Visitor(path="/control")
    await visit(app, visitor)
    told: dict[str, int] = json.loads(visitor.heard[1]["body"])
    return told


def test_work_is_answered_when_it_is_done_and_a_full_queue_at_once() -> None:
    async def story(app: Any) -> None:
        first, second, third = (Visitor() for _ in range(3))
        tasks = [visit(app, visitor) for visitor in (first, second, third)]
        await asyncio.sleep(0.05)
        assert [v.status for v in (first, second, third)] == [None, None, 503]
        await asyncio.sleep(0.06)
        assert [first.status, second.status] == [200, None]
        await asyncio.gather(*tasks)
        assert second.status == 200
        told = await counts(app)
        assert (told["arrived"], told["served"], told["refused"], told["late"]) == (3, 2, 1, 0)

    served(Service(workers=1, time=EXACT, queue=Queue(limit=1)), story)


def test_work_goes_on_for_a_caller_who_has_gone_and_its_task_does_not() -> None:
    async def story(app: Any) -> None:
        visitor = Visitor()
        task = visit(app, visitor)
        await asyncio.sleep(0.01)
        visitor.leave()
        await task
        assert (await counts(app))["busy"] == 1
        await asyncio.sleep(0.2)
        told = await counts(app)
        assert (told["served"], told["late"], told["busy"]) == (1, 1, 0)
        assert visitor.heard == []

    served(Service(workers=1, time=EXACT), story)


def test_what_waits_for_a_caller_who_has_gone_holds_nothing_of_its_connection() -> None:
    async def story(app: Any) -> None:
        staying, leaving = Visitor(), Visitor()
        connection = weakref.ref(leaving)
        tasks = [visit(app, staying), visit(app, leaving)]
        await asyncio.sleep(0.01)
        leaving.leave()
        await tasks.pop()
        del leaving
        gc.collect()
        assert connection() is None
        assert (await counts(app))["waiting"] == 1
        await asyncio.gather(*tasks)

    served(Service(workers=1, time=EXACT), story)


def test_what_is_cancelled_in_front_of_it_is_stopped() -> None:
    async def story(app: Any) -> None:
        task = visit(app, Visitor())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        told = await counts(app)
        assert (told["dropped"], told["busy"]) == (1, 0)

    served(Service(workers=1, time=EXACT), story)


@pytest.mark.parametrize(("abandoned", "second"), [("finish", 503), ("skip", 503), ("cancel", 200)])
def test_a_door_knows_what_is_still_at_work(abandoned: Any, second: int) -> None:
    async def story(app: Any) -> None:
        first, later = Visitor(), Visitor()
        task = visit(app, first)
        await asyncio.sleep(0.01)
        first.leave()
        await asyncio.sleep(0.05)  # half-way through its work
        tasks = [task, visit(app, later)]
        await asyncio.gather(*tasks)
        assert later.status == second
        told = await counts(app)
        assert (told["served"], told["dropped"]) == ((1, 0) if second == 503 else (1, 1))
        assert (told["busy"], told["waiting"]) == (0, 0)

    door = Admission(limit=Limit(max=1), queue=0)
    served(Service(workers=1, time=EXACT, admission=door, abandoned=abandoned), story)


def test_who_stays_for_work_that_is_skipped_is_let_go() -> None:
    async def story(app: Any) -> None:
        visitors = [Visitor(), Visitor()]
        tasks = [visit(app, visitor) for visitor in visitors]
        await asyncio.sleep(0.01)
        visitors[1].leave()  # it waits for the worker, behind the first
        await asyncio.gather(*tasks)
        told = await counts(app)
        assert (told["served"], told["dropped"], visitors[1].heard) == (1, 1, [])

    door = Admission(limit=Limit(max=2), queue=0)
    served(Service(workers=1, time=EXACT, admission=door, abandoned="skip"), story)


def test_a_slowdown_begins_at_the_instant_for_which_it_was_planned() -> None:
    async def story(app: Any) -> None:
        order = Visitor("POST", "/control", b'{"at": 150000000, "factor": 3}')
        await visit(app, order)
        assert order.status == 204
        early, late = Visitor(), Visitor()
        tasks = [visit(app, early)]
        await asyncio.sleep(0.16)
        assert early.status == 200
        tasks.append(visit(app, late))
        await asyncio.sleep(0.25)
        assert late.status is None
        await asyncio.gather(*tasks)
        assert late.status == 200

    served(Service(workers=1, time=EXACT), story)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"at": 1, "factor": 0}', b"\xff"])
def test_an_order_that_is_none_is_refused_in_a_sentence(body: bytes) -> None:
    async def story(app: Any) -> None:
        order = Visitor("POST", "/control", body)
        await visit(app, order)
        assert order.status == 400
        assert order.heard[1]["body"]

    served(Service(workers=1, time=EXACT), story)


SYSTEM = """\
tidegate: 1
clients: {people: {rate: 1/s, calls: {web: {}}}}
services:
  web: {workers: 2, time: 10ms, %s}
"""


@pytest.mark.parametrize(
    ("extra", "key"),
    [
        ("replicas: 2", "replicas"),
        ("errors: 10%", "errors"),
        ("limit: 5", "limit"),
        ("queue: {limit: 5, order: lifo}", "queue"),
    ],
)
def test_what_the_lab_cannot_play_it_says(extra: str, key: str) -> None:
    service = loads(SYSTEM % extra).system().services["web"]
    with pytest.raises(SettingsError, match=rf"services\.web\.{key}: the lab plays"):
        playable("web", service)


def test_workers_and_their_time_must_be_known() -> None:
    with pytest.raises(SettingsError, match=r"services\.web\.workers: the lab needs the workers"):
        playable("web", Service(time=EXACT))
    with pytest.raises(SettingsError, match="needs the time"):
        playable("web", Service(workers=1))


def test_what_it_plays_it_gives_back() -> None:
    service = Service(workers=1, time=EXACT, queue=Queue(limit=5), abandoned="skip")
    assert playable("web", service) is service
