"""What did a counter read when the window began?

A policy that judges "the last ten seconds" only ever adds to a counter. A `Window` remembers, for
each of the ten latest buckets of time, what that counter read at the bucket's end; the difference
to the oldest of these marks is the count of the window. So counting is one addition, and the work
of sliding is done once per bucket, in here.

The window slides by whole buckets: it holds the present bucket and the nine before it, which is
between nine and ten tenths of the time asked for and never more.
"""

from typing import Final, final

from tidegate.units import Duration, Instant

__all__ = ["BUCKETS", "Window"]

# Hystrix and Finagle have ten as well. With five, a fifth of the evidence leaves at once and a
# share can jump across its threshold; with twenty, the work doubles and no decision changes.
BUCKETS: Final = 10


@final
class Window:
    """Marks of one counter that only grows. `ends` is when the present bucket is over.

    The owner calls `slide` when `now` has reached `ends`. A `now` before the present bucket is
    counted in it: a reading that lost a race to the lock moves nothing back.
    """

    __slots__ = ("_bucket", "_marks", "_width", "ends")

    def __init__(self, length: Duration, counter: int = 0) -> None:
        self._width: Final = length // BUCKETS
        self._marks: Final = [counter] * BUCKETS
        self._bucket = 0
        self.ends: Instant = 0

    def slide(self, now: Instant, counter: int) -> int:
        """Move on to `now`; the answer is what the counter read when the window began."""
        assert now >= self.ends
        bucket = now // self._width
        # After ten buckets without a call nothing is left, however long the pause was.
        for passed in range(min(bucket - self._bucket, BUCKETS)):
            self._marks[(self._bucket + passed) % BUCKETS] = counter
        self._bucket = bucket
        self.ends = (bucket + 1) * self._width
        return self._marks[bucket % BUCKETS]
