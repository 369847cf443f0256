"""Which of those who wait is served next, and is it still worth serving?

Both are pure decisions; the queue and its workers are the shell's. In overload the order decides
between serving nobody in time and serving many: first in, first out serves each one just when its
caller is about to leave, so that the work is done and the answer lost.
"""

from typing import Final

from tidegate.settings.policies import Order
from tidegate.units import Duration, Instant

__all__ = ["FINISH_MARGIN", "can_finish", "takes_newest"]

FINISH_MARGIN: Final = 5
"""How many mean service times must be left, for an item to be worth beginning.

What is begun with m of them left ends too late in e^-m of cases, if service is exponential: 0.7 %
of the work is lost at five, 8 % at half of it. At the bare deadline (0) nearly all is: in overload
the oldest item that is not yet too late is by its very place in the queue about to become so.
Twice five refuses what would have been served: for callers who wait ten service times it abolishes
the queue. `benchmarks/queue_laws.py` shows each of these.
"""


def takes_newest(order: Order, waiting: int, workers: int) -> bool:
    """Whether the newest item is served next (True) or the oldest (False).

    `waiting` is how many wait, the one to be taken included. Adaptive LIFO (Maurer, "Fail at
    Scale", 2015) is fair while the queue is no longer than the workers, which is a burst that is
    gone within a service time or so; longer than that somebody must lose, and it serves those whose
    callers are sure to be still there.
    """
    if order == "adaptive_lifo":
        return waiting > workers
    return order == "lifo"


def can_finish(
    now: Instant,
    leaves_at: Instant,
    service_time_mean: Duration,
    *,
    enqueued_at: Instant | None = None,
) -> bool:
    """Whether what is begun now is likely to end before its caller leaves, at `leaves_at`.

    Given `enqueued_at`, no more than half of the caller's patience is asked as margin: else a
    service whose time is a fifth of the timeout or more would refuse everybody, busy or not.
    """
    margin = FINISH_MARGIN * service_time_mean
    if enqueued_at is not None:
        margin = min(margin, (leaves_at - enqueued_at) // 2)
    return now + margin <= leaves_at
