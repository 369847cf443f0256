"""A System as a person would have written it. That it reads back is in `tests/properties`."""

import pytest

from tidegate.errors import SettingsError
from tidegate.settings.dump import dump, inline
from tidegate.settings.load import loads
from tidegate.settings.policies import Backoff, Breaker, Budget, CoDel, Limit, Queue, RateLimit
from tidegate.settings.starter import starter
from tidegate.settings.system import (
    Action,
    Call,
    Client,
    Objective,
    Service,
    System,
    Time,
    Trigger,
)
from tidegate.units import MILLISECOND, SECOND

SYSTEM = System(
    clients={"people": Client(rate=500.0, calls={"pages": Call(to="shop", timeout=30 * SECOND)})},
    services={
        "shop": Service(
            workers=25,
            time=Time(mean=20 * MILLISECOND),
            queue=Queue(limit=100, order="lifo"),
            calls={
                "db": Call(
                    per_request=0.3,
                    attempts=3,
                    timeout=SECOND,
                    backoff=Backoff(),
                    retry_on=("timeout",),
                    budget=Budget(ratio=0.05),
                )
            },
        ),
        "db": Service(time=Time(median=5 * MILLISECOND, p99=80 * MILLISECOND)),
        "nothing": Service(),
    },
    triggers={"slow": Trigger(service="db", slowdown=3.0, for_=20 * SECOND)},
    actions={"back": Action(ends="slow")},
    objective=Objective(goodput=0.99),
)


def test_it_looks_as_if_written_by_hand() -> None:
    assert dump(SYSTEM) == (
        "tidegate: 1\n"
        "\n"
        "clients:\n"
        "  people:\n"
        "    rate: 500/s\n"
        "    calls:\n"
        "      pages: {to: shop, timeout: 30s}\n"
        "\n"
        "services:\n"
        "  shop:\n"
        "    workers: 25\n"
        "    time: 20ms\n"
        "    queue: {limit: 100, order: lifo}\n"
        "    calls:\n"
        "      db:\n"
        "        per_request: 30%\n"
        "        attempts: 3\n"
        "        timeout: 1s\n"
        "        backoff: 100ms\n"
        "        retry_on: [timeout]\n"
        "        budget: 5%\n"
        "  db:\n"
        "    time: {median: 5ms, p99: 80ms}\n"
        "  nothing: {}\n"
        "\n"
        "triggers:\n"
        "  slow: {service: db, for: 20s, slowdown: 3x}\n"
        "\n"
        "actions:\n"
        "  back: {ends: slow}\n"
        "objective: {goodput: 99%}\n"
    )


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (Call(), "{}"),
        (Call(to="db"), "db"),
        (Budget(), "10%"),
        (Budget(window=5 * SECOND), "{window: 5s}"),
        (Breaker(failures=0.3), "30%"),
        (Limit(max=5), "5"),
        (RateLimit(rate=0.5), "0.5/s"),
        (RateLimit(rate=600.0, burst=60), "{rate: 600/s, burst: 60}"),
        (Queue(codel=CoDel()), "{codel: {}}"),
        (Call(to="db", retry_on=()), "{to: db, retry_on: []}"),
        (Time(constant=SECOND), "{constant: 1s}"),
        (Trigger(service="s", freeze=True), "{service: s, freeze: true}"),
        (Service(calls={"a b": Call(to="c")}), "{calls: {a b: c}}"),
    ],
)
def test_a_record_stands_on_one_line_behind_its_key(record: Call, line: str) -> None:
    assert inline(record) == line


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("shop", "shop"),
        ("open a page", "open a page"),
        ("eu-1.db", "eu-1.db"),
        ("straße", "straße"),
        ("yes", '"yes"'),
        ("Off", '"Off"'),
        ("null", '"null"'),
        ("true", '"true"'),
        ("1", '"1"'),
        ("3scale", '"3scale"'),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        (" a", '" a"'),
        ("a ", '"a "'),
        ("-", '"-"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("GET /pay/{id}", '"GET /pay/{id}"'),
    ],
)
def test_names_are_quoted_only_where_they_must(name: str, written: str) -> None:
    system = System(
        clients={"u": Client(rate=1.0, calls={"c": Call(to=name)})}, services={name: Service()}
    )
    assert f"  {written}: {{}}\n" in dump(system)
    assert loads(dump(system)).system() == system


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "x" * 501])
def test_a_name_that_no_file_may_hold_is_refused(name: str) -> None:
    system = System(
        clients={"u": Client(rate=1.0, calls={"c": Call(to=name)})}, services={name: Service()}
    )
    with pytest.raises(SettingsError, match="expected"):
        dump(system)


