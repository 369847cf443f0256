"""The examples of clients run, and do what their first lines say."""

import asyncio
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from grpc_service import grpc_service
from scripted_server import Say, ScriptedServer, scripted_server

import tidegate
from tidegate.runtime import registry

pytestmark = pytest.mark.slow  # a server is started for each test, and time is real

EXAMPLES = Path(__file__).parents[2] / "examples" / "clients"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    registry._forget()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


def test_httpx2(server: ScriptedServer) -> None:
    server.will(500)
    assert asyncio.run(load("with_httpx2").main(server.url)) == "200 200"
    paths = [asked.path for asked in server.asked]
    assert paths == ["/shelf", "/shelf", "/orders"]
    assert int(server.asked[0].headers["tidegate-remaining-ms"]) <= 1000


def test_httpx(server: ScriptedServer) -> None:
    example = load("with_httpx")
    assert asyncio.run(example.main(server.url)) == "200"
    server.will(Say(after=30.0))
    assert asyncio.run(example.main(server.url)).startswith("later")


def test_aiohttp(server: ScriptedServer) -> None:
    server.will(200, 500)
    assert asyncio.run(load("with_aiohttp").main(server.url)) == "200 200"
    assert [asked.path for asked in server.asked] == ["/recommended", "/search", "/search"]


def test_requests(server: ScriptedServer) -> None:
    server.will(200, Say(after=5.0))
    assert load("with_requests").main(server.url) == "200, no report today"


def test_grpc() -> None:
    with grpc_service() as service:
        assert load("with_grpc").main(service.target) == "fine fine"
        assert all(remaining is not None for remaining, _ in service.saw)


def test_tenacity_and_stamina() -> None:
    calls, _, sent, _ = load("with_tenacity").main().split()
    assert (calls, tidegate.snapshots()["licences"].attempts) == ("200", int(sent))
    assert int(sent) < 200 * 1.12


def test_every_example_is_tried() -> None:
    tried = Path(__file__).read_text("utf-8")
    assert all(f'load("{example.stem}")' in tried for example in EXAMPLES.glob("*.py"))
