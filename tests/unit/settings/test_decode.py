"""What the reader refuses, where, and in which words; and that an editor with the schema sees it.

`seen` marks what a JSON Schema can express: kinds of values and names of keys, but neither rules
that compare two values nor bounds that the records hold.
"""

from typing import Any, NamedTuple

import jsonschema
import pytest
import yaml

from tidegate.errors import SettingsError
from tidegate.settings.load import loads
from tidegate.settings.schema import schema
from tidegate.units import SECOND

CLIENTS = "clients: {u: {rate: 1/s, calls: {c: {to: s}}}}\n"
SERVICES = "services: {s: {time: 1ms}}\n"
BASE = CLIENTS + SERVICES


def service(keys: str) -> str:
    return f"{CLIENTS}services:\n  s: {{{keys}}}\n"


def call(keys: str) -> str:
    return f"clients:\n  u: {{rate: 1/s, calls: {{c: {{to: s, {keys}}}}}}}\n{SERVICES}"


def client(keys: str) -> str:
    return f"{SERVICES}clients:\n  u: {{calls: {{c: s}}, {keys}}}\n"


class Bad(NamedTuple):
    text: str
    at: str
    path: str
    says: str
    seen: bool = True


STRUCTURE = [
    Bad("[]", "1:1", "", "expected keys, as tidegate, clients, services, triggers, found a list"),
    Bad("5", "1:1", "", "expected keys, as tidegate, clients, services, triggers, found '5'"),
    Bad("---\n", "2:1", "", "found nothing; write {} where there is nothing to say"),
    Bad(SERVICES, "1:1", "clients", "expected at least one client, found nothing", seen=False),
    Bad("services: {}\nclients: {}\n", "2:1", "clients", "at least one client", seen=False),
    Bad(f"{BASE}service: {{}}\n", "3:1", "service", "no key 'service' here; did you mean"),
    Bad(f"{BASE}triggers: [a]\n", "3:11", "triggers", "expected names with a block each"),
    Bad(f"{BASE}triggers: none\n", "3:11", "triggers", "found 'none'"),
    Bad(f"{BASE}tidegate: 2\n", "3:11", "tidegate", "expected version 1 of the system file"),
    Bad(f"{BASE}tidegate: one\n", "3:11", "tidegate", "expected a whole number"),
    Bad(f"{BASE}tidegate: 1..2\n", "3:11", "tidegate", "expected a whole number"),
    Bad(f"{CLIENTS}services: {{s: 5}}\n", "2:15", "services.s", "found '5'"),
    Bad(f"{CLIENTS}services:\n  s:\n", "3:3", "services.s", "write {} where there is nothing"),
    Bad(call("x: 1"), "2:37", "clients.u.calls.c.x", "there is no key 'x' here"),
    Bad(call("time_out: 1s"), "2:37", "clients.u.calls.c.time_out", "did you mean 'timeout'?"),
    Bad(call("retries: 2"), "2:37", "clients.u.calls.c.retries", "write attempts (tries in all"),
    Bad(service("threads: 2"), "3:7", "services.s.threads", "write workers"),
    Bad(service("time: 1ms, Time: 2ms"), "3:18", "services.s.Time", "did you mean 'time'?"),
    Bad("clients: {u: {rate: 1/s}}\nservices: {s: {}}", "1:11", "clients.u", "'calls' is missing"),
    Bad(
        f"{SERVICES}clients: {{u: {{rate: 1/s, calls: {{s: }}}}}}",
        "2:34",
        "clients.u.calls.s",
        "{}",
    ),
]
VALUES = [
    Bad(service("time: 5"), "3:13", "services.s.time", "found '5'; write 5s or 5ms"),
    Bad(service("time: 5 seconds"), "3:13", "services.s.time", "a duration with its unit"),
    Bad(service("time: [5ms]"), "3:13", "services.s.time", "found a list"),
    Bad(service("time: {mean: 5}"), "3:20", "services.s.time.mean", "write 5s or 5ms"),
    Bad(client("rate: 5"), "3:28", "clients.u.rate", "write 5/s or 5/min"),
    Bad(client("rate: 5/s/s"), "3:28", "clients.u.rate", "a rate with its unit"),
    Bad(client("rate: {}"), "3:28", "clients.u.rate", "a single value, found a block of keys"),
    Bad(service("workers: -1"), "3:16", "services.s.workers", "found '-1'"),
    Bad(service("workers: 2.5"), "3:16", "services.s.workers", "a whole number"),
    Bad(service("workers: 1e999"), "3:16", "services.s.workers", "a whole number", seen=False),
    Bad(service("workers: .nan"), "3:16", "services.s.workers", "a whole number", seen=False),
    Bad(service(f"workers: {'9' * 400}"), "3:16", "services.s.workers", "...'", seen=False),
    Bad(service("errors: .inf"), "3:15", "services.s.errors", "a share", seen=False),
    Bad(service("errors: -1%"), "3:15", "services.s.errors", "a share"),
    Bad(service("errors: -0.1"), "3:15", "services.s.errors", "a share"),
    Bad(service("blocking: no"), "3:17", "services.s.blocking", "true or false, found 'no'", False),
    Bad(service("blocking: 0"), "3:17", "services.s.blocking", "expected true or false"),
    Bad(service("blocking: 'true'"), "3:17", "services.s.blocking", "expected true or false"),
    Bad(service("blocking: "), "3:7", "services.s.blocking", "expected true or false"),
    Bad(service("balance: rund_robin"), "3:16", "services.s.balance", "expected one of round"),
    Bad(service("queue: {order: filo}"), "3:22", "services.s.queue.order", "one of fifo, lifo"),
    Bad(service("address: 80"), "3:16", "services.s.address", "a name, found '80'; put 80 in"),
    Bad(service("address: true"), "3:16", "services.s.address", "put true in quotes"),
    Bad(service("address: ''"), "3:7", "services.s.address", "a name, found nothing"),
    Bad(service("limit: {adaptive: 5}"), "3:25", "services.s.limit.adaptive", "expected keys, as"),
    Bad(call("retry_on: never"), "2:47", "clients.u.calls.c.retry_on", "one of timeout, failure"),
    Bad(call("retry_on: [time]"), "2:48", "clients.u.calls.c.retry_on", "one of timeout, failure"),
    Bad(call("retry_on: [[]]"), "2:48", "clients.u.calls.c.retry_on", "a single value"),
    Bad(call("retry_on: [timeout, timeout]"), "2:37", "clients.u.calls.c.retry_on", "once"),
    Bad(
        call(f"retry_on: [{'timeout, ' * 5000}]"),
        "2:37",
        "clients.u.calls.c.retry_on",
        "each reason once, found a list of 5000",
    ),
    Bad(call("attempts: unknown"), "2:47", "clients.u.calls.c.attempts", "give a range, as 2..8"),
    Bad(call("deadline: "), "2:37", "clients.u.calls.c.deadline", "give a range, as 1s..10s"),
    Bad(call("budget: unknown"), "2:45", "clients.u.calls.c.budget", "a range, as 10%..40%"),
    Bad(call("rate_limit: {rate: }"), "2:50", "clients.u.calls.c.rate_limit.rate", "100/s..1000/s"),
    Bad(call("network: "), "2:37", "clients.u.calls.c.network", "cannot be left open"),
    Bad(service("time: 5ms..1ms"), "3:13", "services.s.time", "from low to high", False),
    Bad(service("time: 5ms..10"), "3:13", "services.s.time", "a unit at the end"),
    Bad(service("blocking: true..false"), "3:17", "services.s.blocking", "expected true or false"),
]
# What the records themselves refuse: their sentence, the file's place and the file's own words.
RULES = [
    Bad(service("time: 48h"), "3:13", "services.s.time", "from 0s to 24h, found '48h'"),
    Bad(service("time: 1s..48h"), "3:13", "services.s.time", "to 24h, found '1s..48h'"),
    Bad(call("attempts: 0"), "2:47", "clients.u.calls.c.attempts", "from 1 to 100, found '0'"),
    Bad(call("timeout: 0s"), "2:46", "clients.u.calls.c.timeout", "above zero"),
    Bad(call("timeout: 0s..1s"), "2:46", "clients.u.calls.c.timeout", "found '0s..1s'"),
    Bad(call("budget: {ratio: 0..20}"), "2:53", "clients.u.calls.c.budget.ratio", "'0..20'"),
    Bad(call("wait: false"), "2:43", "clients.u.calls.c.wait", "unless the call is also optional"),
    Bad(client("rate: 1/s, users: 5"), "3:28", "clients.u.rate", "one of the two, found '1/s'"),
    Bad(
        client("users: 5"),
        "3:3",
        "clients.u.think",
        "between two requests of a user, found nothing",
    ),
    Bad(client("rate: 0/s"), "3:28", "clients.u.rate", "a rate above zero"),
    Bad(
        service("queue: {codel: {target: 200ms}}"),
        "3:15",
        "services.s.queue.codel.interval",
        "at least the target, at most 1h, found the default 100ms",
    ),
    Bad(
        service("queue: {codel: {target: 1ms..60ms, interval: 50ms}}"),
        "3:52",
        "services.s.queue.codel.interval",
        "at least the target, at most 1h, found '50ms'",
    ),
    Bad(
        service("time: {median: 1ms..1s, p99: 2ms..2s}"),
        "3:36",
        "services.s.time.p99",
        "at least the median, which is above zero, found '2ms..2s'",
    ),
    Bad(
        service("limit: {adaptive: {min: 1..9, max: 5..50, start: 5..20}}"),
        "3:56",
        "services.s.limit.adaptive.start",
        "a number from the minimum to the maximum, found '5..20'",
    ),
    Bad(f"{BASE}triggers: {{t: {{service: s}}}}", "3:12", "triggers.t", "expected what happens"),
    Bad(
        f"{BASE}triggers: {{t: {{service: s, for: 0s, freeze: true}}}}",
        "3:33",
        "triggers.t.for",
        "a duration above zero, found '0s'",
    ),
    Bad(
        f"{BASE}triggers: {{t: {{service: z, freeze: true}}}}",
        "3:25",
        "triggers.t.service",
        "there is no service 'z'; known: s",
    ),
    Bad(f"{BASE}journeys: {{j: {{client: uu}}}}", "3:24", "journeys.j.client", "no client 'uu'"),
    Bad(f"{BASE}actions: {{a: {{ends: slow}}}}", "3:21", "actions.a.ends", "no trigger 'slow'"),
    Bad(CLIENTS + "services: {t: {}}", "1:42", "clients.u.calls.c.to", "there is no service 's'"),
    Bad(
        "clients: {u: {rate: 1/s, calls: {shop: {}}}}\nservices: {shops: {}}",
        "1:34",
        "clients.u.calls.shop",
        "no service 'shop'; did you mean 'shops'?",
    ),
    Bad(
        service("time: 1ms, calls: {c: s}"),
        "3:29",
        "services.s.calls.c",
        "the call name 'c' is used twice, also in clients.u",
    ),
    Bad(service("calls: {d: s}"), "3:18", "services.s.calls.d", "in a circle: s -> s"),
    Bad(
        "clients: {s: {rate: 1/s, calls: {c: s}}}\n" + SERVICES, "1:11", "clients.s", "a client and"
    ),
    Bad(service("workers: "), "3:7", "services.s.workers", "only where `time` says how long"),
]


