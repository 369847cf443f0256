"""Guard a client of httpx2: give it a transport, and leave its call sites as they are.

python examples/clients/with_httpx2.py http://127.0.0.1:8000
"""

import asyncio
import sys

import httpx2

import tidegate
from tidegate.adapters.httpx2 import AsyncTransport


async def main(shop: str) -> str:
    """What is on the shelf, within two seconds or not at all."""
    # Our own service behind that origin: it is told how much time remains.
    tidegate.guard(shop, timeout=1.0, propagate=True)
    async with httpx2.AsyncClient(transport=AsyncTransport(), base_url=shop) as client:
        with tidegate.deadline(2.0):
            shelf = await client.get("/shelf")  # idempotent: tried again within the budget
        order = await client.post(
            "/orders",
            json={"item": 7},
            # One key for all tries of one order, so that it may be repeated too.
            headers={"Idempotency-Key": "5f1c"},
        )
    return f"{shelf.status_code} {order.status_code}"


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1])))
