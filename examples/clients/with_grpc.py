"""Guard the channel of a gRPC client, with threads and with asyncio.

python examples/clients/with_grpc.py 127.0.0.1:50051
"""

import asyncio
import sys

import grpc

import tidegate
from tidegate.adapters.grpc import ClientInterceptor
from tidegate.adapters.grpc_aio import client_interceptors

GET = "/shop.Prices/Get"


def blocking(target: str) -> bytes:
    """A generated stub takes the guarded channel as it takes any other."""
    with grpc.insecure_channel(target) as plain:
        channel = grpc.intercept_channel(plain, ClientInterceptor(idempotent={GET}))
        with tidegate.deadline(1.0):  # goes with the call, as its timeout
            price: bytes = channel.unary_unary(GET)(b"bread")
            return price


async def not_blocking(target: str) -> bytes:
    """The same guard, of the service `shop.Prices`, by other interceptors."""
    interceptors = client_interceptors(idempotent={GET})
    async with grpc.aio.insecure_channel(target, interceptors=interceptors) as channel:
        with tidegate.deadline(1.0):
            price: bytes = await channel.unary_unary(GET)(b"bread")
            return price


def main(target: str) -> str:
    """Ask in both ways."""
    return f"{blocking(target).decode()} {asyncio.run(not_blocking(target)).decode()}"


if __name__ == "__main__":
    print(main(sys.argv[1]))
