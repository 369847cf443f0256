"""A described system: each part is possible, names lead somewhere, nobody waits for himself."""

import math

import msgspec
import pytest

from tidegate.errors import SettingsError
from tidegate.settings.policies import Adaptive, Backoff, Breaker, Budget, Hedge, Limit
from tidegate.settings.system import (
    Action,
    Call,
    Client,
    Journey,
    Objective,
    Restart,
    Service,
    Settings,
    System,
    Time,
    Trigger,
    default_protection,
    protected,
)
from tidegate.units import DAY, MILLISECOND, MINUTE, SECOND


def shop(**changes: object) -> System:
    """Readers call a shop, which calls a database."""
    parts: dict[str, object] = {
        "clients": {"readers": Client(rate=10, calls={"shop": Call()})},
        "services": {"shop": Service(calls={"rows": Call(to="db")}), "db": Service(workers=1)},
    }
    return System(**(parts | changes))


# Each part on its own.


@pytest.mark.parametrize(
    ("record", "change"),
    [
        (Call(), {"attempts": 0}),
        (Call(), {"attempts": 2.5}),
        (Call(), {"timeout": 0}),
        (Call(), {"timeout": 0.5}),
        (Call(), {"deadline": DAY + 1}),
        (Call(), {"per_request": math.nan}),
        (Call(), {"retry_on": ("timeout", "timeout")}),
        (Call(), {"retry_on": ("timeouts",)}),
        (Call(), {"wait": False}),
        (Call(), {"protect": "all"}),
        (Client(rate=1, calls={"a": Call()}), {"rate": 0.0}),
        (Client(rate=1, calls={"a": Call()}), {"calls": {}}),
        (Client(rate=1, calls={"a": Call()}), {"users": 1}),
        (Client(rate=1, calls={"a": Call()}), {"think": Time(mean=1)}),
        (Client(users=1, think=Time(mean=1), calls={"a": Call()}), {"users": 1.5}),
        (Client(users=1, think=Time(mean=1), calls={"a": Call()}), {"think": None}),
        (Restart(backlog=1), {"backlog": 0}),
        (Service(), {"workers": 1.5}),
        (Service(), {"replicas": 0}),
        (Service(), {"errors": 1.1}),
        (Service(), {"thrash": -0.1}),
        (Service(), {"contention": -1}),
        (Service(), {"balance": "roundrobin"}),
        (Service(), {"abandoned": "drop"}),
        (Time(mean=1), {"mean": 1.5}),
        (Objective(), {"goodput": 0.0}),
        (Objective(), {"within": -1}),
        (Trigger(service="a", freeze=True), {"at": -1}),
        (Trigger(service="a", freeze=True), {"for_": 0}),
        (Trigger(service="a", freeze=True), {"ramp": 2 * SECOND, "for_": SECOND}),
        (Trigger(service="a", freeze=True), {"replicas": 0}),
        (Trigger(service="a", slowdown=2.0), {"slowdown": 0.0}),
        (Trigger(service="a", errors=0.5), {"errors": 1.5}),
        (Trigger(client="a", load=2.0), {"load": -1.0}),
        (Trigger(call="a", per_request=2.0), {"per_request": -1.0}),
        (Action(service="a", capacity=2.0), {"capacity": 0.0}),
        (Action(call="a", attempts=1), {"attempts": 0}),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(record: Settings, change: dict[str, object]) -> None:
    with pytest.raises(SettingsError) as refused:
        msgspec.structs.replace(record, **change)
    keys = {key.removesuffix("_") for key in change} | {"rate"}  # rate or users, one of the two
    assert refused.value.path[0] in keys


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"mean": 1, "constant": 1},
        {"median": 5},
        {"p99": 5},
        {"median": 5, "p99": 4},
        {"median": 0, "p99": 4},
    ],
)
def test_a_time_has_one_form(form: dict[str, int]) -> None:
    with pytest.raises(SettingsError):
        Time(**form)


def test_a_lognormal_goes_through_its_median_and_p99() -> None:
    time = Time(median=50 * MILLISECOND, p99=400 * MILLISECOND)
    assert math.log(50) + 2.3263478740408408 * time.sigma == pytest.approx(math.log(400))
    assert time.average == pytest.approx(50 * MILLISECOND * math.exp(time.sigma**2 / 2))


@pytest.mark.parametrize(
    ("trigger", "says"),
    [
        ({"freeze": True}, "expected one target"),
        ({"service": "a", "client": "b", "freeze": True}, "expected one target"),
        ({"service": "a"}, "expected what happens, one of: slowdown, freeze"),
        ({"client": "a", "freeze": True}, "freeze does not fit a client; it can have: load"),
        ({"service": "a", "load": 2.0}, "load does not fit a service"),
        ({"call": "a", "errors": 0.5}, "errors does not fit a call"),
    ],
)
def test_a_trigger_hits_one_thing_in_a_way_that_fits_it(
    trigger: dict[str, object], says: str
) -> None:
    with pytest.raises(SettingsError, match=says):
        Trigger(**trigger)


