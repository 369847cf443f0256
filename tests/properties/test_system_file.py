"""Laws of the system file: what is written reads back, and nothing that is read raises but ours."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tidegate.errors import SettingsError
from tidegate.settings.dump import dump
from tidegate.settings.load import loads
from tidegate.settings.policies import (
    Adaptive,
    Backoff,
    Breaker,
    Budget,
    CoDel,
    Limit,
    Queue,
    RateLimit,
)
from tidegate.settings.schema import schema
from tidegate.settings.system import (
    Action,
    Call,
    Client,
    Journey,
    Objective,
    Restart,
    Service,
    System,
    Time,
    Trigger,
)
from tidegate.settings.unknowns import sample
from tidegate.units import DAY, HOUR, SECOND

MARKETPLACE = (
    Path(__file__).parents[1] / "unit" / "settings" / "data" / "marketplace.yaml"
).read_text("utf-8")
VALIDATOR = jsonschema.Draft202012Validator(schema())


def share(low: float = 0, high: float = 1) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_subnormal=False) | st.integers(
        int(low * 100) + 1, int(high * 100)
    ).map(lambda percent: percent / 100)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def built(record: type[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Records with a few of these fields given; what their own rules refuse is not drawn."""

    def make(given: dict[str, Any]) -> Any:
        try:
            return record(**given)
        except SettingsError:
            return None

    some = st.fixed_dictionaries({}, optional=fields)
    return some.map(make).filter(lambda made: made is not None)


DURATION = st.integers(1, DAY) | st.integers(1, 600).map(lambda number: number * SECOND)
HOURS = st.integers(SECOND, HOUR)
NAME = st.text(
    st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=12
).filter(str.isprintable) | st.sampled_from(
    ["yes", "null", "a b", "1", "true", "<<", "~", "- x", "a: b", "#", "unknown"]
)
TIME = st.one_of(
    DURATION.map(lambda mean: Time(mean=mean)),
    DURATION.map(lambda constant: Time(constant=constant)),
    st.tuples(DURATION, DURATION).map(lambda pair: Time(median=min(pair), p99=max(pair))),
)
RATE = st.floats(1e-3, 1e6) | st.integers(1, 10**6).map(float)
RATE_LIMIT = st.builds(RateLimit, rate=RATE, burst=maybe(st.integers(1, 10**6)))
LIMIT = st.integers(1, 10**6).map(lambda number: Limit(max=number)) | built(
    Adaptive,
    start=st.integers(5, 20),
    min=st.integers(1, 5),
    max=st.integers(20, 90),
    latency=HOURS,
).map(lambda adaptive: Limit(adaptive=adaptive))
QUEUE = built(
    Queue,
    limit=st.integers(0, 10**8),
    order=st.sampled_from(["fifo", "lifo", "adaptive_lifo"]),
    full=st.sampled_from(["refuse", "silence"]),
    codel=built(CoDel, target=HOURS, interval=HOURS),
    late=st.booleans(),
)
BACKOFF = built(
    Backoff,
    base=DURATION,
    factor=st.floats(1, 100),
    max=DURATION,
    jitter=st.sampled_from(["full", "equal", "none"]),
)
BREAKER = built(Breaker, failures=share(0.01), window=HOURS, volume=st.integers(1, 999), ramp=HOURS)
BUDGET = built(Budget, ratio=share(0, 9), window=HOURS)


CALL = built(
    Call,
    to=st.sampled_from(["s", "t"]),
    per_request=share() | st.floats(0, 50, allow_subnormal=False),
    optional=st.booleans(),
    wait=st.booleans(),
    attempts=st.integers(1, 100),
    timeout=DURATION,
    deadline=DURATION,
    propagate=st.booleans(),
    backoff=BACKOFF,
    retry_on=st.lists(st.sampled_from(["timeout", "failure", "overloaded"]), unique=True).map(
        tuple
    ),
    budget=BUDGET,
    breaker=BREAKER,
    limit=LIMIT,
    rate_limit=RATE_LIMIT,
    network=TIME,
    idempotent=st.booleans(),
    protect=st.sampled_from(["none", "default"]),
)
SERVICE = built(
    Service,
    workers=st.integers(1, 10**6),
    blocking=st.booleans(),
    time=TIME,
    replicas=st.integers(1, 99),
    balance=st.sampled_from(["round_robin", "random", "least_loaded", "shared_queue"]),
    queue=QUEUE,
    rate_limit=RATE_LIMIT,
    limit=LIMIT,
    refusal_cost=share(),
    abandoned=st.sampled_from(["finish", "skip", "cancel"]),
    errors=share(),
    contention=st.integers(1, SECOND),
    thrash=share(),
    restart=st.builds(Restart, backlog=st.integers(1, 9999), stuck=st.booleans()),
    parallel=st.booleans(),
    address=NAME,
)
TRIGGER = built(
    Trigger,
    service=st.just("s"),
    at=DURATION,
    for_=DURATION,
    ramp=DURATION,
    replicas=st.just(1),
    slowdown=st.floats(0.01, 1e3),
    freeze=st.booleans(),
    capacity=share(),
    errors=share(),
    latency=DURATION,
)
ACTION = built(
    Action,
    call=st.just("c"),
    attempts=st.integers(1, 9),
    open=st.booleans(),
    rate_limit=RATE_LIMIT,
)


