"""Ranges, what a blank stands for, and how samples are drawn."""

import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import SettingsError
from tidegate.settings.graph import holding_times, offered
from tidegate.settings.load import loads
from tidegate.settings.unknowns import Unknown, middles, sample
from tidegate.units import SECOND


def unknown(low: float, high: float, name: str = "x", kind: Any = "share") -> Unknown:
    return Unknown(path=("services", name), kind=kind, low=low, high=high, where="f:1:1")


@given(st.integers(1, 40), st.integers(0, 9), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_sample_covers_every_part_of_every_range_once(
    n: int, seed: int, low: float, width: float
) -> None:
    both = [unknown(low, low + width, "a"), unknown(0.001, 1000, "b")]
    sets = sample(both, n, seed)
    assert len(sets) == n
    for open_ in both:
        values = sorted(values[open_.path] for values in sets)
        edges = [open_.at(part / n) for part in range(n + 1)]
        assert all(
            edge * (1 - 1e-9) <= value <= after * (1 + 1e-9)
            for edge, value, after in zip(edges, values, edges[1:], strict=False)
        )


def test_an_unknown_more_does_not_change_the_others() -> None:
    a, b = unknown(1, 2, "a"), unknown(1, 2, "b")
    alone = [values[a.path] for values in sample([a], 9, 5)]
    assert alone == [values[a.path] for values in sample([b, a], 9, 5)]
    assert alone != [values[b.path] for values in sample([b, a], 9, 5)]
    assert alone != [values[a.path] for values in sample([a], 9, 6)]


@pytest.mark.slow  # two interpreters start
def test_samples_are_the_same_in_every_process() -> None:
    script = (
        "from tidegate.settings.unknowns import *\n"
        "u = Unknown(path=('a', 'b'), kind='share', low=0.1, high=0.9, where='')\n"
        "print([v[u.path] for v in sample([u], 7, 3)])"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    here = sample([Unknown(path=("a", "b"), kind="share", low=0.1, high=0.9, where="")], 7, 3)
    assert runs == {f"{[values['a', 'b'] for values in here]}\n"}


def test_positive_ranges_are_even_over_the_logarithm() -> None:
    assert unknown(0.01, 1).middle == pytest.approx(0.1)
    assert unknown(0, 1).middle == 0.5
    assert unknown(1, 100, kind="count").at(0.75) == 32


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("utilisation", 0.30822, "30.8% busy"),
        ("duration", 31_622_777, "31.6ms"),
        ("rate", 547.37, "547/s"),
        ("count", 12, "12"),
    ],
)
def test_a_value_is_shown_with_its_unit(kind: str, value: float, text: str) -> None:
    assert unknown(0, 1, kind=kind).text(value) == text


def only(text: str) -> Unknown:
    (found,) = loads(text).unknowns
    return found


SERVICE = "clients: {{u: {{rate: 10/s, calls: {{c: {{to: s}}}}}}}}\nservices: {{s: {{{0}}}}}"


@pytest.mark.parametrize(
    ("keys", "kind", "low", "high"),
    [
        ("time: ", "duration", 10**6, 10**9),
        ("time: {mean: }", "duration", 10**6, 10**9),
        ("queue: ", "count", 0, 1000),
        ("queue: {limit: unknown, order: lifo}", "count", 0, 1000),
        ("refusal_cost: ", "share", 0.01, 1),
        ("time: 1ms, workers: ", "utilisation", 0.1, 0.95),
    ],
)
def test_what_a_blank_stands_for(keys: str, kind: str, low: float, high: float) -> None:
    found = only(SERVICE.format(keys))
    assert (found.kind, found.low, found.high, found.assumed) == (kind, low, high, True)


def test_a_blank_timeout() -> None:
    found = only("clients: {u: {rate: 1/s, calls: {s: {timeout: }}}}\nservices: {s: {}}")
    assert (found.low, found.high) == (SECOND // 10, 60 * SECOND)


def test_a_blank_rate_is_drawn_as_a_rate_where_nothing_can_be_busy() -> None:
    found = only("clients: {u: {rate: , calls: {s: {}}}}\nservices: {s: {}}")
    assert (found.kind, found.low, found.high) == ("rate", 1, 1000)


def test_two_blank_rates_share_what_the_others_leave() -> None:
    draft = loads(
        "clients:\n"
        "  a: {rate: , calls: {a1: s}}\n"
        "  b: {rate: , calls: {b1: s}}\n"
        "  c: {rate: 200/s, calls: {c1: s}}\n"
        "services: {s: {workers: 10, time: 10ms}}\n"
    )
    at = {unknown.path: 0.5 for unknown in draft.unknowns}
    system = draft.system(at)
    # Ten workers of 10 ms serve 1000/s; half of that is 500/s, of which c takes 200.
    assert system.clients["a"].rate == system.clients["b"].rate == pytest.approx(150)


def test_where_others_take_all_a_hundredth_is_left() -> None:
    draft = loads(
        "clients: {a: {rate: , calls: {a1: s}}, c: {rate: 2000/s, calls: {c1: s}}}\n"
        "services: {s: {workers: 10, time: 10ms}}\n"
    )
    assert draft.system().clients["a"].rate == pytest.approx(10)


@settings(max_examples=40)
@given(st.floats(0.1, 0.95), st.floats(0.1, 0.95), st.integers(0, 10**6))
def test_a_blank_never_overloads_a_service(web: float, shop: float, seed: int) -> None:
    draft = loads(
        "clients: {web: {rate: , calls: {c: {to: shop}}}}\n"
        "services:\n"
        "  shop: {workers: , time: , replicas: 3, calls: {d: {to: db}}}\n"
        "  db: {workers: 7, time: }\n"
    )
    (values,) = sample(draft.unknowns, 1, seed)
    system = draft.system(
        values | {("clients", "web", "rate"): web, ("services", "shop", "workers"): shop}
    )
    load, held = offered(system), holding_times(system)
    for name, service in system.services.items():
        assert load[name] * held[name] / SECOND <= (service.workers or 0) * service.replicas


def test_middles_are_what_a_draft_uses() -> None:
    draft = loads(SERVICE.format("time: , workers: "))
    assert draft.system() == draft.system(middles(draft.unknowns))


def test_workers_are_those_of_one_replica() -> None:
    draft = loads(SERVICE.format("time: 6s, replicas: 3, workers: "))
    # 10/s of 6 s each keep 60 busy; half busy are 120, on three replicas 40 each.
    assert draft.system({("services", "s", "workers"): 0.5}).services["s"].workers == 40


def test_workers_that_nobody_uses_are_at_least_one() -> None:
    draft = loads(SERVICE.format("time: 1ms}, idle: {time: 1ms, workers: "))
    assert draft.system().services["idle"].workers == 1


def test_a_service_that_does_nothing_cannot_say_how_many_workers_it_has() -> None:
    with pytest.raises(SettingsError, match="only where `time` says how long"):
        loads(SERVICE.format("workers: "))
