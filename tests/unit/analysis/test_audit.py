"""Each rule of the audit sees its breach, says the numbers, and is silenced by its own fix."""

from typing import Any

import pytest
import yaml

from tidegate.analysis.audit import RULES, audit
from tidegate.analysis.rules.pools import stall
from tidegate.analysis.rules.view import View
from tidegate.findings import AuditFinding
from tidegate.settings.load import loads
from tidegate.settings.system import System

PLAIN = """
tidegate: 1
clients:
  shoppers: {rate: 100/s, calls: {open: {to: shop, timeout: 2s}}}
services:
  shop: {workers: 40, time: 20ms, queue: {limit: 100}, calls: {stock: {timeout: 500ms}}}
  stock: {workers: 10, time: 10ms, queue: {limit: 50}}
"""
MARKETPLACE = """
tidegate: 1
clients:
  readers: {rate: 500/s, calls: {pages: {to: tracker, timeout: 30s}}}
  shoppers: {rate: 600/s, calls: {shop: {to: edge, timeout: 30s}}}
services:
  tracker:
    workers: 1000
    time: 200ms
    queue: 100
    calls:
      licences:
        {to: edge, per_request: 30%, timeout: 10s, attempts: 2, retry_on: [timeout]}
  edge:
    blocking: false
    calls:
      market: {to: marketplace, timeout: 5s, attempts: 3, retry_on: [timeout]}
  marketplace: {replicas: 4, workers: 25, time: 50ms}
"""
SHOPPERS = "clients.shoppers"
OPEN = "clients.shoppers.calls.open"
SHOP = "services.shop"
CALL = "services.shop.calls.stock"
STOCK = "services.stock"


def merged(base: Any, patch: Any) -> Any:
    """`patch` written over `base` key by key, as a person would edit the file; null takes out."""
    if not (isinstance(base, dict) and isinstance(patch, dict)):
        return patch
    both = base | {key: merged(base.get(key), value) for key, value in patch.items()}
    return {key: value for key, value in both.items() if value is not None}


def part(path: str, text: str) -> Any:
    """The patch that writes `{text}` at a path of the file."""
    made = yaml.safe_load(f"{{{text}}}")
    for key in reversed(path.split(".")):
        made = {key: made}
    return made


def document(*patches: Any, base: str = PLAIN) -> Any:
    made = yaml.safe_load(base)
    for patch in patches:
        made = merged(made, patch)
    return made


def parsed(made: Any) -> System:
    return loads(yaml.safe_dump(made, sort_keys=False)).system()


def audited(*patches: Any, base: str = PLAIN) -> list[AuditFinding]:
    return audit(parsed(document(*patches, base=base)))


def rules(*patches: Any) -> set[str]:
    return {finding.rule for finding in audited(*patches)}


# What is plain, and what is protected, is not shouted at.

QUIET = [
    part(STOCK, ""),
    part(STOCK, "replicas: 3, workers: 5"),
    part(STOCK, "time: {median: 8ms, p99: 40ms}"),
    part(STOCK, "time: {constant: 10ms}"),
    part(STOCK, "queue: {limit: null, order: adaptive_lifo}"),
    part(STOCK, "queue: {limit: null, codel: {}}"),
    part(STOCK, "rate_limit: 200/s, limit: 20, refusal_cost: 50%"),
    part(SHOP, "blocking: false"),
    part(CALL, "deadline: 500ms, propagate: true"),
    part(CALL, "protect: default"),
    part(CALL, "rate_limit: 200/s, limit: 20"),
    part(CALL, "idempotent: false"),
    part(f"{SHOP}.calls.log", "to: stock, optional: true, wait: false"),
    part("clients.shoppers", "rate: null, users: 100, think: 1s"),
]


@pytest.mark.parametrize("patch", QUIET, ids=str)
def test_a_plain_system_at_a_tenth_of_its_load_hears_nothing(patch: Any) -> None:
    assert audited(patch) == []


# What each rule sees, what it says, and that doing what it says silences it.

WAIT = "backoff: 100ms"


def breach(rule: str, patches: list[Any], told: str) -> tuple[str, list[Any], str]:
    return rule, patches, told


