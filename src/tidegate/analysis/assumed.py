"""What would be tried on a system whose file names no trigger?

A freeze of ten seconds and half the capacity for a minute at each service that has a limit, twice
the load for a minute from each client. They are marked as assumed wherever they are shown, and one
of them that sticks is a warning, not a failure of the check.
"""

from typing import Final

from tidegate.analysis.graph import Graph
from tidegate.analysis.loop import pressures
from tidegate.settings.system import Trigger
from tidegate.units import MINUTE, SECOND, format_duration, format_rate, format_share

__all__ = ["TRIGGERS_MAX", "assumed_triggers", "in_words"]

TRIGGERS_MAX: Final = 9
"""So many assumed triggers are simulated: those at the services that the load presses hardest."""


def assumed_triggers(graph: Graph) -> tuple[dict[str, Trigger], list[str]]:
    """The triggers to try, and the names of those left out for want of room."""
    made: dict[str, Trigger] = {}
    pressure = pressures(graph)
    for name in sorted(pressure, key=lambda name: -pressure[name]):
        made[f"freeze {name}"] = Trigger(service=name, freeze=True, for_=10 * SECOND)
        made[f"half of {name}"] = Trigger(service=name, capacity=0.5, for_=MINUTE)
    loads = {
        f"twice the {name}": Trigger(client=name, load=2.0, for_=MINUTE)
        for name in graph.system.clients
    }
    room = max(2, TRIGGERS_MAX - min(len(loads), 3))
    kept = dict(list(made.items())[:room]) | dict(list(loads.items())[: TRIGGERS_MAX - room])
    left = [name for name in (*made, *loads) if name not in kept]
    return kept, left


def in_words(trigger: Trigger) -> str:
    """What a trigger does, as a sentence would say it."""
    what = []
    if trigger.slowdown is not None:
        what.append(f"{trigger.slowdown:g}x slower")
    if trigger.freeze:
        what.append("frozen")
    if trigger.capacity is not None:
        what.append(f"at {format_share(trigger.capacity)} of its capacity")
    if trigger.errors is not None:
        what.append(f"failing {format_share(trigger.errors)}")
    if trigger.latency is not None:
        what.append(f"{format_duration(trigger.latency)} further away")
    if trigger.load is not None:
        what.append(f"sending {trigger.load:g}x as much")
    if trigger.rate_limit is not None:
        what.append(f"limited to {format_rate(trigger.rate_limit.rate)}")
    if trigger.per_request is not None:
        what.append(f"made {trigger.per_request:g}x per request")
    of = "its" if trigger.of is None else f"its {trigger.of}"
    some = "" if trigger.replicas is None else f" ({trigger.replicas} of {of} replicas)"
    how_long = "until somebody acts"
    if trigger.for_ is not None:
        how_long = f"for {format_duration(trigger.for_)}"
    return f"{trigger.target}{some} {', '.join(what)} {how_long}"
