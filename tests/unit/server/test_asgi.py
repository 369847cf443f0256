"""The ASGI shedder in virtual time: who is let in, who waits, who is sent away, who is stopped."""

import asyncio
import gc
import tracemalloc
from typing import Any

import pytest
from asgi_client import Exchange, answer, ask
from virtual_seconds import run

from tidegate.errors import SettingsError
from tidegate.runtime.context import ambient, remaining
from tidegate.server.asgi import LoadShedder, by_address, by_header
from tidegate.settings.admission import Admission, ClientRate
from tidegate.settings.policies import CoDel, Limit
from tidegate.units import SECOND

PATIENT = CoDel(target=60 * SECOND, interval=60 * SECOND)


class Slow:
    """An application that takes a second for each request, and notes who came."""

    def __init__(self, time: float = 1.0) -> None:
        self.time = time
        self.called: list[str] = []
        self.stopped: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.called.append(scope["path"])
        try:
            await asyncio.sleep(self.time)
        except asyncio.CancelledError:
            self.stopped.append(scope["path"])
            raise
        await answer(send)


async def settle() -> None:
    """Let everything run that can run at this instant."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_what_is_refused_never_reaches_the_application() -> None:
    async def main() -> None:
        app = Slow()
        shedder = LoadShedder(app, limit=2, queue=0)
        exchanges = [Exchange(f"/{n}") for n in range(3)]
        tasks = [exchange.start(shedder) for exchange in exchanges]
        await asyncio.gather(*tasks)
        assert app.called == ["/0", "/1"]
        assert [exchange.status for exchange in exchanges] == [200, 200, 503]
        refused = exchanges[2]
        assert 1 <= int(refused.headers["retry-after"]) <= 4
        assert int(refused.headers["content-length"]) == len(refused.body) > 0
        assert refused.reads == 0  # not even its body was read
        assert shedder.snapshot().refused == {"limit": 1}
        assert shedder.snapshot().door.inside == 0

    run(main())


def test_who_waits_is_served_when_a_place_is_free() -> None:
    async def main() -> None:
        app = Slow()
        shedder = LoadShedder(app, limit=1, queue=10, wait=10, order="fifo")
        loop = asyncio.get_running_loop()
        tasks = [Exchange(f"/{n}").start(shedder) for n in range(2)]
        await asyncio.gather(*tasks)
        assert app.called == ["/0", "/1"]
        assert loop.time() == pytest.approx(2)

    run(main())


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_place_goes_on_from_one_to_the_next(method: str) -> None:
    async def main() -> None:
        app = Slow()
        shedder = LoadShedder(app, limit=1, queue=10, wait=10, order="fifo", codel=PATIENT)
        exchanges = [Exchange(f"/{n}", method) for n in range(4)]
        await asyncio.gather(*(exchange.start(shedder) for exchange in exchanges))
        assert app.called == ["/0", "/1", "/2", "/3"]
        assert [exchange.status for exchange in exchanges] == [200] * 4
        assert asyncio.get_running_loop().time() == pytest.approx(4)
        assert shedder.snapshot().door.done == (4, 0, 0, 0, 0)

    run(main())


def test_nobody_waits_longer_than_he_may() -> None:
    async def main() -> None:
        app = Slow(5)
        shedder = LoadShedder(app, limit=1, wait=0.5)
        first, second = Exchange("/a"), Exchange("/b")
        running = first.start(shedder)
        await settle()
        await second.start(shedder)
        assert asyncio.get_running_loop().time() == pytest.approx(0.5)
        assert second.status == 503
        assert shedder.snapshot().refused == {"waited": 1}
        await running
        assert app.called == ["/a"]

    run(main())


def test_a_head_request_is_refused_without_a_body() -> None:
    async def main() -> None:
        shedder = LoadShedder(Slow(), limit=1, queue=0)
        running = Exchange().start(shedder)
        await settle()
        refused = await ask(shedder, method="HEAD")
        assert refused.status == 503
        assert refused.body == b""
        await running

    run(main())


def test_health_checks_are_never_refused_nor_counted() -> None:
    async def main() -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await asyncio.sleep(5 if scope["path"] == "/" else 0)
            await answer(send)

        shedder = LoadShedder(app, limit=1, queue=0, exempt=("/alive",))
        running = Exchange().start(shedder)
        await settle()
        assert (await ask(shedder, "/alive")).status == 200
        assert (await ask(shedder, "/healthz")).status == 503  # not among those that were named
        await running
        assert shedder.snapshot().door.done == (1, 0, 0, 0, 0)
        assert (await ask(LoadShedder(app, limit=1, queue=0), "/healthz")).status == 200

    run(main())


def test_websockets_and_lifespan_pass_through() -> None:
    async def main() -> None:
        seen = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            seen.append(scope["type"])

        shedder = LoadShedder(app, limit=1)
        for kind in ("websocket", "lifespan"):
            await shedder({"type": kind}, None, None)  # type: ignore[arg-type]
        assert seen == ["websocket", "lifespan"]

    run(main())


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_a_shedder_that_only_looks_refuses_nobody(mode: Any) -> None:
    async def main() -> None:
        app = Slow()
        shedder = LoadShedder(app, limit=1, queue=1, mode=mode, client=by_address, client_rate=1.0)
        exchanges = [Exchange(str(n), address=f"10.0.0.{n}") for n in range(3)]
        exchanges.append(Exchange("again", address="10.0.0.0"))
        await asyncio.gather(*(exchange.start(shedder) for exchange in exchanges))
        assert [exchange.status for exchange in exchanges] == [200] * 4
        assert asyncio.get_running_loop().time() == pytest.approx(1)  # and nobody waited
        found = shedder.snapshot()
        if mode == "observe":
            assert found.refused == {"rate": 1}
            assert found.would_wait == 2  # each for himself, since nobody is made to wait
        else:
            assert found.refused == {}
        assert found.door.inside == 0

    run(main())


def test_who_would_have_been_refused_is_told_by_reason() -> None:
    async def main() -> None:
        shedder = LoadShedder(Slow(), limit=1, queue=0, mode="observe")
        exchanges = [Exchange() for _ in range(3)]
        await asyncio.gather(*(exchange.start(shedder) for exchange in exchanges))
        assert shedder.snapshot().refused == {"limit": 2}
        assert [exchange.status for exchange in exchanges] == [200] * 3

    run(main())


def test_the_client_that_has_gone_is_not_worked_for() -> None:
    async def main() -> None:
        app = Slow(10)
        shedder = LoadShedder(app, limit=1)
        exchange = Exchange("/gone")
        task = exchange.start(shedder)
        await asyncio.sleep(2)
        exchange.leave()
        await task
        assert asyncio.get_running_loop().time() == pytest.approx(2)
        assert app.stopped == ["/gone"]
        assert exchange.sent == []
        found = shedder.snapshot()
        assert found.cancelled == 1
        assert found.door.done == (0, 0, 0, 0, 1)
        assert found.door.inside == 0
        assert not task.cancelled()

    run(main())


@pytest.mark.parametrize("cancel", [False, ("PUT",), True])
def test_work_that_must_be_finished_is_finished(cancel: Any) -> None:
    async def main() -> None:
        app = Slow(10)
        shedder = LoadShedder(app, cancel_on_disconnect=cancel, trusted="*")
        exchange = Exchange(method="POST", headers={"Tidegate-Remaining-Ms": "3000"})
        task = exchange.start(shedder)
        await asyncio.sleep(2)
        exchange.leave()
        await task
        assert exchange.status == 200
        assert app.stopped == []
        assert shedder.snapshot().cancelled == 0

    run(main())


def test_work_that_ends_after_its_deadline_is_counted_as_late() -> None:
    async def main() -> None:
        shedder = LoadShedder(Slow(10), cancel_on_disconnect=False, trusted="*")
        await ask(shedder, headers={"Tidegate-Remaining-Ms": "3000"})
        found = shedder.snapshot()
        assert found.late == 1
        assert found.door.done == (0, 0, 1, 0, 0)

    run(main())


def test_what_runs_after_the_answer_is_left_alone() -> None:
    async def main() -> None:
        finished = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await asyncio.sleep(1)
            await answer(send)
            await asyncio.sleep(5)
            finished.append(scope["path"])

        shedder = LoadShedder(app)
        exchange = Exchange("/later")
        task = exchange.start(shedder)
        await asyncio.sleep(2)
        exchange.leave()
        await task
        assert finished == ["/later"]
        assert shedder.snapshot().door.done == (1, 0, 0, 0, 0)

    run(main())


def test_who_leaves_while_he_waits_is_forgotten() -> None:
    async def main() -> None:
        app = Slow(5)
        shedder = LoadShedder(app, limit=1, wait=10)
        running = Exchange("/a").start(shedder)
        await settle()
        waiting = Exchange("/b", method="POST")
        task = waiting.start(shedder)
        await asyncio.sleep(1)
        assert shedder.snapshot().door.waiting == 1
        waiting.leave()
        await task
        assert shedder.snapshot().door.waiting == 0
        await running
        assert app.called == ["/a"]
        assert waiting.sent == []

    run(main())


@pytest.mark.parametrize(("waits", "watched"), [(True, True), (False, True), (False, False)])
def test_a_server_that_stops_may_cancel_a_request(waits: bool, watched: bool) -> None:
    async def main() -> None:
        app = Slow(5)
        shedder = LoadShedder(app, limit=1, wait=10, cancel_on_disconnect=watched)
        first = Exchange("/a").start(shedder)
        await settle()
        victim = Exchange("/b").start(shedder) if waits else first
        await asyncio.sleep(1)
        victim.cancel()
        with pytest.raises(asyncio.CancelledError):
            await victim
        if waits:
            await first
        found = shedder.snapshot().door
        assert (found.inside, found.waiting) == (0, 0)
        assert (found.left, found.done[-1]) == ((1, 0) if waits else (0, 1))

    run(main())


def test_a_deadline_of_a_trusted_caller_ends_the_work() -> None:
    async def main() -> None:
        app = Slow(10)
        shedder = LoadShedder(app, trusted=["10.0.0.0/8"])
        exchange = await ask(shedder, headers={"Tidegate-Remaining-Ms": "1500"})
        assert asyncio.get_running_loop().time() == pytest.approx(1.5)
        assert exchange.status == 504
        assert "retry-after" not in exchange.headers
        found = shedder.snapshot()
        assert found.cancelled == 1
        assert found.door.done == (0, 0, 1, 0, 0)

    run(main())


def test_a_deadline_that_has_passed_is_not_worked_for() -> None:
    async def main() -> None:
        app = Slow()
        shedder = LoadShedder(app, trusted="*", cancel_on_disconnect=False)
        exchange = await ask(shedder, method="POST", headers={"Tidegate-Remaining-Ms": "0"})
        assert exchange.status == 504
        assert app.called == []
        assert shedder.snapshot().refused == {"deadline": 1}

    run(main())


def test_an_answer_that_has_begun_is_not_begun_again() -> None:
    async def main() -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await asyncio.sleep(10)

        shedder = LoadShedder(app, trusted="*")
        exchange = await ask(shedder, headers={"Tidegate-Remaining-Ms": "1000"})
        assert [message["type"] for message in exchange.sent] == ["http.response.start"]

    run(main())


def test_a_handler_inherits_what_a_trusted_caller_says() -> None:
    async def main() -> None:
        seen = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            left = remaining()
            seen.append((left, ambient().said, ambient().depth))
            await answer(send)

        shedder = LoadShedder(app, trusted=["10.0.0.1"])
        said = {
            "Tidegate-Remaining-Ms": "2000",
            "Tidegate-Criticality": "sheddable",
            "Tidegate-Retry-Depth": "1",
        }
        await ask(shedder, headers=said)
        await ask(shedder, headers=said, address="10.0.0.2")
        await ask(shedder, headers=said, address=None)
        assert seen == [(2.0, 2, 1), (None, None, 0), (None, None, 0)]
        assert ambient().said is None

    run(main())


def test_retries_and_what_is_sheddable_are_refused_first() -> None:
    async def main() -> None:
        shedder = LoadShedder(Slow(), limit=10, queue=0, trusted="*")
        sent = [*({} for _ in range(8)), {"Tidegate-Retry-Depth": "1"}, {}]
        sent += [{"Tidegate-Criticality": "critical", "Tidegate-Retry-Depth": "1"}]
        exchanges = [Exchange(headers=headers) for headers in sent]
        await asyncio.gather(*(exchange.start(shedder) for exchange in exchanges))
        assert [exchange.status for exchange in exchanges] == [200] * 8 + [503, 200, 200]
        assert shedder.snapshot().refused == {"shed": 1}

    run(main())


def test_who_matters_less_makes_room_in_the_queue() -> None:
    async def main() -> None:
        app = Slow()
        shedder = LoadShedder(app, limit=1, queue=1, wait=10, trusted="*")
        exchanges = [
            Exchange("/a"),
            Exchange("/low", headers={"Tidegate-Criticality": "sheddable"}),
            Exchange("/high", headers={"Tidegate-Criticality": "critical"}),
        ]
        await asyncio.gather(*(exchange.start(shedder) for exchange in exchanges))
        assert [exchange.status for exchange in exchanges] == [200, 503, 200]
        assert app.called == ["/a", "/high"]

    run(main())


def test_clients_take_turns_and_each_has_its_rate() -> None:
    async def main() -> None:
        app = Slow()
        shedder = LoadShedder(
            app,
            limit=1,
            wait=100,
            order="fifo",
            client=by_header("X-Api-Key"),
            client_rate=0.1,
        )
        exchanges = [Exchange(key, headers={"x-api-key": key}) for key in "aab"]
        exchanges.append(Exchange("nobody"))
        await asyncio.gather(*(exchange.start(shedder) for exchange in exchanges))
        assert [exchange.status for exchange in exchanges] == [200, 429, 200, 200]
        assert int(exchanges[1].headers["retry-after"]) >= 10  # not before it would be let in
        assert shedder.snapshot().refused == {"rate": 1}
        assert shedder.snapshot().rates is not None

    run(main())


@pytest.mark.parametrize("hears", ["before", "after"])
def test_who_is_called_off_as_he_is_let_in_gives_his_place_to_the_next(hears: str) -> None:
    """Cancelled in the same turn of the loop, before he is let in or after it."""

    async def main() -> None:
        tasks: list[asyncio.Task[None]] = []
        called: list[str] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            called.append(scope["path"])
            await asyncio.sleep(1)
            if scope["path"] == "/a" and hears == "before":
                tasks[1].cancel()
            elif scope["path"] == "/a":
                asyncio.get_running_loop().call_soon(tasks[1].cancel)
            await answer(send)

        shedder = LoadShedder(app, limit=1, wait=10, order="fifo", codel=PATIENT)
        for path in ("/a", "/b", "/c"):
            tasks.append(Exchange(path).start(shedder))
            await settle()
        with pytest.raises(asyncio.CancelledError):
            await tasks[1]
        await asyncio.gather(tasks[0], tasks[2])
        assert called == ["/a", "/c"]
        found = shedder.snapshot().door
        assert (found.inside, found.waiting) == (0, 0)
        assert found.done == (2, 0, 0, 0, 1)

    run(main())


def test_a_long_key_is_kept_short() -> None:
    scope = {"headers": [(b"other", b"1"), (b"x-key", b"k" * 100_000)]}
    found = by_header("X-Key")(scope)
    assert found is not None
    assert len(found) == 32
    assert found != by_header("X-Key")({"headers": [(b"x-key", b"k" * 99_999)]})
    assert by_header("X-Key")({"headers": [(b"x-key", b"short")]}) == "short"
    assert by_header("X-Key")({"headers": []}) is None
    assert by_address({"client": None}) is None


def test_an_error_of_the_application_is_its_own_and_frees_the_place() -> None:
    async def main() -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            raise ZeroDivisionError

        shedder = LoadShedder(app, limit=1, queue=0)
        for method in ("GET", "POST"):
            with pytest.raises(ZeroDivisionError):
                await ask(shedder, method=method)
        assert shedder.snapshot().door.done == (0, 2, 0, 0, 0)
        assert shedder.snapshot().door.inside == 0

    run(main())


def test_an_application_that_swallows_its_cancellation_keeps_its_answer() -> None:
    async def main() -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                await answer(send, b"stopped")

        exchange = Exchange(headers={"Tidegate-Remaining-Ms": "1000"})
        task = exchange.start(LoadShedder(app, trusted="*"))
        await task
        assert exchange.body == b"stopped"
        assert task.cancelling() == 0

    run(main())


@pytest.mark.slow  # tens of thousands of anything take a second
def test_refusals_leave_nothing_behind() -> None:
    """Each from another client, with a rate of its own, some after a wait."""

    async def main() -> int:
        shedder = LoadShedder(
            Slow(3600),
            limit=1,
            queue=4,
            wait=0.01,
            client=by_header("x-key"),
            client_rate=ClientRate(rate=1.0, clients=100),
            cancel_on_disconnect=False,
        )
        running = Exchange().start(shedder)
        await settle()

        async def refuse(count: int) -> None:
            for number in range(0, count, 8):
                keys = [{"x-key": str(number + n)} for n in range(8)]
                exchanges = [Exchange(headers=headers) for headers in keys]
                await asyncio.gather(*(exchange.start(shedder) for exchange in exchanges))
                assert {exchange.status for exchange in exchanges} == {503}

        await refuse(2_000)
        tracemalloc.start()
        await refuse(2_000)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        await refuse(20_000)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        running.cancel()
        return after - before

    assert run(main()) < 20_000  # less than a byte for each


def test_refusals_are_told_at_most_once_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        shedder = LoadShedder(Slow(60), limit=1, queue=0)
        running = Exchange().start(shedder)
        await settle()
        for _ in range(15):
            await ask(shedder, headers={"authorization": "a secret"})
            await asyncio.sleep(1)
        await running

    run(main())
    assert len(caplog.records) == 2
    assert "refused 1 request" in caplog.text
    assert "refused 10 request" in caplog.text
    assert "secret" not in caplog.text


def test_settings_come_as_keywords_or_as_a_record() -> None:
    async def main() -> None:
        app = Slow()
        shedder = LoadShedder(app, admission=Admission(limit=Limit(max=3)), queue=7)
        assert shedder.snapshot().door.limit == 3
        for wrong in (
            {"limits": 3},
            {"mode": "watch"},
            {"trusted": ["10.0.0.1/8"]},
            {"retry_after": (0, 1)},
            {"wait": -1},
        ):
            with pytest.raises(SettingsError):
                LoadShedder(app, **wrong)  # type: ignore[arg-type]

    run(main())
