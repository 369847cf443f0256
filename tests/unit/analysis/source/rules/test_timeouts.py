"""Which calls wait for ever, and which are only nearly so written."""

import pytest
from source_code import broken, hits

HEAD = """
import urllib3
import requests, httpx, httpx2, aiohttp, urllib.request, smtplib, socket, psycopg2, redis, openai
import http.client, sqlalchemy, asyncio
from functools import partial
from pay import pay_pb2_grpc
"""


@pytest.mark.parametrize(
    "code",
    [
        "requests.get(u)",
        "requests.get(u, timeout=None)",
        "requests.request('GET', u)",
        "s = requests.Session()\ns.post(u)",
        "with requests.Session() as s:\n    s.get(u)",
        "urllib3.request('GET', u)",
        "p = urllib3.PoolManager()\np.request('GET', u)",
        "urllib.request.urlopen(u)",
        "urllib.request.urlopen(u, None)",
        "smtplib.SMTP('mail')",
        "socket.create_connection(('a', 1))",
        "http.client.HTTPSConnection('a')",
        "httpx.get(u, timeout=None)",
        "httpx.Client(timeout=None)",
        "httpx.AsyncClient(timeout=httpx.Timeout(None))",
        "c = httpx2.Client()\nc.get(u, timeout=None)",
        "aiohttp.ClientTimeout(total=None)",
        "aiohttp.ClientTimeout(total=None, sock_connect=3)",
        "redis.Redis(socket_timeout=None)",
        "sqlalchemy.create_engine(u, pool_timeout=None)",
        "stub = pay_pb2_grpc.PayStub(channel)\nstub.Charge(request)",
        "psycopg2.connect('dbname=a')",
        "psycopg2.connect(host='a')",
    ],
)
def test_calls_that_wait_for_ever(code: str) -> None:
    assert broken(HEAD + code) == ["no-timeout"]


@pytest.mark.parametrize(
    "code",
    [
        "requests.get(u, timeout=3)",
        "requests.get(u, timeout=limit)",
        "requests.get(u, **options)",
        "partial(requests.get, timeout=3)(u)",
        "s = requests.Session()\ns.mount('https://', WithTimeout())\ns.get(u)",
        "def f(s: requests.Session):\n    s.get(u)",
        "s = requests.Session()\ns.request = partial(s.request, timeout=3)\ns.get(u)",
        "urllib3.request('GET', u, timeout=3)",
        "p = urllib3.PoolManager(timeout=3)\np.request('GET', u)",
        "urllib.request.urlopen(u, None, 3)",
        "urllib.request.urlopen('file:///etc/hosts')",
        "smtplib.SMTP('mail', timeout=3)",
        "httpx.get(u)",
        "httpx.Client()",
        "httpx.Client(timeout=httpx.Timeout(None, connect=3))",
        "LIMIT = None\naiohttp.ClientTimeout(total=LIMIT)",
        "aiohttp.ClientTimeout(total=None, sock_read=30)",
        "aiohttp.ClientTimeout(total=30)",
        "aiohttp.ClientTimeout(connect=3)",
        "redis.Redis()",
        "stub = pay_pb2_grpc.PayStub(channel)\nstub.Charge(request, timeout=3)",
        "stub = pay_pb2_grpc.PayStub(channel)\nstub.Charge(request, 3)",
        "psycopg2.connect(dsn)",
        "psycopg2.connect('dbname=a connect_timeout=3')",
        "psycopg2.connect(host='a', connect_timeout=3)",
        "psycopg2.connect(**options)",
    ],
)
def test_calls_that_do_not_or_do_not_show_it(code: str) -> None:
    assert broken(HEAD + code) == []


def test_a_database_is_only_a_note() -> None:
    assert [h.severity for h in hits(HEAD + "psycopg2.connect(host='a')")] == ["note"]


KEPT = """
class A:
    def __init__(self):
        self.c = httpx.AsyncClient()
    async def f(self):
        await asyncio.wait_for(self.c.post(u), 1)
"""
CANCEL = "    async with asyncio.timeout(1):\n        await {}.get(u)\n"


@pytest.mark.parametrize(
    ("code", "rules"),
    [
        ("async def f(c: httpx.AsyncClient):\n" + CANCEL.format("c"), ["httpx-cancelled"]),
        ("async def f(c: httpx2.AsyncClient):\n" + CANCEL.format("c"), []),
        ("c = httpx.AsyncClient()\nasync def f():\n" + CANCEL.format("c"), ["httpx-cancelled"]),
        ("async def f():\n    c = httpx.AsyncClient()\n" + CANCEL.format("c"), []),
        ("async def f(c: httpx.AsyncClient):\n    await c.get(u)\n", []),
        (
            "async def f(c: httpx.AsyncClient):\n    await asyncio.wait_for(c.get(u), 1)\n",
            ["httpx-cancelled"],
        ),
        (
            KEPT,
            ["httpx-cancelled"],
        ),
    ],
)
def test_cancelled_requests(code: str, rules: list[str]) -> None:
    assert broken(HEAD + code) == rules


@pytest.mark.parametrize(
    ("code", "rules"),
    [
        ("openai.OpenAI()", ["sdk-defaults"]),
        ("openai.AsyncOpenAI(api_key=k)", ["sdk-defaults"]),
        ("openai.OpenAI(timeout=9)", []),
        ("openai.OpenAI(max_retries=0)", []),
        ("openai.OpenAI(http_client=c)", []),
        ("openai.OpenAI(**options)", []),
    ],
)
def test_defaults_of_sdks(code: str, rules: list[str]) -> None:
    assert broken(HEAD + code) == rules
