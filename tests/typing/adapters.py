"""The adapters as a user's type checker sees them. Nothing here runs: mypy reads it."""

from typing import assert_type

import aiohttp
import httpx
import httpx2
import requests
import stamina
import tenacity

import tidegate
from tidegate.adapters import httpx as httpx_adapter
from tidegate.adapters import httpx2 as httpx2_adapter
from tidegate.adapters.aiohttp import Middleware
from tidegate.adapters.requests import Adapter
from tidegate.adapters.stamina import retry_within
from tidegate.adapters.tenacity import retry_if_worth_it, stop_when_spent, wait_as_asked
from tidegate.adapters.urllib3 import PoolManager

licences = tidegate.guard("licences")


def clients() -> None:
    """Each goes where its client expects one."""
    httpx2.AsyncClient(transport=httpx2_adapter.AsyncTransport(licences))
    httpx2.Client(transport=httpx2_adapter.Transport(tidegate.guard))
    httpx.AsyncClient(transport=httpx_adapter.AsyncTransport(connections=10))
    httpx.Client(transport=httpx_adapter.Transport(wrapped=httpx.HTTPTransport()))
    aiohttp.ClientSession(middlewares=(Middleware(idempotent=True),))
    requests.Session().mount("https://", Adapter(licences, pool_maxsize=10))
    PoolManager(licences, idempotent=True, num_pools=5).request("GET", "https://a.example")
    Adapter(licences, idempotent="yes")  # type: ignore[arg-type]
    httpx2_adapter.AsyncTransport("licences")  # type: ignore[arg-type]


@tenacity.retry(
    retry=retry_if_worth_it(licences) | tenacity.retry_if_result(lambda price: price == 0),
    stop=tenacity.stop_after_attempt(4) | stop_when_spent(licences),
    wait=wait_as_asked(tenacity.wait_random_exponential()),
)
@licences.options(attempts=1)
def by_tenacity(item: str) -> int:
    """What it costs."""
    return len(item)


@stamina.retry(on=retry_within(licences))
@licences.options(attempts=1)
async def by_stamina(item: str) -> int:
    """The same."""
    return len(item)


async def what_comes_out() -> None:
    """Of the loops: what the function gives."""
    assert_type(by_tenacity("bread"), int)
    assert_type(await by_stamina("bread"), int)
