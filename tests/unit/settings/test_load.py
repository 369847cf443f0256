"""The way from a file to a System, with and without open numbers."""

from pathlib import Path

import pytest

from tidegate.errors import SettingsError
from tidegate.settings.graph import holding_times, offered
from tidegate.settings.load import Draft, load, loads
from tidegate.settings.policies import Queue
from tidegate.settings.system import (
    Call,
    Client,
    Journey,
    Objective,
    Service,
    System,
    Time,
    Trigger,
)
from tidegate.units import MILLISECOND, MINUTE, SECOND

MARKETPLACE = Path(__file__).parent / "data" / "marketplace.yaml"
OPEN = """
clients:
  web: {rate: , calls: {shop: {timeout: }}}
  app: {users: 100, think: 1s..2s, calls: {app_shop: shop}}
services:
  shop: {time: , workers: , queue: , calls: {db: {per_request: 10..40%}}}
  db: {time: 10ms, workers: 40}
"""


def test_the_marketplace_reads_as_it_is_printed() -> None:
    assert load(MARKETPLACE).system() == System(
        clients={
            "readers": Client(rate=500.0, calls={"pages": Call(to="tracker", timeout=30 * SECOND)}),
            "shoppers": Client(rate=600.0, calls={"shop": Call(to="edge", timeout=30 * SECOND)}),
        },
        services={
            "tracker": Service(
                workers=1000,
                time=Time(mean=200 * MILLISECOND),
                queue=Queue(limit=100),
                calls={
                    "licences": Call(
                        to="edge",
                        per_request=0.3,
                        timeout=10 * SECOND,
                        attempts=2,
                        retry_on=("timeout",),
                    )
                },
            ),
            "edge": Service(
                blocking=False,
                calls={
                    "market": Call(
                        to="marketplace", timeout=5 * SECOND, attempts=3, retry_on=("timeout",)
                    )
                },
            ),
            "marketplace": Service(
                replicas=4,
                workers=25,
                time=Time(mean=50 * MILLISECOND),
                address="http://127.0.0.1:9000",
            ),
        },
        triggers={"migration": Trigger(service="marketplace", slowdown=4.0, for_=10 * MINUTE)},
        journeys={"open a page": Journey(client="readers")},
        objective=Objective(goodput=0.95, within=60 * SECOND),
    )


def test_a_closed_file_has_no_unknowns_and_one_system() -> None:
    draft = load(str(MARKETPLACE))
    assert draft.unknowns == ()
    assert draft.system({}) is draft.system()


def test_every_key_can_be_found_again() -> None:
    draft = load(MARKETPLACE)
    assert draft.where(("services", "tracker", "calls", "licences", "timeout")).endswith(
        "marketplace.yaml:21:9"
    )
    assert draft.where(("triggers", "migration", "for_")).endswith(":35:51")
    assert draft.where(("services", "edge", "workers")).endswith(":24:3"), "the deepest key"
    assert draft.where(()).endswith(":1:1")


def test_open_numbers_are_listed_in_the_order_of_the_file() -> None:
    draft = loads(OPEN, "open.yaml")
    assert [(".".join(u.path), u.kind, u.assumed) for u in draft.unknowns] == [
        ("clients.web.rate", "utilisation", True),
        ("clients.web.calls.shop.timeout", "duration", True),
        ("clients.app.think", "duration", False),
        ("services.shop.time", "duration", True),
        ("services.shop.workers", "utilisation", True),
        ("services.shop.queue", "count", True),
        ("services.shop.calls.db.per_request", "per_request", False),
    ]
    assert draft.unknowns[2].where == "open.yaml:4:28"


def test_each_open_number_takes_the_value_given_and_the_others_their_middle() -> None:
    draft = loads(OPEN)
    system = draft.system({("services", "shop", "time"): 7 * MILLISECOND})
    assert system.services["shop"].time == Time(mean=7 * MILLISECOND)
    assert system.services["shop"].queue == Queue(limit=500)
    assert system.clients["app"].think == Time(mean=round(SECOND * 2**0.5))
    assert system.services["shop"].calls["db"].per_request == pytest.approx(0.2)


def test_drawn_busyness_is_what_the_graph_then_offers() -> None:
    draft = loads(OPEN)
    busy = {("clients", "web", "rate"): 0.8, ("services", "shop", "workers"): 0.5}
    system = draft.system({**busy, ("services", "shop", "time"): 100 * MILLISECOND})
    load, held = offered(system), holding_times(system)
    assert load["db"] * held["db"] / SECOND / 40 == pytest.approx(0.8)
    shop = load["shop"] * held["shop"] / SECOND / (system.services["shop"].workers or 0)
    assert shop == pytest.approx(0.5, rel=0.01)  # workers are whole


def test_a_value_for_a_number_that_is_not_open_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"services.db.workers: the file does not leave this"):
        loads(OPEN).system({("services", "db", "workers"): 3})


def test_a_value_that_the_records_refuse_is_refused_at_its_place() -> None:
    with pytest.raises(SettingsError) as caught:
        loads(OPEN).system({("clients", "web", "calls", "shop", "timeout"): -5})
    assert str(caught.value) == (
        "<string>:3:32: clients.web.calls.shop.timeout:"
        " expected a duration above zero and at most 24h, found -5ns"
    )


def test_bytes_are_read_as_a_file_is() -> None:
    assert loads(MARKETPLACE.read_bytes()).system() == load(MARKETPLACE).system()


def test_an_error_of_the_file_names_it(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("clients: {}\nservices: {}\n")
    with pytest.raises(SettingsError) as caught:
        load(bad)
    assert caught.value.where == f"{bad}:1:1"


def fifty() -> str:
    """Fifty services in five layers and two hundred calls."""
    lines = ["clients:", "  all:", "    rate: 100/s", "    calls:"]
    lines += [f"      in{n}: {{to: s{n}, timeout: 5s}}" for n in range(10)]
    lines.append("services:")
    for n in range(50):
        lines += [f"  s{n}:", f"    workers: {n + 1}", "    time: 5ms", "    queue: 100"]
        if n < 40:
            lines.append("    calls:")
            lines += [
                f"      c{n}_{m}: {{to: s{(n // 10 + 1) * 10 + (n + m) % 10}, timeout: 1s,"
                " attempts: 3, budget: 10%, breaker: 50%}}"[:-1]
                for m in range(5)
            ]
    return "\n".join(lines)


def test_a_large_system_reads() -> None:
    draft: Draft = loads(fifty())
    system = draft.system()
    assert len(system.services) == 50
    assert sum(len(service.calls) for service in system.services.values()) == 200
