"""Which figures of a guard are worth a time series, and what are they called?

One table for every exporter: Prometheus and OpenTelemetry show the same figures under the same
names, and `docs/telemetry.md` is checked against it. Guards only count integers of their own;
nothing of an exporter runs until somebody collects.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from tidegate.core.circuit_breaker import State
from tidegate.runtime.dependency import GuardSnapshot

__all__ = ["METRICS", "Metric"]


class Metric(NamedTuple):
    """One figure of each dependency, or several told apart by `label`.

    `read` gives the figures of a snapshot by the label's values; none where it does not apply.
    The unit is one of UCUM, as OpenTelemetry writes it.
    """

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    label: str | None
    meaning: str
    read: Callable[[GuardSnapshot], Mapping[str, float]]


def _calls(seen: GuardSnapshot) -> Mapping[str, float]:
    return {
        "ok": seen.ok,
        "failed": seen.failed,
        "rejected": seen.rejected,
        "fallback": seen.fallback,
    }


def _state(seen: GuardSnapshot) -> Mapping[str, float]:
    return {state.value: float(state.value == seen.state) for state in State}


def _known(value: float | None) -> Mapping[str, float]:
    return {} if value is None else {"": value}


METRICS: Final = (
    Metric("tidegate.calls", "counter", "{call}", "result", "calls that are over", _calls),
    Metric(
        "tidegate.calls.pending",
        "gauge",
        "{call}",
        None,
        "calls that are under way",
        lambda seen: {"": seen.pending},
    ),
    Metric(
        "tidegate.calls.shared",
        "counter",
        "{call}",
        None,
        "calls that took the end of another that asked the same",
        lambda seen: {"": seen.shared},
    ),
    Metric(
        "tidegate.attempts",
        "counter",
        "{attempt}",
        "outcome",
        "attempts that are over",
        lambda seen: seen.outcomes,
    ),
    Metric(
        "tidegate.retries",
        "counter",
        "{attempt}",
        None,
        "attempts after the first of their call",
        lambda seen: {"": seen.retries},
    ),
    Metric(
        "tidegate.refused",
        "counter",
        "{attempt}",
        "reason",
        "attempts that were not sent, first ones and retries",
        lambda seen: seen.refused,
    ),
    Metric(
        "tidegate.would_refuse",
        "counter",
        "{attempt}",
        "reason",
        "attempts that were sent in observe mode and would else not have been",
        lambda seen: seen.would_refuse,
    ),
    Metric(
        "tidegate.state",
        "gauge",
        "1",
        "state",
        "1 for the state that the circuit is in, 0 for the others",
        _state,
    ),
    Metric(
        "tidegate.inflight",
        "gauge",
        "{attempt}",
        None,
        "attempts that are out, where they are limited",
        lambda seen: _known(seen.inflight),
    ),
    Metric(
        "tidegate.limit",
        "gauge",
        "{attempt}",
        None,
        "how many may be out",
        lambda seen: _known(seen.limit),
    ),
    Metric(
        "tidegate.retry_tokens",
        "gauge",
        "{attempt}",
        None,
        "retries that the budget would allow at once",
        lambda seen: _known(seen.retry_tokens),
    ),
)
"""Every figure, in the order in which one asks for them. Each has the label `dependency`, too."""
