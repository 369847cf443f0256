"""How does OpenTelemetry see the guards and the doors?

    from tidegate.runtime.opentelemetry import instrument
    instrument()

Observable instruments, whose callbacks a reader calls when it collects. An instrument that is told
of each call would cost ten times the guard itself. Names, labels and units are those of `metrics`.
Needs the extra `opentelemetry`, which is the API alone; without an SDK nothing is collected.
"""

from collections.abc import Callable, Iterable

from tidegate.errors import missing_extra

try:
    from opentelemetry.metrics import (
        CallbackOptions,
        MeterProvider,
        Observation,
        get_meter,
    )
except ModuleNotFoundError as error:
    raise missing_extra(error, "opentelemetry") from None

from tidegate._version import __version__
from tidegate.runtime.metrics import METRICS, SOURCES, Metric

__all__ = ["instrument"]


def instrument(provider: MeterProvider | None = None) -> None:
    """Show guards and doors of this process to `provider`, the global one if left out. Once."""
    meter = get_meter("tidegate", __version__, provider)
    for metric in METRICS:
        create = (
            meter.create_observable_counter
            if metric.kind == "counter"
            else meter.create_observable_gauge
        )
        create(
            metric.name,
            callbacks=[_callback(metric)],
            unit=metric.unit,
            description=metric.meaning,
        )


def _callback(metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(_: CallbackOptions) -> Iterable[Observation]:
        for (name, value), number in metric.series(SOURCES[metric.of]()).items():
            attributes = {metric.of: name}
            if metric.label is not None:
                attributes[metric.label] = value
            yield Observation(number, attributes)

    return observe
