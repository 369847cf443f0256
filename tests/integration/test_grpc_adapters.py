"""The interceptors of gRPC, for threads and for asyncio, against a real server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_service import CHAT, GET, LIST, SUM, Service, eventually, grpc_service

import tidegate
from tidegate.adapters import grpc as blocking
from tidegate.adapters import grpc_aio
from tidegate.runtime import registry
from tidegate.settings.policies import Breaker, Budget

pytestmark = pytest.mark.slow  # a server is started for each test, and time is real

Code = grpc.StatusCode
# gRPC rounds a timeout up on the wire, so what remains is a little more than it was.
QUICK: dict[str, Any] = {"backoff": 0.001, "timeout": 5.0, "breaker": None, "limit": None}

Ask = Callable[..., Any]


@pytest.fixture
def service() -> Iterator[Service]:
    with grpc_service() as running:
        yield running
    registry._forget()


def ask_blocking(target: str, method: str = GET, timeout: Any = None, **keywords: Any) -> Any:
    with grpc.insecure_channel(target) as plain:
        channel = grpc.intercept_channel(plain, blocking.ClientInterceptor(**keywords))
        if method == LIST:
            return list(channel.unary_stream(LIST)(b"", timeout=timeout))
        if method == SUM:
            return channel.stream_unary(SUM)(iter([b"a", b"b"]), timeout=timeout)
        if method == CHAT:
            return list(channel.stream_stream(CHAT)(iter([b"a", b"b"]), timeout=timeout))
        return channel.unary_unary(method)(b"", timeout=timeout)


def ask_async(target: str, method: str = GET, timeout: Any = None, **keywords: Any) -> Any:
    async def words() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"

    async def main() -> Any:
        interceptors = grpc_aio.client_interceptors(**keywords)
        async with aio.insecure_channel(target, interceptors=interceptors) as channel:
            if method == LIST:
                return [word async for word in channel.unary_stream(LIST)(b"", timeout=timeout)]
            if method == SUM:
                return await channel.stream_unary(SUM)(words(), timeout=timeout)
            if method == CHAT:
                call = channel.stream_stream(CHAT)(words(), timeout=timeout)
                return [word async for word in call]
            return await channel.unary_unary(method)(b"", timeout=timeout)

    return asyncio.run(main())


@pytest.fixture(params=[ask_blocking, ask_async], ids=["blocking", "async"])
def ask(request: pytest.FixtureRequest) -> Ask:
    return request.param  # type: ignore[no-any-return]


def counted(name: str = "shop.Prices") -> Any:
    return tidegate.snapshots()[name]


def test_what_is_named_idempotent_is_repeated(service: Service, ask: Ask) -> None:
    tidegate.guard("shop.Prices", **QUICK, budget=Budget(ratio=10.0))
    service.will(Code.UNAVAILABLE, b"fine", Code.INTERNAL, b"fine")
    assert ask(service.target, idempotent={GET}) == b"fine"
    assert ask(service.target, idempotent=True) == b"fine"
    assert (len(service.saw), counted().retries) == (4, 2)


def test_nothing_else_is(service: Service, ask: Ask) -> None:
    """A status does not say whether the work was done."""
    tidegate.guard("shop.Prices", **QUICK)
    service.will(Code.UNAVAILABLE)
    with pytest.raises(grpc.RpcError) as error:
        ask(service.target, idempotent={LIST})
    assert error.value.code() is Code.UNAVAILABLE  # type: ignore[attr-defined]
    assert len(service.saw) == 1
    assert counted().outcomes["overloaded"] == 1


@pytest.mark.parametrize("code", [Code.NOT_FOUND, Code.INVALID_ARGUMENT, Code.UNAUTHENTICATED])
def test_what_is_wrong_with_the_request_is_an_answer(
    service: Service, ask: Ask, code: grpc.StatusCode
) -> None:
    tidegate.guard("shop.Prices", **QUICK)
    service.will(code)
    with pytest.raises(grpc.RpcError):
        ask(service.target, idempotent=True)
    assert (counted().ok, len(service.saw)) == (1, 1)


def test_a_server_may_say_when_to_come_again_and_never(service: Service, ask: Ask) -> None:
    tidegate.guard("shop.Prices", **QUICK)
    service.will(Code.RESOURCE_EXHAUSTED)
    service.pushback = "-1"
    with pytest.raises(grpc.RpcError):
        ask(service.target, idempotent=True)
    assert len(service.saw) == 1
    service.will(Code.RESOURCE_EXHAUSTED)
    service.pushback = "5"
    assert ask(service.target, idempotent=True) == b"fine"


def test_the_deadline_goes_with_the_call(service: Service, ask: Ask) -> None:
    tidegate.guard("shop.Prices", **QUICK, propagate=True, budget=Budget(ratio=10.0))
    service.will(Code.UNAVAILABLE)
    with tidegate.deadline(2.0), tidegate.criticality("sheddable"):
        ask(service.target, idempotent=True)
    (first, said), (second, again) = service.saw
    assert first is not None
    assert second is not None
    assert 0 < first < 2.5
    assert 0 < second < 2.5
    assert said["tidegate-criticality"] == again["tidegate-criticality"] == "sheddable"
    assert "tidegate-retry-depth" not in said
    assert again["tidegate-retry-depth"] == "1"
    assert "tidegate-remaining-ms" not in said


@pytest.mark.parametrize("method", [GET, LIST, SUM, CHAT])
def test_the_deadline_ends_every_kind_of_call(service: Service, ask: Ask, method: str) -> None:
    tidegate.guard("shop.Prices", **QUICK)
    service.will(30.0)
    with tidegate.deadline(0.2), pytest.raises((grpc.RpcError, tidegate.DeadlineExceeded)):
        ask(service.target, method)
    assert eventually(lambda: counted().pending == 0)
    seen = counted()
    assert seen.failed + seen.rejected == 1, "a busy machine may not even send it"


def test_an_attempt_that_is_too_slow(service: Service, ask: Ask) -> None:
    tidegate.guard("shop.Prices", **(QUICK | {"timeout": 0.1}))
    service.will(30.0)
    with pytest.raises(tidegate.AttemptTimeout):
        ask(service.target)
    assert counted().outcomes["timeout"] == 1


def test_the_user_s_own_timeout_stays_their_own(service: Service, ask: Ask) -> None:
    tidegate.guard("shop.Prices", **QUICK)
    service.will(30.0)
    with pytest.raises(grpc.RpcError) as error:
        ask(service.target, timeout=0.1)
    assert error.value.code() is Code.DEADLINE_EXCEEDED  # type: ignore[attr-defined]
    assert counted().outcomes["timeout"] == 1


def test_streams_pass_and_are_counted_when_they_close(service: Service, ask: Ask) -> None:
    tidegate.guard("shop.Prices", **(QUICK | {"timeout": 0.05}))
    service.will(0.2, b"!", b"?", b".")
    assert ask(service.target, LIST) == [b"first", b"late"], "no timeout of an attempt"
    assert eventually(lambda: counted().ok == 1)
    registry._forget()
    tidegate.guard("shop.Prices", **QUICK)
    assert ask(service.target, SUM) == b"ab!"
    assert ask(service.target, CHAT) == [b"a?", b"b."]
    assert eventually(lambda: counted().ok == 2)
    assert counted().pending == 0


def test_a_stream_that_breaks_is_a_failure(service: Service, ask: Ask) -> None:
    tidegate.guard("shop.Prices", **QUICK)
    service.will(Code.INTERNAL)
    with pytest.raises(grpc.RpcError):
        ask(service.target, LIST)
    assert eventually(lambda: counted().outcomes["failure"] == 1)


def test_an_open_circuit_sends_nothing(service: Service, ask: Ask) -> None:
    tidegate.guard("shop.Prices", **(QUICK | {"breaker": Breaker(volume=1)}))
    service.will(Code.INTERNAL)
    with pytest.raises(grpc.RpcError):
        ask(service.target)
    for method in (GET, LIST, SUM, CHAT):
        with pytest.raises(tidegate.CircuitOpen):
            ask(service.target, method)
    assert len(service.saw) == 1


def test_a_fallback_answers(service: Service, ask: Ask) -> None:
    service.will(Code.INTERNAL)
    guard = tidegate.guard("helped", **QUICK, fallback=lambda request: b"stale")
    assert ask(service.target, guard=guard) == b"stale"
    assert counted("helped").fallback == 1


def test_a_future_is_done_when_it_returns(service: Service) -> None:
    with grpc.insecure_channel(service.target) as plain:
        channel = grpc.intercept_channel(plain, blocking.ClientInterceptor())
        assert channel.unary_unary(GET).future(b"").result() == b"fine"
        response, call = channel.unary_unary(GET).with_call(b"")
        assert (response, call.code()) == (b"fine", Code.OK)


def test_one_method_is_no_set_of_methods() -> None:
    with pytest.raises(tidegate.SettingsError, match="a set of methods"):
        blocking.ClientInterceptor(idempotent=GET)


# Two hops: what comes in is handed on.


class Relay(Service):
    """A service whose work is to ask another one, under a guard."""

    def __init__(self, behind: str) -> None:
        super().__init__()
        self.behind = behind

    def step(self, context: Any) -> bytes:
        return ask_blocking(self.behind)  # type: ignore[no-any-return]


@pytest.mark.parametrize("method", [GET, LIST, SUM])
def test_a_deadline_reaches_the_second_hop(service: Service, method: str) -> None:
    tidegate.guard("shop.Prices", **(QUICK | {"timeout": 60.0}), propagate=True)
    with (
        grpc_service(
            blocking.ServerInterceptor(trusted=True), service=Relay(service.target)
        ) as relay,
        tidegate.deadline(3.0),
        tidegate.criticality("critical"),
    ):
        ask_blocking(relay.target, method)
    remaining, said = service.saw[0]
    assert remaining is not None
    assert remaining < 3.5
    assert said["tidegate-criticality"] == "critical"


@pytest.mark.parametrize("trusted", [True, False])
def test_asyncio_hands_on_what_it_is_told_by_whom_it_trusts(
    service: Service, trusted: bool
) -> None:
    heard: list[tuple[float | None, Any]] = []

    async def get(request: bytes, context: Any) -> bytes:
        heard.append((tidegate.remaining(), tidegate.runtime.context.ambient().said))
        return b""

    async def list_(request: bytes, context: Any) -> AsyncIterator[bytes]:
        yield await get(request, context)

    def blocks(request: bytes, context: Any) -> bytes:
        heard.append((tidegate.remaining(), tidegate.runtime.context.ambient().said))
        return b""

    async def main() -> None:
        handlers = {
            "Get": grpc.unary_unary_rpc_method_handler(get),
            "List": grpc.unary_stream_rpc_method_handler(list_),
            "Block": grpc.unary_unary_rpc_method_handler(blocks),
        }
        server = aio.server(interceptors=[grpc_aio.ServerInterceptor(trusted=trusted)])
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("shop.Prices", handlers),)
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        said = (("tidegate-criticality", "critical"),)
        async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            for method in (GET, "/shop.Prices/Block"):
                await channel.unary_unary(method)(b"", timeout=5.0, metadata=said)
            async for _ in channel.unary_stream(LIST)(b"", timeout=5.0, metadata=said):
                pass
            await channel.unary_unary(GET)(b"")
        await server.stop(0)

    asyncio.run(main())
    *timed, endless = heard
    assert len(timed) == 3
    for remaining, criticality in timed:
        assert remaining is not None
        assert 0 < remaining < 5.5
        assert criticality == (0 if trusted else None)
    assert endless == (None, None)
