"""One service of some workers behind a limit, in virtual time: what does a law find there?"""

import heapq
from collections import deque
from random import Random

from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.outcome import SUCCESS
from tidegate.units import MILLISECOND, SECOND

SERVICE = 10 * MILLISECOND


class Station:
    """Poisson arrivals, exponential service; who finds the limit reached goes away."""

    def __init__(
        self, limiter: ConcurrencyLimiter, *, workers: int, rate: float, seed: int
    ) -> None:
        self.limiter, self.workers, self.rate = limiter, workers, rate
        self.luck = Random(seed)
        self.slower = 1.0
        self.now = 0
        self.busy = 0
        self.waiting: deque[int] = deque()  # since when
        self.ends: list[tuple[int, int]] = []  # when, and since when it is here
        self.next = 0

    def run(self, seconds: int) -> list[int]:
        """So many seconds more; how many were served in each."""
        start, until = self.now, self.now + seconds * SECOND
        served = [0] * seconds
        while True:
            self.now = min(self.next, self.ends[0][0]) if self.ends else self.next
            if self.now >= until:
                self.now = until
                return served
            if self.now == self.next:
                self.next += max(1, int(self.luck.expovariate(self.rate) * SECOND))
                if self.limiter.try_acquire(self.now):
                    self.waiting.append(self.now)
            else:
                _, since = heapq.heappop(self.ends)
                self.busy -= 1
                served[(self.now - start) // SECOND] += 1
                self.limiter.release(self.now, self.now - since, SUCCESS)
            while self.waiting and self.busy < self.workers:
                self.busy += 1
                took = self.luck.expovariate(1) * SERVICE * self.slower
                heapq.heappush(self.ends, (self.now + max(1, int(took)), self.waiting.popleft()))