BREACHES = [
    breach(
        "retry-layers",
        [part(OPEN, f"attempts: 2, {WAIT}"), part(CALL, f"attempts: 3, {WAIT}")],
        f"error {OPEN}: open tries 2 times what stock below it already repeats:"
        " open 2 x stock 3 = 6 attempts at stock for one open",
    ),
    breach(
        "effects-repeated",
        [part(CALL, f"attempts: 3, {WAIT}, budget: 10%"), part(OPEN, "idempotent: false")],
        f"error {OPEN}: open is not idempotent and stands above stock, which is tried 3 times:"
        " after a timeout or an error it can be done twice",
    ),
    breach(
        "effects-repeated",
        [part(OPEN, f"attempts: 2, {WAIT}, budget: 10%"), part(CALL, "idempotent: false")],
        f"error {CALL}: stock is not idempotent and stands below open, which is tried 2 times:"
        " after a timeout or an error it can be done twice",
    ),
    breach(
        "overloaded-at-once",
        [part(CALL, "attempts: 3, budget: 10%")],
        f"error {CALL}: when stock refuses because it is overloaded, the call stock asks again in"
        " the same instant, up to 2 more times",
    ),
    breach(
        "retry-at-once",
        [part(CALL, "attempts: 2, budget: 10%, retry_on: [timeout]")],
        f"warning {CALL}: stock repeats without a wait: all callers that failed together come back"
        " together, at once",
    ),
    breach(
        "retry-no-jitter",
        [part(CALL, "attempts: 2, budget: 10%, backoff: {base: 80ms, jitter: none}")],
        f"warning {CALL}: stock waits exactly 80ms: all callers that failed together come back"
        " together",
    ),
    breach(
        "attempts-multiply",
        [part(CALL, f"attempts: 5, {WAIT}")],
        "warning clients.shoppers: one action of shoppers can become 5 attempts at stock: stock 5",
    ),
    breach(
        "attempts-multiply",
        [part(OPEN, f"attempts: 2, {WAIT}"), part(CALL, f"attempts: 2, {WAIT}")],
        "warning clients.shoppers: one action of shoppers can become 4 attempts at stock:"
        " open 2 x stock 2 = 4",
    ),
    breach(
        "retry-no-budget",
        [part(CALL, f"attempts: 3, {WAIT}")],
        f"warning {CALL}: stock tries 3 times with no budget: when stock fails, it is sent 3 times"
        " the load instead of 1.1 times",
    ),
    breach(
        "retry-no-budget",
        [part(CALL, f"attempts: 3, {WAIT}, budget: 100%")],
        f"warning {CALL}: stock tries 3 times with its budget of 100%: when stock fails, it is sent"
        " 2 times the load instead of 1.1 times",
    ),
    breach(
        "refusals-repeated",
        [part(STOCK, "refusal_cost: 25%"), part(CALL, f"attempts: 9, {WAIT}")],
        "error services.stock: a refusal takes stock 25% of the work of an answer, and stock asks"
        " up to 9 times: to refuse one request costs up to 2.25 times what serving it would",
    ),
    breach(
        "refusals-repeated",
        [part(STOCK, "refusal_cost: 25%"), part(CALL, f"attempts: 2, {WAIT}")],
        "warning services.stock: a refusal takes stock 25% of the work of an answer, and stock asks"
        " up to 2 times: to refuse one request costs up to 0.5 times what serving it would",
    ),
    breach(
        "no-timeout",
        [part(CALL, "timeout: null")],
        f"error {CALL}: stock has no timeout: each request that meets a stalled stock holds one of"
        " shop's workers for ever",
    ),
    breach(
        "no-timeout",
        [part(OPEN, "timeout: null")],
        f"warning {OPEN}: open has no timeout: each request that meets a stalled shop waits"
        " for ever",
    ),
    breach(
        "timeout-inversion",
        [part(CALL, "timeout: 3s")],
        f"warning {CALL}: stock waits up to 3s, but open gives up on shop after 2s: what comes"
        " later is for nobody",
    ),
    breach(
        "attempts-outlive-caller",
        [part(CALL, f"attempts: 4, timeout: 500ms, {WAIT}, budget: 10%")],
        f"warning {CALL}: stock can take 2.7s (4 attempts of 500ms with their waits), but open"
        " gives up on shop after 2s: the last attempts are for nobody",
    ),
    breach(
        "calls-outlive-caller",
        [
            part(CALL, "timeout: 1200ms"),
            part(f"{SHOP}.calls.offers", "to: stock, optional: true, timeout: 1s"),
        ],
        f"warning {OPEN}: shop may take 2.2s for its calls, one after another, but open gives up on"
        " shop after 2s: what comes later is for nobody",
    ),
    breach(
        "timeout-below-p99",
        [part(CALL, "timeout: 20ms")],
        f"warning {CALL}: stock gives up after 20ms, and stock's own work takes longer in 13.5% of"
        " healthy requests (mean 10ms, p99 46.1ms)",
    ),
    breach(
        "timeout-below-p99",
        [part(CALL, "timeout: 5ms, deadline: 5ms")],
        f"error {CALL}: stock gives up after 5ms, and stock's own work takes longer in 60.7% of"
        " healthy requests (mean 10ms, p99 46.1ms)",
    ),
    breach(
        "abandoned-finished",
        [part(CALL, f"attempts: 3, {WAIT}")],
        "warning services.stock: stock leaves after 500ms and asks again, while stock finishes what"
        " it asked before: up to 3 requests' work for one answer",
    ),
    breach(
        "late-untold",
        [part(STOCK, "queue: {late: true}")],
        "warning services.stock: stock drops what can no longer finish in time, but the call stock"
        " does not say how long it waits: nothing of it is ever dropped",
    ),
    breach(
        "pool-fills",
        [part(CALL, "per_request: 50%, timeout: 1500ms")],
        f"error {CALL}: when stock stalls, shop wants 77 workers and has 40 (stock holds 100/s x"
        " 50% x 1.5s): requests that could do without it find none",
    ),
    breach(
        "pool-fills",
        [part(OPEN, "timeout: 60s"), part(CALL, "timeout: 30s")],
        f"warning {CALL}: when stock stalls, shop wants 3,002 workers and has 40 (stock holds 100/s"
        " x 1 x 30s): 1.2% of its calls are enough to take the last",
    ),
    breach(
        "queue-outlives-callers",
        [part(STOCK, "queue: {limit: 1000}")],
        "error services.stock.queue: 1,000 waiting places are 1s of work, and stock leaves after"
        " 500ms: behind place 500 everybody is served for nobody",
    ),
    breach(
        "queue-outlives-callers",
        [part(STOCK, "queue: {limit: 1000}, abandoned: skip")],
        "warning services.stock.queue: 1,000 waiting places are 1s of work, and stock leaves after"
        " 500ms: behind place 500 everybody is served for nobody",
    ),
    breach(
        "queue-unbounded",
        [part(STOCK, "queue: null")],
        "note services.stock: the queue of stock has no end: in an overload everybody waits longer"
        " than they are willing to",
    ),
    breach(
        "queue-unbounded",
        [part(STOCK, "queue: null"), part(CALL, f"attempts: 2, {WAIT}")],
        "warning services.stock: the queue of stock has no end: in an overload everybody waits"
        " longer than they are willing to, and stock will ask again meanwhile",
    ),
    breach(
        "limit-below-demand",
        [part(STOCK, "rate_limit: 80/s")],
        "error services.stock.rate_limit: stock lets 80/s through and 100/s come when nothing is"
        " wrong: 20% of them are refused",
    ),
    breach(
        "limit-below-demand",
        [part(STOCK, "time: 100ms, workers: 100, limit: 5")],
        "error services.stock.limit: stock lets 5 in at once, and 10 are in when nothing is wrong"
        " (100/s x 100ms)",
    ),
    breach(
        "limit-below-demand",
        [part(SHOP, "replicas: 2"), part(CALL, "rate_limit: 40/s")],
        f"error {CALL}.rate_limit: stock lets 80/s through and 100/s come when nothing is wrong:"
        " 20% of them are refused",
    ),
    breach(
        "hard-edge",
        [part(CALL, "per_request: 50%")],
        f"note {CALL}: only 50% of shop's requests call stock, and those fail without it",
    ),
    breach(
        "hard-edge",
        [part(CALL, "per_request: 50%, timeout: 1500ms")],
        f"warning {CALL}: only 50% of shop's requests call stock, and those fail without it: when"
        " it stalls, the others fall with them",
    ),
    breach(
        "hard-edge",
        [part("clients.buyers", "rate: 10/s, calls: {pay: {to: stock, timeout: 1s}}")],
        f"note {CALL}: shop holds a worker for stock, which buyers call directly: what is done to"
        " it for them is felt here",
    ),
    breach(
        "shared-without-share",
        [part("clients.buyers", "rate: 10/s, calls: {pay: {to: stock, timeout: 1s}}")],
        "note services.stock: 2 callers for different clients share stock, and nothing keeps pay"
        " from taking all of its workers",
    ),
    breach(
        "shared-without-share",
        [
            part("clients.buyers", "rate: 10/s, calls: {pay: {to: stock, timeout: 1s}}"),
            part(CALL, f"attempts: 2, {WAIT}"),
        ],
        "warning services.stock: 2 callers for different clients share stock, and nothing keeps"
        " stock from taking all of its workers",
    ),
]