@pytest.mark.parametrize("bad", STRUCTURE + VALUES + RULES, ids=lambda bad: bad.says[:40])
def test_it_is_refused_at_its_place(bad: Bad) -> None:
    with pytest.raises(SettingsError) as caught:
        loads(bad.text, "f.yaml")
    error = caught.value
    assert error.where == f"f.yaml:{bad.at}", error
    assert ".".join(error.path) == bad.path, error
    assert bad.says in error.message, error
    assert "\n" not in str(error)


VALIDATOR = jsonschema.Draft202012Validator(schema())


@pytest.mark.parametrize(
    "bad", [b for b in STRUCTURE + VALUES if b.seen], ids=lambda b: b.says[:40]
)
def test_an_editor_underlines_it_too(bad: Bad) -> None:
    assert not VALIDATOR.is_valid(plain(bad.text))


def plain(text: str) -> Any:
    """What a YAML 1.2 editor hands to a validator; PyYAML differs in no file here but for `no`."""
    return yaml.safe_load(text)


GOOD = [
    service("time: 50ms"),
    service("time: {median: 10ms, p99: 100ms}"),
    service("time: {mean: }, workers: 5"),
    service("time: , workers: , queue: , refusal_cost: "),
    service("time: unknown, workers: unknown"),
    service("time: 1..5ms, workers: 2..8, errors: 1..5%, thrash: 0.01..0.05"),
    service("time: 5ms..5ms"),
    service("queue: {limit: , order: lifo, codel: {}}"),
    service("queue: {codel: {target: 5ms..50ms, interval: 100ms..1s}}"),
    service("limit: {adaptive: {}}, balance: random"),
    call("attempts: 3, retry_on: timeout, timeout: "),
    call("attempts: '3', retry_on: [], optional: true, wait: false"),
    call("budget: 10%, backoff: {base: 10ms, factor: 3}, breaker: {}, network: {constant: 1ms}"),
    client("rate: "),
    client("users: 10..100, think: 5s"),
    f"{BASE}triggers:\nactions: ~\njourneys: {{a b: {{client: u}}}}\n",
    f"{BASE}triggers: {{t: {{service: s, capacity: 0%, for: 1min}}, v: {{client: u, load: 2x}}}}",
    f"{BASE}objective: {{goodput: 99%}}\ntidegate: 1\n",
]


@pytest.mark.parametrize("text", GOOD)
def test_what_the_reader_takes_the_schema_takes(text: str) -> None:
    loads(text)
    VALIDATOR.validate(plain(text))


def test_a_bare_value_stands_for_the_main_key() -> None:
    short = loads(call("budget: 20%, limit: 5, rate_limit: 9/s, backoff: 1s, breaker: 30%"))
    full = loads(
        call(
            "budget: {ratio: 20%}, limit: {max: 5}, rate_limit: {rate: 9/s}, backoff: {base: 1s},"
            " breaker: {failures: 30%}"
        )
    )
    assert short.system() == full.system()


def test_for_is_a_key_although_python_has_the_word() -> None:
    text = f"{BASE}triggers: {{t: {{service: s, freeze: true, for: 9s}}}}"
    assert loads(text).system().triggers["t"].for_ == 9 * SECOND
    with pytest.raises(SettingsError, match="there is no key 'for_' here; did you mean 'for'"):
        loads(text.replace("for:", "for_:"))


def test_a_record_that_is_all_default_is_written_as_nothing() -> None:
    system = loads(service("")).system()
    assert system.services["s"].queue.limit is None
    assert loads(service("limit: {adaptive: {}}")).system().services["s"].limit
