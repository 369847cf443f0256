"""Every door shows itself for as long as it lives, and its figures add up in every exporter."""

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest

from tidegate.core.outcome import FAILURE, SUCCESS, Reason
from tidegate.core.shares import DEFAULT
from tidegate.errors import SettingsError
from tidegate.runtime import doors
from tidegate.runtime.metrics import METRICS, SOURCES
from tidegate.runtime.opentelemetry import instrument
from tidegate.runtime.prometheus import register
from tidegate.server import asgi, wsgi
from tidegate.testing import instant, run

SCOPE = {"type": "http", "method": "POST", "path": "/", "headers": [], "client": None}


@pytest.fixture(autouse=True)
def clock() -> Iterator[Any]:
    doors._forget()
    with instant() as still:
        yield still
    doors._forget()


async def app(scope: Any, receive: Any, send: Any) -> None:
    """It takes a second, and fails when it is asked to."""
    await asyncio.sleep(1)
    if scope["path"] == "/fail":
        raise RuntimeError("as it was asked to")


def application(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [])
    return [b"ok"]


async def nothing(*_: Any) -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def deaf(_: Any) -> None:
    """Nobody reads the answer."""


def figures(name: str = doors.NAME) -> dict[str, Any]:
    """The figures of one door, by the last part of their names; without a label, one number."""
    found: dict[str, Any] = {}
    for metric in METRICS:
        if metric.of != "server":
            continue
        series = metric.series(SOURCES["server"]())
        values = {value: number for (door, value), number in series.items() if door == name}
        key = metric.name.removeprefix("tidegate.server.")
        found[key] = values if metric.label else values.get("")
    return found


def came(seen: dict[str, Any]) -> int:
    would = sum(seen["would_refuse"].values()) + (seen["would_wait"] or 0)
    refused = sum(seen["refused"].values())
    return int(seen["admitted"] + refused + seen["left"] + seen["waiting"] + would)


def send(shedder: Any, path: str = "/") -> "asyncio.Task[None]":
    return asyncio.get_running_loop().create_task(shedder({**SCOPE, "path": path}, nothing, deaf))


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_door_is_there_for_as_long_as_somebody_holds_it() -> None:
    first, second = asgi.LoadShedder(app, name="a"), wsgi.LoadShedder(application, name="b")
    assert [name for name, _ in doors.snapshots()] == ["a", "b"]
    del first
    gc.collect()
    assert [name for name, _ in doors.snapshots()] == ["b"]
    del second
    gc.collect()
    assert doors._doors == {}


def test_one_that_does_nothing_is_not_shown() -> None:
    off = asgi.LoadShedder(app, mode="off")
    observes = asgi.LoadShedder(app, mode="observe")
    assert [(name, seen.mode) for name, seen in doors.snapshots()] == [("server", "observe")]
    assert off.snapshot().mode == "off"
    del observes


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, 5, None])
@pytest.mark.parametrize("kind", [asgi.LoadShedder, wsgi.LoadShedder])
def test_a_name_fits_on_a_line(kind: Any, name: Any) -> None:
    with pytest.raises(SettingsError, match="name of a shedder"):
        kind(app, name=name)
    assert doors._doors == {}


def test_everybody_who_came_is_in_one_figure() -> None:
    async def main() -> None:
        shedder = asgi.LoadShedder(app, limit=1, queue=1, wait=5, order="fifo", name="api")
        tasks = [send(shedder, "/fail")]
        await settle()
        tasks += [send(shedder) for _ in range(3)]
        await settle()
        seen = figures("api")
        assert (seen["inside"], seen["limit"], seen["waiting"], seen["admitted"]) == (1, 1, 1, 1)
        assert seen["refused"] == {"limit": 2}
        assert sum(seen["outcomes"].values()) == 0
        assert came(seen) == 4
        await asyncio.sleep(1.5)
        going = send(shedder)
        await settle()
        going.cancel()
        await asyncio.gather(*tasks, going, return_exceptions=True)
        seen = figures("api")
        assert (seen["inside"], seen["waiting"], seen["admitted"], seen["left"]) == (0, 0, 2, 1)
        assert seen["outcomes"] == {
            "success": 1,
            "failure": 1,
            "timeout": 0,
            "overloaded": 0,
            "ignored": 0,
        }
        assert came(seen) == 5
        assert seen["would_refuse"] == {}
        assert seen["would_wait"] is None

    run(main())


