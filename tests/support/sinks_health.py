"""Sinks of three brokers, as looks at them have found them."""

from tidegate.core.health import Health, Partition, View

__all__ = ["WHOLE", "health", "view"]


def view(seen_from: str = "a", *, in_sync: int = 3, leader: str | None = "1") -> View:
    """What one of three brokers says of one partition with three replicas."""
    return View(seen_from, "one", "1", 3, (Partition("events-7", leader, 3, in_sync),))


def health(in_sync: int = 3) -> Health:
    """Two brokers that agree."""
    return Health((view("a", in_sync=in_sync), view("b", in_sync=in_sync)))


WHOLE = health()
