"""Who listens and when: what a server says reaches the application in the order it came in."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgi_client import Exchange, answer
from virtual_seconds import SecondsLoop, run

from tidegate.server.watch import GRACE, Nursery, Watch
from tidegate.units import SECOND

App = Callable[[Watch], Awaitable[None]]


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def under_watch(exchange: Exchange, app: App) -> tuple[Watch, "asyncio.Task[bool]"]:
    """`app` in a task that a watch may stop; the task's result is whether it did."""
    made: list[Watch] = []

    async def work() -> bool:
        try:
            await app(made[0])
        except asyncio.CancelledError:
            return made[0].close()
        return made[0].close()

    task = asyncio.get_running_loop().create_task(work())
    made.append(Watch(task, exchange.receive, exchange.send))
    return made[0], task


async def sleeps(_: Watch) -> None:
    await asyncio.sleep(100)


def test_nobody_reads_before_somebody_listens() -> None:
    async def main() -> None:
        exchange = Exchange()
        watch, task = under_watch(exchange, sleeps)
        await settle()
        assert exchange.reads == 0
        watch.listen()
        await settle()
        assert exchange.reads == 2  # an empty body, and then whether the client leaves
        exchange.leave()
        assert await task
        assert watch.gone

    run(main())


def test_what_was_heard_is_handed_on_in_its_order() -> None:
    async def main() -> None:
        exchange = Exchange(body=(b"a", b"b", b"c"))
        heard: list[Any] = []

        async def reads(watch: Watch) -> None:
            watch.listen()
            await settle()
            assert exchange.reads == 1  # one message ahead of the application, and no more
            while True:
                message = await watch.receive()
                heard.append(message.get("body"))
                if not message.get("more_body"):
                    break
            await asyncio.sleep(100)

        watch, task = under_watch(exchange, reads)
        await settle()
        await asyncio.sleep(1)
        assert heard == [b"a", b"b", b"c"]
        assert watch.listener is not None
        exchange.leave()
        assert await task

    run(main())


def test_an_application_that_listens_itself_hears_it_itself() -> None:
    async def main() -> None:
        exchange = Exchange()
        heard: list[str] = []

        async def listens(watch: Watch) -> None:
            heard.extend([(await watch.receive())["type"] for _ in range(2)])

        watch, task = under_watch(exchange, listens)
        await settle()
        watch.listen()  # the application is at it already
        assert watch.listener is None
        exchange.leave()
        assert not await task
        assert heard == ["http.request", "http.disconnect"]
        assert watch.gone

    run(main())


def test_an_application_that_begins_to_listen_joins_who_does() -> None:
    async def main() -> None:
        exchange = Exchange()
        heard: list[str] = []

        async def listens(watch: Watch) -> None:
            watch.stoppable = False
            watch.listen()
            await settle()
            heard.extend([(await watch.receive())["type"] for _ in range(2)])

        _, task = under_watch(exchange, listens)
        await asyncio.sleep(1)
        exchange.leave()
        assert not await task
        assert heard == ["http.request", "http.disconnect"]

    run(main())


def test_a_complete_answer_is_not_stopped() -> None:
    async def main() -> None:
        exchange = Exchange()

        async def answers(watch: Watch) -> None:
            watch.listen()
            await answer(watch.send)
            await asyncio.sleep(5)

        watch, task = under_watch(exchange, answers)
        await asyncio.sleep(1)
        exchange.leave()
        assert not await task
        assert not watch.gone
        assert watch.complete

    run(main())


def test_a_stream_is_complete_with_its_last_piece() -> None:
    async def main() -> None:
        exchange = Exchange()

        async def streams(watch: Watch) -> None:
            await watch.send({"type": "http.response.early_hint", "links": []})
            assert not watch.started
            await watch.send({"type": "http.response.start", "status": 200, "headers": []})
            await watch.send({"type": "http.response.body", "body": b"a", "more_body": True})
            assert watch.started
            assert not watch.complete
            watch.listen()
            await asyncio.sleep(100)

        watch, task = under_watch(exchange, streams)
        await asyncio.sleep(1)
        exchange.leave()
        assert await task
        assert watch.gone

    run(main())


def test_a_server_that_fails_to_tell_is_the_application_s_to_meet() -> None:
    async def main() -> None:
        async def broken() -> dict[str, Any]:
            raise ConnectionError

        exchange = Exchange()

        async def listens(watch: Watch) -> None:
            watch.listen()
            await settle()
            with pytest.raises(ConnectionError):
                await watch.receive()

        exchange.receive = broken  # type: ignore[method-assign]
        _, task = under_watch(exchange, listens)
        assert not await task

    run(main())


def test_the_time_ends_the_work() -> None:
    async def main() -> None:
        watch, task = under_watch(Exchange(), sleeps)
        watch.expire(0)
        assert watch.timer is None  # there is no deadline
        watch.deadline = 5 * SECOND
        watch.expire(2 * SECOND)
        assert await task
        assert watch.expired
        assert asyncio.get_running_loop().time() == pytest.approx(3)

    run(main())


def test_the_young_are_listened_for_when_they_are_old_enough() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SecondsLoop)
        nursery = Nursery(lambda: loop.now)
        exchanges = [Exchange() for _ in range(3)]
        watches = []
        for exchange in exchanges:
            watch, _ = under_watch(exchange, sleeps)
            watches.append(watch)
            nursery.add(loop.now, watch)
            await asyncio.sleep(0.3 * GRACE / SECOND)
        watches[1].close()  # is over before it is old enough
        await asyncio.sleep(5 * GRACE / SECOND)
        assert [exchange.reads for exchange in exchanges] == [2, 0, 2]
        assert not nursery._line
        nursery.add(loop.now, watches[1])
        await asyncio.sleep(2 * GRACE / SECOND)
        assert exchanges[1].reads == 0
        for exchange in exchanges:
            exchange.leave()
        await settle()

    run(main())


@pytest.mark.parametrize("left", [GRACE // 4, GRACE - 1, GRACE, 3 * GRACE])
def test_a_deadline_holds_whether_it_is_shorter_than_childhood_or_not(left: int) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SecondsLoop)
        nursery = Nursery(lambda: loop.now)
        watch, task = under_watch(Exchange(), sleeps)
        watch.deadline = left
        nursery.add(0, watch)
        assert (watch.timer is not None) == (left < GRACE)
        assert await task
        assert watch.expired
        assert loop.now == pytest.approx(left, abs=1000)

    run(main())


def test_a_nursery_outlives_the_loop_it_was_used_on() -> None:
    nursery = Nursery(lambda: 0)

    async def main() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SecondsLoop)
        exchange = Exchange()
        watch, task = under_watch(exchange, sleeps)
        nursery.add(loop.now, watch)
        if nursery_is_new := not seen:
            task.cancel()  # the loop ends before the timer does
            await settle()
        else:
            await asyncio.sleep(2 * GRACE / SECOND)
            exchange.leave()
            await task
        return -1 if nursery_is_new else exchange.reads

    seen: list[int] = []
    seen.append(run(main()))
    assert run(main()) == 2
