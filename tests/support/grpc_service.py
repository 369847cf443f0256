"""A real gRPC service on the loopback, without messages of a schema: bytes in, bytes out.

`/shop.Prices/Get` and its streaming siblings do what the script says: a status, or an answer.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc

GET = "/shop.Prices/Get"
LIST = "/shop.Prices/List"
SUM = "/shop.Prices/Sum"
CHAT = "/shop.Prices/Chat"


class Service:
    """`script` holds status codes, seconds to take, or bytes; `saw` what each call came with."""

    def __init__(self) -> None:
        self.script: deque[Any] = deque()
        self.saw: list[tuple[float | None, dict[str, str]]] = []
        self.target = ""
        self.pushback = ""
        self.gone = threading.Event()

    def will(self, *steps: Any) -> None:
        self.script.extend(steps)

    def step(self, context: Any) -> bytes:
        metadata = {pair[0]: pair[1] for pair in context.invocation_metadata()}
        self.saw.append((context.time_remaining(), metadata))
        step = self.script.popleft() if self.script else b"fine"
        if isinstance(step, float):
            self.gone.wait(step)
            step = b"late"
        if isinstance(step, grpc.StatusCode):
            if self.pushback:
                context.set_trailing_metadata((("grpc-retry-pushback-ms", self.pushback),))
            context.abort(step, "as the script says")
        assert isinstance(step, bytes)
        return step

    def get(self, request: bytes, context: Any) -> bytes:
        return self.step(context)

    def list(self, request: bytes, context: Any) -> Iterator[bytes]:
        yield b"first"
        yield self.step(context)

    def sum(self, requests: Iterator[bytes], context: Any) -> bytes:
        return b"".join(requests) + self.step(context)

    def chat(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        for request in requests:
            yield request + self.step(context)

    def handlers(self) -> Any:
        return grpc.method_handlers_generic_handler(
            "shop.Prices",
            {
                "Get": grpc.unary_unary_rpc_method_handler(self.get),
                "List": grpc.unary_stream_rpc_method_handler(self.list),
                "Sum": grpc.stream_unary_rpc_method_handler(self.sum),
                "Chat": grpc.stream_stream_rpc_method_handler(self.chat),
            },
        )


@contextmanager
def grpc_service(*interceptors: Any, service: Service | None = None) -> Iterator[Service]:
    service = Service() if service is None else service
    with ThreadPoolExecutor(8) as pool:
        server = grpc.server(pool, interceptors=interceptors)
        server.add_generic_rpc_handlers((service.handlers(),))
        service.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        try:
            yield service
        finally:
            service.gone.set()
            server.stop(0).wait(10)


def eventually(true: Any) -> bool:
    """Whether it comes true: gRPC tells of an end from a thread of its own."""
    for _ in range(500):
        if true():
            return True
        time.sleep(0.01)
    return False
