"""Guard a client of httpx 0.28 without losing its connections to cancelled requests.

python examples/clients/with_httpx.py http://127.0.0.1:8000
"""

import asyncio
import sys

import httpx

import tidegate
from tidegate.adapters.httpx import AsyncTransport


async def main(shop: str) -> str:
    """Ask with little patience: what is cancelled leaves its connection in order."""
    async with httpx.AsyncClient(transport=AsyncTransport(connections=10)) as client:
        try:
            async with asyncio.timeout(2.0):
                shelf = await client.get(f"{shop}/shelf")
        except (TimeoutError, tidegate.Rejected, httpx.HTTPError) as error:
            return f"later: {error}"
        return str(shelf.status_code)


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1])))