def test_an_action_undoes_a_trigger_or_changes_one_thing() -> None:
    assert Action(ends="migration").ends == "migration"
    with pytest.raises(SettingsError, match="either a trigger to end or a target to change"):
        Action(ends="migration", service="db")
    with pytest.raises(SettingsError, match="expected one target"):
        Action(flush=True)


# All parts together.


def test_callers_come_as_written_clients_first() -> None:
    system = shop()
    assert [(section, name) for section, name, _ in system.callers()] == [
        ("clients", "readers"),
        ("services", "shop"),
        ("services", "db"),
    ]
    assert system.target_of("shop", Call()) == "shop"
    assert system.target_of("rows", Call(to="db")) == "db"


@pytest.mark.parametrize(
    ("changes", "path", "says"),
    [
        ({"tidegate": 2}, "tidegate", "version 1 of the system file"),
        ({"clients": {}}, "clients", "at least one client"),
        ({"services": {}}, "services", "at least one service"),
        ({"clients": {"db": Client(rate=1, calls={"shop": Call()})}}, "clients.db", "another name"),
        ({"services": {"shap": Service()}}, "clients.readers.calls.shop", "did you mean 'shap'"),
        (
            {"services": {"shop": Service(calls={"rows": Call(to="bd")}), "db": Service()}},
            "services.shop.calls.rows.to",
            "there is no service 'bd'; known: db, shop",
        ),
        (
            {"services": {"shop": Service(calls={"shop": Call(to="db")}), "db": Service()}},
            "services.shop.calls.shop",
            "used twice, also in clients.readers",
        ),
        (
            {"triggers": {"dip": Trigger(service="bd", freeze=True)}},
            "triggers.dip.service",
            "there is no service 'bd'",
        ),
        (
            {"triggers": {"dip": Trigger(call="row", latency=1)}},
            "triggers.dip.call",
            "did you mean 'rows'",
        ),
        ({"actions": {"undo": Action(ends="dip")}}, "actions.undo.ends", "no trigger 'dip'"),
        ({"journeys": {"read": Journey(client="reader")}}, "journeys.read.client", "'readers'"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused_at_its_place(
    changes: dict[str, object], path: str, says: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        shop(**changes)
    assert ".".join(refused.value.path) == path
    assert says in str(refused.value)


def test_services_do_not_wait_for_each_other_in_a_circle() -> None:
    back = Call(to="shop")
    services = {
        "shop": Service(calls={"rows": Call(to="db")}),
        "db": Service(calls={"back": back}),
    }
    with pytest.raises(SettingsError, match="in a circle: shop -> db -> shop"):
        shop(services=services)
    told = msgspec.structs.replace(back, optional=True, wait=False)
    assert shop(services=services | {"db": Service(calls={"back": told})})


def test_a_deep_chain_is_walked_without_recursion() -> None:
    depth = 5000
    services = {f"s{n}": Service(calls={f"c{n}": Call(to=f"s{n + 1}")}) for n in range(depth)}
    client = Client(rate=1, calls={"first": Call(to="s0")})
    system = System(clients={"c": client}, services=services | {f"s{depth}": Service()})
    assert len(system.services) == depth + 1


# The safe set.


def test_the_default_protection_fills_only_what_is_left_open() -> None:
    full = default_protection(Call(protect="default"))
    assert (full.attempts, full.timeout) == (2, 10 * SECOND)
    assert (full.backoff, full.budget, full.breaker) == (Backoff(), Budget(), Breaker())
    assert full.limit == Limit(adaptive=Adaptive())
    own = Call(protect="default", attempts=5, timeout=MINUTE, budget=Budget(ratio=0.5))
    kept = default_protection(own)
    assert (kept.attempts, kept.timeout, kept.budget) == (5, MINUTE, own.budget)
    assert default_protection(full) == full


def test_what_must_not_be_repeated_is_not() -> None:
    assert default_protection(Call(protect="default", idempotent=False)).tries == 1


def test_without_the_word_nothing_is_added() -> None:
    assert default_protection(Call()) == Call()
    assert protected(shop()) == shop()


def test_a_call_that_hedges_has_a_budget_in_any_case() -> None:
    assert Call().paid_from is None
    assert Call(budget=Budget(ratio=0.3)).paid_from == Budget(ratio=0.3)
    assert Call(hedge=Hedge(after=SECOND)).paid_from == Budget()
    assert Call(hedge=Hedge(after=SECOND), idempotent=False).paid_from is None