def around(**parts: Any) -> System:
    """A small system with these parts in it."""
    calls = {"c": parts.get("call", Call(to="s"))}
    clients = {"u": parts.get("client", Client(rate=1.0, calls={"c": Call(to="s")}))}
    if "call" in parts:
        clients = {"u": Client(rate=1.0, calls=calls)}
    services = {"s": parts.get("service", Service()), "t": Service()}
    triggers = {name: parts["trigger"] for name in ("slow", "1") if "trigger" in parts}
    actions = {"back": parts["action"]} if "action" in parts else {}
    objective = parts.get("objective", Objective())
    return System(
        clients=clients,
        services=services,
        triggers=triggers,
        actions=actions,
        objective=objective,
    )


@st.composite
def graphs(draw: st.DrawFn) -> System:
    """Services that call those after them, under names that YAML would rather read otherwise."""
    client, *services = draw(st.lists(NAME, min_size=2, max_size=6, unique=True))
    some = st.lists(st.sampled_from(services), min_size=1, max_size=3)
    made = {}
    for number, name in enumerate(services):
        below = [callee for callee in draw(some) if services.index(callee) > number]
        made[name] = Service(
            calls={f"{name} {place}": Call(to=callee) for place, callee in enumerate(below)}
        )
    entries = {f"{client} {place}": Call(to=name) for place, name in enumerate(draw(some))}
    journeys = {name: Journey(client=client) for name in draw(st.lists(NAME, max_size=2))}
    return System(
        clients={client: Client(rate=1.0, calls=entries)}, services=made, journeys=journeys
    )


CLIENT = st.builds(
    Client, users=st.integers(1, 10**7), think=TIME, calls=st.just({"c": Call(to="s")})
) | st.builds(Client, rate=RATE, calls=st.just({"c": Call(to="s")}))
SYSTEMS = {
    "call": CALL.map(lambda call: around(call=structs.replace(call, to=call.to or "s"))),
    "service": SERVICE.map(lambda service: around(service=service)),
    "client": CLIENT.map(lambda client: around(client=client)),
    "trigger": TRIGGER.map(lambda trigger: around(trigger=trigger)),
    "action": ACTION.map(lambda action: around(action=action)),
    "objective": st.builds(Objective, goodput=share(0.01), within=st.integers(0, DAY)).map(
        lambda objective: around(objective=objective)
    ),
    "graph": graphs(),
}


@pytest.mark.slow  # records have many keys to draw
@pytest.mark.parametrize("part", SYSTEMS)
@given(data=st.data())
def test_what_is_written_reads_back_the_same(part: str, data: st.DataObject) -> None:
    system = data.draw(SYSTEMS[part])
    text = dump(system)
    assert loads(text).system() == system
    assert dump(loads(text).system()) == text
    VALIDATOR.validate(yaml.safe_load(text))


def reads_or_refuses(content: str | bytes) -> None:
    """A SettingsError has a place in the file and is one printable line; nothing else is raised."""
    try:
        draft = loads(content, "f")
        for values in sample(draft.unknowns, 2, 1):
            draft.system(values)
    except SettingsError as error:
        refused = error
    else:
        return
    assert refused.where.startswith("f")
    assert str(refused).isprintable()
    assert len(str(refused)) < 2000


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    reads_or_refuses(text)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    reads_or_refuses(content)


@given(st.text("{}[]:,-#&*!|>'\"%@`? \n\tab01.", max_size=80))
def test_any_yaml_like_text_is_read_or_refused(text: str) -> None:
    reads_or_refuses(text)


# One word a line: values of the wrong kind, open numbers, and what breaks YAML.
WORDS = st.sampled_from(
    """\
5
-1
1e999
.nan
.inf
0x1F
999999999999999
9999999999999999999999999
30%
4x
1s..10s
0..5
1..9%
100..200/s
unknown
null
true
no
{}
[]
[timeout]
{mean: }
edge
readers
&a 1
*a
!!int 3
- 1
a: b: c
'
"
{
]
\t
""".splitlines()
)


@settings(max_examples=400)
@given(st.data())
def test_any_change_of_a_good_file_is_read_or_refused(data: st.DataObject) -> None:
    """A value, a key or a line is put in place of another, twice."""
    lines = [line.partition("  #")[0] for line in MARKETPLACE.splitlines()]
    for _ in range(2):
        number = data.draw(st.integers(0, len(lines) - 1))
        key, colon, value = lines[number].partition(":")
        change = data.draw(st.sampled_from(["value", "inner", "key", "drop", "twice", "indent"]))
        word = data.draw(WORDS)
        lines[number] = {
            "value": f"{key}: {word}",
            "inner": f"{key}{colon}{value.replace(',', f', {word},')}",
            "key": f"{key[: len(key) - len(key.lstrip())]}{word}:{value}",
            "drop": "",
            "twice": f"{lines[number]}\n{lines[number]}",
            "indent": f" {lines[number]}",
        }[change]
    reads_or_refuses("\n".join(lines))


@given(st.integers(0, len(MARKETPLACE)), st.integers(0, 30), st.text(max_size=5))
def test_any_cut_of_a_good_file_is_read_or_refused(start: int, length: int, instead: str) -> None:
    reads_or_refuses(MARKETPLACE[:start] + instead + MARKETPLACE[start + length :])