@pytest.mark.parametrize(("rule", "patches", "told"), BREACHES, ids=lambda value: str(value)[:40])
def test_a_breach_is_told_with_its_numbers(rule: str, patches: list[Any], told: str) -> None:
    hits = [finding for finding in audited(*patches) if finding.rule == rule]
    assert [f"{hit.severity} {hit.where}: {hit.says}" for hit in hits] == [told]


@pytest.mark.parametrize(("rule", "patches", "told"), BREACHES, ids=lambda value: str(value)[:40])
def test_its_yaml_silences_it(rule: str, patches: list[Any], told: str) -> None:
    before = document(*patches)
    (hit,) = [finding for finding in audit(parsed(before)) if finding.rule == rule]
    after = merged(before, yaml.safe_load(hit.yaml))
    assert rule not in {finding.rule for finding in audit(parsed(after))}


def test_every_rule_has_a_breach_above() -> None:
    assert {rule for rule, _, _ in BREACHES} == {rule.name for rule in RULES}


def test_rules_have_names_of_their_own() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


# What takes the edge off, and what does not.

SILENT = [
    ("retry-layers", [part(OPEN, "attempts: 2"), part(CALL, "attempts: 3, budget: 10%")]),
    ("retry-layers", [part(OPEN, "attempts: 2, budget: 10%"), part(CALL, "attempts: 3")]),
    # What was refused below comes up as a failure, which this layer does not repeat.
    (
        "retry-layers",
        [part(OPEN, "attempts: 2, retry_on: [overloaded]"), part(CALL, "attempts: 3")],
    ),
    ("retry-layers", [part(OPEN, "attempts: 2, retry_on: []"), part(CALL, "attempts: 3")]),
    ("retry-no-budget", [part(CALL, "attempts: 9, retry_on: []")]),
    ("effects-repeated", [part(CALL, "attempts: 3, retry_on: [overloaded], idempotent: false")]),
    ("refusals-repeated", [part(STOCK, "refusal_cost: 25%"), part(CALL, "retry_on: [timeout]")]),
    ("attempts-multiply", [part(OPEN, "attempts: 3, budget: 10%"), part(CALL, "attempts: 3")]),
    # Whoever is told how much time is left stops in time; so does whoever is cancelled.
    ("timeout-inversion", [part(OPEN, "propagate: true"), part(CALL, "timeout: 3s")]),
    ("timeout-inversion", [part(SHOP, "abandoned: cancel"), part(CALL, "timeout: 3s")]),
    ("attempts-outlive-caller", [part(CALL, "attempts: 9, deadline: 2s")]),
    ("no-timeout", [part(CALL, "timeout: null, deadline: 1s")]),
    ("no-timeout", [part(OPEN, "propagate: true"), part(CALL, "timeout: null")]),
    ("no-timeout", [part(CALL, "timeout: null, optional: true, wait: false")]),
    ("late-untold", [part(STOCK, "queue: {late: true}"), part(CALL, "propagate: true")]),
    ("abandoned-finished", [part(CALL, "attempts: 3, budget: 10%")]),
    ("abandoned-finished", [part(CALL, "attempts: 3, retry_on: [failure, overloaded]")]),
    ("abandoned-finished", [part(CALL, "attempts: 3"), part(STOCK, "queue: {late: true}")]),
    (
        "pool-fills",
        [part(SHOP, "blocking: false"), part(CALL, "per_request: 50%, timeout: 1900ms")],
    ),
    ("pool-fills", [part(CALL, "per_request: 50%, timeout: 1500ms, limit: 10")]),
    ("pool-fills", [part(CALL, "per_request: 50%, timeout: 1500ms, limit: {adaptive: {}}")]),
    # A breaker ends it after the first attempts; what those hold must fit all the same.
    ("pool-fills", [part(CALL, "per_request: 50%, timeout: 600ms, attempts: 3, breaker: 50%")]),
    ("queue-outlives-callers", [part(STOCK, "queue: {limit: 1000, order: lifo}")]),
    ("queue-outlives-callers", [part(STOCK, "queue: {limit: 500}")]),
    ("queue-unbounded", [part(STOCK, "queue: null, limit: 30")]),
    ("queue-unbounded", [part(STOCK, "queue: null, workers: null")]),
    ("hard-edge", [part(CALL, "per_request: 50%, optional: true")]),
    (
        "shared-without-share",
        [
            part("clients.buyers", "rate: 10/s, calls: {pay: {to: stock, limit: 5}}"),
            part(CALL, "limit: 5"),
        ],
    ),
    # Two ways of one client are not two strangers.
    ("shared-without-share", [part("clients.shoppers.calls.look", "to: stock, timeout: 1s")]),
]


