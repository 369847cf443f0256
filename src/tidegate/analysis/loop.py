"""Which service would stay down, and along which path do the attempts multiply that keep it there?

The binding service is the one whose capacity in health is exceeded most by the load at worst, when
every attempt fails and every retry is made. The loop is the path on which one user action makes the
most attempts at it.
"""

from typing import Final

from tidegate.analysis.graph import Graph
from tidegate.findings import Loop

__all__ = ["binding_service", "pressures", "sustaining_loop"]

_AMPLIFIES: Final = 1.0 + 1e-9


def pressures(graph: Graph) -> dict[str, float]:
    """Load at worst over capacity in health, of each service that has a limit."""
    return {
        facts.service: graph.worst[facts.service] / facts.advertised
        for facts in graph.facts()
        if facts.advertised
    }


def binding_service(graph: Graph) -> str | None:
    """The service pressed hardest; None when every one could carry the worst load."""
    over = {name: pressure for name, pressure in pressures(graph).items() if pressure > 1}
    return max(over, key=over.__getitem__, default=None)


def sustaining_loop(graph: Graph, service: str) -> Loop | None:
    """The path to `service` with the most attempts for one user action; None if none multiplies."""
    paths = [hops for client in graph.system.clients if (hops := graph.worst_path(client, service))]
    worst = max(paths, key=lambda hops: hops[-1].cumulative, default=[])
    if not worst or worst[-1].cumulative <= _AMPLIFIES:
        return None
    client, total = worst[0].caller, worst[-1].cumulative
    path = " -> ".join([client, *(hop.callee for hop in worst)])
    return Loop(
        client=client,
        hops=worst,
        attempts_per_action=total,
        says=f"{path}: when {service} is slow, one request of {client} makes {total:g} attempts"
        f" there, and each makes it slower",
    )
