"""How does Prometheus see the guards?

    from tidegate.runtime.prometheus import register
    register()

A collector that is asked when somebody scrapes, so a call pays nothing for it. It shows the process
that it is in: workers that share a port need one each to be scraped. Names are those of `metrics`,
with underscores, and `_total` for what only grows. Needs the extra `prometheus`.
"""

from collections.abc import Iterator
from typing import final

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tidegate.runtime import metrics, registry

__all__ = ["GuardCollector", "register"]


@final
class GuardCollector:
    """The figures of every dependency of this process, as a Prometheus collector."""

    def collect(self) -> Iterator[Metric]:
        """All of them, each dependency's of one instant."""
        snapshots = registry.snapshots()
        for metric in metrics.METRICS:
            name, labels = metric.name.replace(".", "_"), ["dependency"]
            if metric.label is not None:
                labels.append(metric.label)
            family: CounterMetricFamily | GaugeMetricFamily
            if metric.kind == "counter":
                family = CounterMetricFamily(name, metric.meaning, labels=labels)
            else:
                family = GaugeMetricFamily(name, metric.meaning, labels=labels)
            for dependency, seen in snapshots.items():
                for value, number in metric.read(seen).items():
                    family.add_metric([dependency, value][: len(labels)], number)
            yield family

    def describe(self) -> list[Metric]:
        """Nothing: registering must not ask the guards anything."""
        return []


def register(to: CollectorRegistry = REGISTRY) -> GuardCollector:
    """Show the guards in `to`; `to.unregister` with the answer ends it.

    Raises ValueError, from Prometheus, if another collector there has one of the names.
    """
    collector = GuardCollector()
    to.register(collector)
    return collector
