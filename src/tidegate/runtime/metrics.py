"""Which figures of guards and doors are worth a time series, and what are they called?

One table for every exporter: Prometheus and OpenTelemetry show the same figures under the same
names, and `docs/telemetry.md` is checked against it. Guards and doors only count integers of their
own; nothing of an exporter runs until somebody collects.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from tidegate.core.circuit_breaker import State
from tidegate.core.outcome import Outcome
from tidegate.runtime import doors, registry
from tidegate.runtime.dependency import GuardSnapshot
from tidegate.runtime.doors import ShedderSnapshot

__all__ = ["METRICS", "SOURCES", "Metric"]

SOURCES: Final[Mapping[str, Callable[[], Iterable[tuple[str, Any]]]]] = {
    "dependency": lambda: registry.snapshots().items(),
    "server": doors.snapshots,
}
"""Who is measured in this process: by the label that names them, all names and snapshots."""


class Metric(NamedTuple):
    """One figure of each dependency or of each server, or several told apart by `label`.

    `of` says of which (a key of `SOURCES`), and is the label that has its name. `read` gives the
    figures of a snapshot by the label's values; none where it does not apply. The unit is one of
    UCUM, as OpenTelemetry writes it.
    """

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    label: str | None
    meaning: str
    read: Callable[[Any], Mapping[str, float]]
    of: str = "dependency"

    def series(self, seen: Iterable[tuple[str, Any]]) -> Mapping[tuple[str, str], float]:
        """Its figures in all that was seen, by name and label; those of one name are added up:
        an exporter that is given the same series twice loses one of them, or all.
        """
        found: dict[tuple[str, str], float] = {}
        for name, snapshot in seen:
            for value, number in self.read(snapshot).items():
                found[name, value] = found.get((name, value), 0) + number
        return found


def _calls(seen: GuardSnapshot) -> Mapping[str, float]:
    return {
        "ok": seen.ok,
        "failed": seen.failed,
        "rejected": seen.rejected,
        "fallback": seen.fallback,
    }


def _state(seen: GuardSnapshot) -> Mapping[str, float]:
    return {state.value: float(state.value == seen.state) for state in State}


def _outcomes(seen: ShedderSnapshot) -> Mapping[str, float]:
    return {outcome.name.lower(): seen.door.done[outcome] for outcome in Outcome}


def _refused(seen: ShedderSnapshot) -> Mapping[str, float]:
    return {} if seen.mode == "observe" else seen.refused


def _would_wait(seen: ShedderSnapshot) -> Mapping[str, float]:
    return {"": seen.would_wait} if seen.mode == "observe" else {}


def _would_refuse(seen: ShedderSnapshot) -> Mapping[str, float]:
    return seen.refused if seen.mode == "observe" else {}


def _of_server(
    name: str,
    kind: Literal["counter", "gauge"],
    label: str | None,
    meaning: str,
    read: Callable[[ShedderSnapshot], Mapping[str, float]],
) -> Metric:
    return Metric(f"tidegate.server.{name}", kind, "{request}", label, meaning, read, "server")


def _known(value: float | None) -> Mapping[str, float]:
    return {} if value is None else {"": value}


_GUARDS: Final = (
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

_DOORS: Final = (
    _of_server(
        "admitted",
        "counter",
        None,
        "requests that were let in, at once or after a wait",
        lambda seen: {"": seen.admitted},
    ),
    _of_server("refused", "counter", "reason", "requests that were refused", _refused),
    _of_server(
        "left",
        "counter",
        None,
        "requests whose client left while they waited",
        lambda seen: {"": seen.left},
    ),
    _of_server(
        "outcomes",
        "counter",
        "outcome",
        "requests that were let in and are over",
        _outcomes,
    ),
    _of_server(
        "cancelled",
        "counter",
        None,
        "requests whose work was stopped because nobody waited for it any more",
        lambda seen: {"": seen.cancelled},
    ),
    _of_server(
        "late",
        "counter",
        None,
        "requests that were finished after their deadline",
        lambda seen: {"": seen.late},
    ),
    _of_server(
        "would_refuse",
        "counter",
        "reason",
        "requests that went in in observe mode and would else have been refused",
        _would_refuse,
    ),
    _of_server(
        "would_wait",
        "counter",
        None,
        "requests that went in in observe mode and would else have waited",
        _would_wait,
    ),
    _of_server(
        "waiting",
        "gauge",
        None,
        "requests that wait at the door",
        lambda seen: {"": seen.door.waiting},
    ),
    _of_server(
        "inside",
        "gauge",
        None,
        "requests that were let in and are under way",
        lambda seen: {"": seen.door.inside},
    ),
    _of_server(
        "limit",
        "gauge",
        None,
        "how many may be inside",
        lambda seen: {"": seen.door.limit},
    ),
)

METRICS: Final = (*_GUARDS, *_DOORS)
"""Every figure, in the order in which one asks for them. Each has the label of its `of`, too."""
