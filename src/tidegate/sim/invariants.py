"""What must hold in every run?"""

from tidegate.errors import InvariantError
from tidegate.sim.world import World

__all__ = ["check"]


def check(world: World) -> None:
    """Raise unless everything that arrived is accounted for."""
    for name, service in world.services.items():
        tally = service.tally
        inside = sum(replica.in_system for replica in service.replicas)
        gone = sum(tally.served) + sum(tally.refused) + tally.dropped + tally.cancelled
        if sum(tally.arrived) != gone + inside:
            raise InvariantError(f"seed {world.seed}: {name} lost count of {sum(tally.arrived)}")