def test_in_observe_mode_nobody_is_refused_and_it_says_who_would_be() -> None:
    async def main() -> None:
        shedder = asgi.LoadShedder(app, limit=1, queue=0, mode="observe", name="full")
        patient = asgi.LoadShedder(app, limit=1, queue=9, mode="observe", name="waits")
        await asyncio.gather(*(send(each) for each in (shedder, patient) for _ in range(3)))
        assert figures("full")["would_refuse"] == {"limit": 2}
        assert figures("waits")["would_wait"] == 2
        for seen in (figures("full"), figures("waits")):
            assert seen["refused"] == {}
            assert (seen["admitted"], seen["left"]) == (1, 0)
            assert came(seen) == 3

    run(main())


def test_rates_of_clients_are_a_reason_and_their_keys_are_nowhere() -> None:
    shedder = wsgi.LoadShedder(application, client=lambda _: "a-key-of-a-client", client_rate=1)
    for _ in range(3):
        shedder({"PATH_INFO": "/"}, lambda *_: None)
    assert figures()["refused"] == {"rate": 2}
    assert figures()["admitted"] == figures()["outcomes"]["success"] == 1
    assert "a-key" not in scrape()


def test_doors_of_one_name_are_one_series() -> None:
    pair = [wsgi.LoadShedder(application, limit=4) for _ in range(2)]
    for shedder in pair:
        shedder({"PATH_INFO": "/"}, lambda *_: None)
    assert (figures()["admitted"], figures()["limit"]) == (2, 8)
    lines = [line for line in scrape().splitlines() if line.startswith("tidegate_server_limit{")]
    assert lines == ['tidegate_server_limit{server="server"} 8.0']


def test_a_counter_does_not_go_back_for_one_who_is_met_half_way_out() -> None:
    shedder = asgi.LoadShedder(app, limit=4)
    admission = shedder._door.admission
    for _ in range(3):
        admission.try_admit(0, DEFAULT)
    assert figures()["admitted"] == 3
    admission._limiter.inflight -= 1  # as a thread sees it between the two steps of `on_done`
    assert (figures()["inside"], figures()["admitted"]) == (2, 3)
    admission._done[SUCCESS] += 1
    assert figures()["admitted"] == 3
    admission.try_admit(0, DEFAULT)
    assert figures()["admitted"] == 4


def scrape() -> str:
    registry = CollectorRegistry()
    register(registry)
    return generate_latest(registry).decode()


def with_a_past() -> list[Any]:
    """Two doors, one of each kind, with one failure and two refusals each."""
    shedders = [asgi.LoadShedder(app, limit=2, queue=0), wsgi.LoadShedder(application, name="w")]
    for shedder in shedders:
        door = shedder._door.admission
        limit = door.snapshot(0).limit
        for _ in range(limit + 2):
            door.try_admit(0, DEFAULT)
        door.on_done(5, 0, FAILURE)
    return shedders


def test_prometheus_shows_every_figure_of_every_door() -> None:
    shedders = with_a_past()
    shown = scrape()
    for name, shedder in zip(("server", "w"), shedders, strict=True):
        limit = shedder.snapshot().door.limit
        assert f'tidegate_server_limit{{server="{name}"}} {limit}.0' in shown
        assert (
            f'tidegate_server_inside{{server="{name}"}} {shedder.snapshot().door.inside}' in shown
        )
        assert f'tidegate_server_refused_total{{reason="limit",server="{name}"}} 2.0' in shown
        assert f'tidegate_server_outcomes_total{{outcome="failure",server="{name}"}} 1.0' in shown
        assert f'tidegate_server_waiting{{server="{name}"}} 0.0' in shown


def test_opentelemetry_shows_every_figure_of_every_door() -> None:
    shedders = with_a_past()
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    instrument(provider)
    try:
        (resource,) = reader.get_metrics_data().resource_metrics
    finally:
        provider.shutdown()
    found = {
        (metric.name, *sorted(point.attributes.items())): point.value
        for metric in resource.scope_metrics[0].metrics
        for point in metric.data.data_points
    }
    for name, shedder in zip(("server", "w"), shedders, strict=True):
        server, seen = ("server", name), shedder.snapshot()
        assert found["tidegate.server.limit", server] == seen.door.limit
        assert found["tidegate.server.admitted", server] == seen.admitted > 0
        assert found["tidegate.server.refused", ("reason", "limit"), server] == 2
        assert found["tidegate.server.outcomes", ("outcome", "failure"), server] == 1
    assert seen.door.refused[Reason.LIMIT] == 2


def test_a_request_does_nothing_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shedder = wsgi.LoadShedder(application)
    register(CollectorRegistry())

    def asked(*_: Any) -> None:
        raise AssertionError("an exporter ran")

    monkeypatch.setattr("tidegate.server.door.Door.snapshot", asked)
    assert shedder({"PATH_INFO": "/"}, lambda *_: None) == [b"ok"]