def test_comments_stand_behind_their_keys() -> None:
    text = dump(
        SYSTEM,
        comments={
            (): "From traces of one hour.\nNothing is assumed.",
            ("clients", "people"): "1.8 M requests",
            ("services", "shop", "time"): "median of 120,000 spans",
            ("services", "shop", "queue", "order"): "as the config says",
            ("services", "shop", "calls", "db", "attempts"): "at most 3 seen",
            ("services", "shop", "calls", "db", "budget", "ratio"): "guessed",
            ("services", "db", "time", "p99"): "long " * 30,
            ("triggers", "slow"): "12 May\x1b[31m",
            ("services", "nothing"): "never called",
        },
    )
    assert text.startswith("# From traces of one hour.\n# Nothing is assumed.\n")
    for line in (
        "  people:  # 1.8 M requests",
        "    time: 20ms  # median of 120,000 spans",
        "    queue:\n      limit: 100\n      order: lifo  # as the config says",
        "        attempts: 3  # at most 3 seen",
        "        budget: 5%  # guessed",
        "  nothing: {}  # never called",
        "slowdown: 3x}  # 12 May [31m",
        "      # long long",
    ):
        assert f"{line}" in text
    assert max(map(len, text.splitlines())) <= 100
    assert loads(text).system() == SYSTEM


def test_a_comment_brings_a_default_into_the_file() -> None:
    text = dump(SYSTEM, comments={("services", "db", "replicas"): "one host in all spans"})
    assert "    replicas: 1  # one host in all spans\n" in text


def test_numbers_can_be_left_open() -> None:
    text = dump(
        SYSTEM,
        leave_open={
            ("services", "shop", "workers"): "",
            ("services", "shop", "queue", "limit"): "",
            ("services", "db", "time"): "",
            ("services", "nothing", "time"): "1ms..5ms",
            ("services", "shop", "calls", "db", "timeout"): "500ms..2s",
            ("services", "shop", "calls", "db", "budget", "ratio"): "5%..20%",
        },
        comments={("services", "shop", "workers"): "not in traces"},
    )
    assert "    workers:  # not in traces\n" in text
    assert "    queue:\n      limit:\n      order: lifo\n" in text
    assert [".".join(u.path) for u in loads(text).unknowns] == [
        "services.shop.workers",
        "services.shop.queue.limit",
        "services.shop.calls.db.timeout",
        "services.shop.calls.db.budget",
        "services.db.time",
        "services.nothing.time",
    ]


def test_a_lognormal_left_open_is_blank_alone() -> None:
    text = dump(SYSTEM, leave_open={("services", "db", "time"): "1ms..2ms"})
    assert "  db:\n    time: 1ms..2ms\n" in text


@pytest.mark.parametrize(
    "path",
    [("services", "shap"), ("services", "db", "workers"), ("clients", "people", "users", "x")],
)
def test_a_path_that_leads_to_no_key_is_refused(path: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError, match="no key to comment on") as caught:
        dump(SYSTEM, comments={path: "lost"})
    assert caught.value.path == path


def test_the_starter_reads_back() -> None:
    system = loads(starter()).system()
    assert loads(dump(system)).system() == system
