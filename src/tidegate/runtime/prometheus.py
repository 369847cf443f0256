"""How does Prometheus see the guards and the doors?

    from tidegate.runtime.prometheus import register
    register()

A collector that is asked when somebody scrapes, so a call pays nothing for it. It shows the process
that it is in: workers that share a port need one each to be scraped. Names are those of `metrics`,
with underscores, and `_total` for what only grows. Needs the extra `prometheus`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, final

from tidegate.errors import missing_extra

try:
    from prometheus_client import REGISTRY, CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
except ModuleNotFoundError as error:
    raise missing_extra(error, "prometheus") from None

from tidegate.runtime import metrics

__all__ = ["GuardCollector", "families", "register"]


@final
class GuardCollector:
    """The figures of every dependency and door of this process, as a Prometheus collector."""

    def collect(self) -> Iterator[Metric]:
        """All of them, each dependency's and each door's of one instant."""
        seen = {of: list(source()) for of, source in metrics.SOURCES.items()}
        return families(metrics.METRICS, seen)

    def describe(self) -> list[Metric]:
        """Nothing: registering must not ask anybody anything."""
        return []


def families(
    table: Iterable[metrics.Metric], seen: Mapping[str, Iterable[tuple[str, Any]]]
) -> Iterator[Metric]:
    """The figures of a table in what was seen, by the kind of who was seen (`Metric.of`)."""
    for metric in table:
        name, labels = metric.name.replace(".", "_"), [metric.of]
        if metric.label is not None:
            labels.append(metric.label)
        family: CounterMetricFamily | GaugeMetricFamily
        if metric.kind == "counter":
            family = CounterMetricFamily(name, metric.meaning, labels=labels)
        else:
            family = GaugeMetricFamily(name, metric.meaning, labels=labels)
        for names, number in metric.series(seen[metric.of]).items():
            family.add_metric(names[: len(labels)], number)
        yield family


def register(to: CollectorRegistry = REGISTRY) -> GuardCollector:
    """Show guards and doors in `to`; `to.unregister` with the answer ends it.

    Raises ValueError, from Prometheus, if another collector there has one of the names.
    """
    collector = GuardCollector()
    to.register(collector)
    return collector
