"""Guard a session of aiohttp by a client middleware.

python examples/clients/with_aiohttp.py http://127.0.0.1:8000
"""

import asyncio
import sys

import aiohttp

import tidegate
from tidegate.adapters.aiohttp import Middleware


async def main(shop: str) -> str:
    """Recommendations matter less than orders, and a shop that is short may drop them."""
    async with aiohttp.ClientSession(shop, middlewares=(Middleware(),)) as session:
        with tidegate.criticality("sheddable"):
            async with session.get("/recommended") as recommended:
                status = recommended.status
        async with session.post(
            "/search",
            json={"words": ["bread"]},
            middlewares=(Middleware(idempotent=True),),  # a POST that only reads
        ) as found:
            return f"{status} {found.status}"


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1])))