@pytest.mark.parametrize(("rule", "patches"), SILENT, ids=str)
def test_what_is_held_is_not_told(rule: str, patches: list[Any]) -> None:
    assert rule not in rules(*patches)


def test_a_breaker_that_learns_too_late_does_not_save_the_pool() -> None:
    slow = part(CALL, "per_request: 50%, timeout: 1500ms, attempts: 3, breaker: 50%")
    assert "pool-fills" in rules(slow)


def test_every_short_caller_is_named_in_the_fix() -> None:
    quick = part("clients.buyers", "rate: 1/s, calls: {buy: {to: shop, timeout: 1s}}")
    (hit,) = [f for f in audited(quick, part(CALL, "timeout: 3s")) if f.rule == "timeout-inversion"]
    assert "buy gives up on shop after 1s" in hit.says
    assert "buy and open" in hit.fix
    assert yaml.safe_load(hit.yaml) == {
        "clients": {
            "buyers": {"calls": {"buy": {"propagate": True}}},
            "shoppers": {"calls": {"open": {"propagate": True}}},
        }
    }


def test_a_circle_of_calls_that_nobody_waits_for_ends() -> None:
    back = part(f"{STOCK}.calls.event", "to: shop, optional: true, wait: false, attempts: 3")
    assert "retry-no-budget" in rules(back)


