"""The examples of frameworks run: they answer, know their caller, and refuse when they are full.

Time stands still in here, so that what has a rate is refused at its sixth request and not earlier.
"""

import asyncio
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from asgi_client import Exchange

from tidegate.core.shares import DEFAULT
from tidegate.runtime import clock
from tidegate.units import SECOND

EXAMPLES = Path(__file__).parents[2] / "examples" / "servers"


class StandsStill:
    def now(self) -> int:
        return 1_000 * SECOND


@pytest.fixture(autouse=True)
def no_time_passes() -> Iterator[None]:
    before = clock.use(StandsStill())  # type: ignore[arg-type]
    yield
    clock.use(before)


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Django finds its URLs by the module's name
    spec.loader.exec_module(module)
    return module


def asked(app: Any, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    async def main() -> Exchange:
        exchange = Exchange(
            path, method, {key.replace("_", "-"): value for key, value in headers.items()}
        )
        exchange.scope |= {
            "query_string": b"item=7",
            "http_version": "1.1",
            "scheme": "http",
            "server": ("test", 80),
            "root_path": "",
            "raw_path": path.encode(),
        }
        await exchange.start(app)
        return exchange

    exchange = asyncio.run(main())
    assert exchange.status is not None
    return exchange.status, exchange.body


def asked_wsgi(app: Any, path: str) -> tuple[int, bytes]:
    environ: dict[str, Any] = {"PATH_INFO": path, "REMOTE_ADDR": "127.0.0.1"}
    setup_testing_defaults(environ)
    statuses: list[str] = []
    pieces = app(environ, lambda status, headers, exc_info=None: statuses.append(status))
    body = b"".join(pieces)
    if hasattr(pieces, "close"):
        pieces.close()
    return int(statuses[0][:3]), body


def fill(shedder: Any, requests: int) -> None:
    for _ in range(requests):
        shedder._door.admission.try_admit(clock.current().now(), DEFAULT)


def test_starlette() -> None:
    app = load("starlette_app").app
    said = {"Tidegate_Remaining_Ms": "1500", "Tidegate_Retry_Depth": "2"}
    status, body = asked(app, "/shop", **said)
    assert status == 200
    assert json.loads(body) == {"remaining_s": 1.5, "retries_above": 2}
    fill(app, 140)
    assert asked(app, "/shop")[0] == 503
    assert asked(app, "/healthz") == (200, b"alive")


def test_fastapi() -> None:
    app = load("fastapi_app").app
    assert json.loads(asked(app, "/items/3")[1]) == {"item": 3}
    assert json.loads(asked(app, "/orders", "POST")[1]) == {"ordered": 7}
    assert [asked(app, "/items/3")[0] for _ in range(4)] == [200, 200, 200, 429]
    assert asked(app, "/healthz")[0] == 200


def test_flask() -> None:
    app = load("flask_app").app
    ok, body = asked_wsgi(app, "/shop")
    assert (ok, json.loads(body)) == (200, {"goods": ["bread", "wine"]})
    assert app.wsgi_app.snapshot().door.done[0] == 1
    fill(app.wsgi_app, 8)
    assert asked_wsgi(app, "/shop")[0] == 503
    assert asked_wsgi(app, "/healthz")[0] == 200


@pytest.mark.parametrize("kind", ["application", "asgi_application"])
def test_django(kind: str, django: ModuleType) -> None:
    app = getattr(django, kind)
    get: Callable[[Any, str], tuple[int, bytes]] = asked_wsgi if kind == "application" else asked
    status, body = get(app, "/shop")
    assert (status, json.loads(body)) == (200, {"goods": ["bread", "wine"]})
    fill(app, 140)
    assert get(app, "/shop")[0] == 503
    assert get(app, "/healthz")[0] == 200


@pytest.fixture(scope="module")
def django() -> ModuleType:
    return load("django_app")  # a process has one Django
