"""Small systems whose fate is known, for tests of what is concluded from runs."""

from typing import Any

from tidegate.settings.system import Call, Client, Service, System, Time, Trigger
from tidegate.units import MILLISECOND, SECOND


def stall(length: int) -> Trigger:
    return Trigger(service="store", freeze=True, for_=length)


def store(
    *, rate: float = 140.0, triggers: dict[str, Trigger] | None = None, **call: Any
) -> System:
    """Eight workers of 40 ms, so 200 requests a second; 500 ms and three retries at once."""
    settings = {"to": "store", "timeout": 500 * MILLISECOND, "attempts": 4} | call
    return System(
        clients={"shoppers": Client(rate=rate, calls={"buy": Call(**settings)})},
        services={"store": Service(workers=8, time=Time(mean=40 * MILLISECOND))},
        triggers={"stall": stall(10 * SECOND)} if triggers is None else triggers,
    )