def test_protect_default_is_judged_as_it_is_written_out() -> None:
    assert "no-timeout" not in rules(part(CALL, "timeout: null, protect: default"))


# The founding case: an upgrade slows a marketplace, and an issue tracker falls with it.


def test_a_tracker_whose_licence_checks_stall_wants_3100_of_its_1000_workers() -> None:
    (hit,) = [f for f in audited(base=MARKETPLACE) if f.rule == "pool-fills"]
    assert hit.says == (
        "when edge stalls, tracker wants 3,100 workers and has 1,000 (licences holds 500/s x 30% x"
        " 20s): requests that could do without it find none"
    )


@pytest.mark.parametrize(
    ("setting", "wanted"),
    [("attempts: 2", 3100.0), ("timeout: 1s, attempts: 1", 250.0), ("timeout: 1ms", 100.3)],
)
def test_how_many_workers_a_stalled_check_holds(setting: str, wanted: float) -> None:
    licences = part("services.tracker.calls.licences", setting)
    view = View(parsed(document(licences, base=MARKETPLACE)))
    (edge,) = [edge for edge in view.edges if edge.name == "licences"]
    found = stall(view, edge)
    assert found is not None
    assert found.wanted == pytest.approx(wanted)


def test_one_page_can_become_six_attempts_at_the_marketplace() -> None:
    told = {f.rule: f for f in audited(base=MARKETPLACE)}
    assert told["attempts-multiply"].where == "clients.readers"
    assert "6 attempts at marketplace: licences 2 x market 3 = 6" in told["attempts-multiply"].says
    assert told["retry-layers"].where == "services.tracker.calls.licences"


def test_the_worst_is_told_first_and_the_order_is_that_of_the_file() -> None:
    told = [(f.severity, f.where) for f in audited(base=MARKETPLACE)]
    ranks = ["error", "warning", "note"]
    assert told == sorted(told, key=lambda item: ranks.index(item[0]))
    warned = [where.split(".")[1] for severity, where in told if severity == "warning"]
    assert warned == sorted(warned, key=["readers", "tracker", "edge", "marketplace"].index)


def test_a_limit_set_below_what_people_need_is_told_with_what_it_refuses() -> None:
    core = part(STOCK, "rate_limit: 600/s, workers: 100")
    (hit,) = [
        f
        for f in audited(core, part("clients.shoppers", "rate: 700/s"), part(SHOP, "workers: 400"))
        if f.rule == "limit-below-demand"
    ]
    assert "600/s through and 700/s come when nothing is wrong: 14.3% of them" in hit.says
