"""What is the door of a service, to a fluid?

The same number inside, and the same number of waiting places, all in one line before the workers:
where somebody waits makes no difference to when he is served. An adaptive limit is left what it
is, and then who finds it full is refused instead of waiting. A fluid has no classes and no clients
who take turns, and CoDel is told of all waiting, not of what is beyond one service time; so a door
is a little better than it looks here.
"""

import msgspec

from tidegate.settings.policies import Queue
from tidegate.settings.system import Service

__all__ = ["without_door"]


def without_door(service: Service) -> Service:
    """`service` with a limit and a queue in place of its door, if it has one."""
    door = service.admission
    if door is None:
        return service
    most = door.limit.max
    if most is None or service.workers is None:
        return msgspec.structs.replace(service, admission=None, limit=door.limit)
    inside = max(0, most - service.workers)
    queue = Queue(limit=inside + door.queue, order=door.order, codel=door.codel)
    # Fewer let in than there are workers: the rest of the workers never gets any work.
    workers = min(service.workers, most)
    return msgspec.structs.replace(service, admission=None, workers=workers, queue=queue)
