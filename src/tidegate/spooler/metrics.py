"""Which figures of a spool are worth a time series, and how does Prometheus see them?

    from tidegate.spooler.metrics import register
    register(keeper.status)

Everything is read from the one status record when somebody scrapes, so a record pays nothing for
it. One table, as for guards and doors (`runtime/metrics.py`): `docs/telemetry.md` and the alerts in
`docs/spool/alerts.yaml` are checked against it. Each series has its lane as a label, or for the
door its collector. What is not known, or does not apply, has no series.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal, final

from tidegate.core.bounds import Cause
from tidegate.runtime.metrics import Metric
from tidegate.spooler.status import LaneStatus, SpoolStatus

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric as Family

__all__ = ["METRICS", "STATES", "SpoolCollector", "exposition", "register"]

STATES: Final = ("direct", "spill", "wait", "ramp", "cruise", "hold")
"""Of a lane, as in `LaneStatus.state`."""

_Read = Callable[[LaneStatus], Mapping[str, float]]


def _metric(
    name: str,
    kind: Literal["counter", "gauge"],
    unit: str,
    meaning: str,
    read: _Read,
    label: str | None = None,
) -> Metric:
    return Metric(f"tidegate.spool.{name}", kind, unit, label, meaning, read, "lane")


def _one(field: str) -> _Read:
    """One field of the status; no series while it is not known."""

    def read(seen: LaneStatus) -> Mapping[str, float]:
        value = getattr(seen, field)
        return {} if value is None else {"": float(value)}

    return read


def _count(field: str, meaning: str, unit: str = "{record}") -> Metric:
    return _metric(field, "counter", unit, meaning, _one(field))


def _gauge(name: str, unit: str, meaning: str, field: str) -> Metric:
    return _metric(name, "gauge", unit, meaning, _one(field))


def _states(seen: LaneStatus) -> Mapping[str, float]:
    return {state: float(state == seen.state) for state in STATES}


def _lost(seen: LaneStatus) -> Mapping[str, float]:
    """Every cause, also at zero: an increase is seen only where there was a figure before."""
    return {cause.value: seen.lost.get(cause, 0) for cause in Cause}


def _sync(seen: LaneStatus) -> Mapping[str, float]:
    found = {"50": seen.sync_p50_s, "99": seen.sync_p99_s}
    return {share: value for share, value in found.items() if value is not None}


_LANES: Final = (
    _count("accepted", "records that were accepted, each durable as its lane says"),
    _count("refused", "records that were not accepted"),
    _count("delivered", "records that the sink has taken, replayed ones among them"),
    _count("replayed", "records delivered from the backlog"),
    _count("resent", "records sent again because an answer was lost or a process died"),
    _count("failed", "batches that the sink did not take", "{batch}"),
    _metric("lost", "counter", "{record}", "records not delivered, by cause", _lost, "cause"),
    _count("quarantined", "records set aside, because the sink would never take them"),
    _count("damaged", "blocks of the log that could not be read", "{block}"),
    _metric("state", "gauge", "1", "1 for the state that the lane is in", _states, "state"),
    _gauge("state.age", "s", "for how long it has been in its state", "since_s"),
    _metric(
        "gate.open",
        "gauge",
        "1",
        "1 while the sink is well enough for a replay",
        lambda seen: {"": float(seen.gate == "open")},
    ),
    _gauge("backlog", "{record}", "records that wait", "backlog_records"),
    _gauge("backlog.size", "By", "what they take", "backlog_bytes"),
    _gauge("backlog.age", "s", "age of the oldest record that waits", "oldest_s"),
    _gauge("endangered", "{record}", "records too old before their turn", "endangered"),
    _gauge("live.rate", "By/s", "what is accepted", "live_rate"),
    _gauge("replay.rate", "By/s", "what is replayed", "replay_rate"),
    _gauge("budget.rate", "By/s", "what the whole fleet may replay", "budget_rate"),
    _gauge("share.rate", "By/s", "what this one may replay", "share_rate"),
    _metric(
        "lease.held",
        "gauge",
        "1",
        "1 while it is this one's turn to replay",
        lambda seen: {"": float(seen.lease is not None)},
    ),
    _gauge("latency", "s", "how long the sink's answers take", "latency_s"),
    _gauge("latency.peace", "s", "how long they take in peace", "baseline_s"),
    _gauge("eta", "s", "until the backlog is gone, at the present rate", "eta_s"),
    _gauge("eta.least", "s", "the same if the sink gave all it has to spare", "limit_s"),
    _gauge("disk.size", "By", "what the lane takes of its disk", "disk_bytes"),
    _gauge("disk.bound", "By", "at how much it is full", "bound_bytes"),
    _gauge("disk.free", "By", "what is free on its disk", "disk_free"),
    _gauge("full", "1", "1 while nothing is accepted for want of room", "full"),
    _gauge("full.in", "s", "until it is full, if it goes on like this", "time_to_full_s"),
    _metric("sync", "gauge", "s", "how long the disk takes to make durable", _sync, "percentile"),
)

_DOOR: Final = (
    Metric(
        "tidegate.spool.answers",
        "counter",
        "{request}",
        "status",
        "requests at the door, those for health left out",
        lambda seen: seen.answers,
        "collector",
    ),
    Metric(
        "tidegate.spool.inside",
        "gauge",
        "By",
        None,
        "requests that are being received or written",
        lambda seen: {"": seen.inside_bytes},
        "collector",
    ),
)

METRICS: Final = (*_LANES, *_DOOR)
"""Every figure, in the order in which one asks for them. Each has the label of its `of`, too."""


@final
class SpoolCollector:
    """The figures of every lane as a Prometheus collector. Needs the extra `prometheus`."""

    def __init__(self, status: Callable[[], SpoolStatus]) -> None:
        from tidegate.runtime.prometheus import families

        self._status: Final = status
        self._families: Final = families

    def collect(self) -> "Iterator[Family]":
        """All of them, of one status."""
        seen = self._status()
        lanes = [(lane.name, lane) for lane in seen.lanes]
        return self._families(METRICS, {"lane": lanes, "collector": [(seen.collector, seen)]})

    def describe(self) -> "list[Family]":
        """Nothing: registering must not ask anybody anything."""
        return []


def register(
    status: Callable[[], SpoolStatus], to: "CollectorRegistry | None" = None
) -> SpoolCollector:
    """Show a spool in `to`, by default in Prometheus' own registry.

    Raises ValueError, from Prometheus, if another collector there has one of the names.
    """
    collector = SpoolCollector(status)
    if to is None:
        from prometheus_client import REGISTRY

        to = REGISTRY
    to.register(collector)
    return collector


def exposition(status: Callable[[], SpoolStatus]) -> tuple[bytes, str]:
    """What a scrape is answered, and its content type: this spool and nothing else."""
    collector = SpoolCollector(status)
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.exposition import CONTENT_TYPE_LATEST

    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry), CONTENT_TYPE_LATEST
