"""Who sends requests, how often, and were they served?

An open client sends at a rate, whatever happens to its requests (Poisson). A closed one is a number
of users who each wait for an answer, think, and ask again.
"""

from collections.abc import Callable
from heapq import heappush
from math import log
from random import Random
from typing import Any, Final, final

from tidegate.sim.loop import Callback, Event, Loop
from tidegate.sim.measure import ClientTally
from tidegate.sim.parts.caller import CallSite
from tidegate.sim.parts.steps import Steps
from tidegate.sim.parts.work import Frame, Request
from tidegate.units import MILLISECOND, SECOND, Duration, Instant

__all__ = ["Client"]

_PAUSE_MIN: Final = MILLISECOND  # after a request that took no time at all


@final
class Client:
    """One population of clients. `patience` is its own timeout: later answers are not goodput."""

    __slots__ = (
        "_active",
        "_arrive_event",
        "_eventual",
        "_gap_at_one",
        "_good",
        "_heap",
        "_loop",
        "_luck",
        "_mean_gap",
        "_next",
        "_only",
        "_patience",
        "_requests",
        "_think",
        "load",
        "name",
        "steps",
        "tally",
        "users",
    )

    def __init__(
        self,
        name: str,
        *,
        rate: float | None,
        users: int,
        think: Callable[[], Duration] | None,
        steps: Steps,
        only: CallSite | None,
        patience: Duration,
        loop: Loop,
        luck: Random,
        tally: ClientTally,
    ) -> None:
        self.name: Final = name
        self.steps: Final = steps
        self.tally: Final = tally
        self.users: Final = users
        self.load = 1.0
        self._active = 0
        self._gap_at_one: Final = 0.0 if rate is None else SECOND / rate
        self._mean_gap = self._gap_at_one
        self._only = only  # the call of a client that makes just one, always
        self._patience: Final = patience
        self._think: Final = think
        self._loop: Final = loop
        self._heap: Final[list[Event]] = loop.heap
        self._next: Final = loop.next
        self._luck: Final = luck.random
        self._requests: Final = tally.requests
        self._arrive_event: Final[Callback] = self.arrive
        self._eventual: Final = tally.eventual
        self._good: Final = tally.good

    def start(self, now: Instant) -> None:
        """Begin to send."""
        if self._think is None:
            self._schedule(now)
        else:
            self._hire(now)

    def set_load(self, now: Instant, load: float) -> None:
        """Send `load` times as often from now on, or with so many times the users."""
        if load == self.load:
            return
        self.load = load
        if self._think is not None:
            self._hire(now)
            return
        self._loop.take(self)  # Poisson arrivals have no memory, so the next gap is redrawn
        if load > 0:
            self._mean_gap = self._gap_at_one / load
            self._schedule(now)

    def count_calls(self) -> None:
        """How often it makes its calls may change: from now on, count them for each request."""
        self._only = None

    def arrive(self, now: Instant, _: None) -> None:
        """One more request of an open client, and more while nothing else comes before the next."""
        heap, luck, gap = self._heap, self._luck, self._mean_gap
        while True:
            self.request(now, None)
            now += int(-log(1.0 - luck()) * gap)
            if now >= heap[0][0]:
                heappush(heap, (now, self._next(), self._arrive_event, None))
                return

    def request(self, now: Instant, _: None) -> None:
        """One request."""
        self._requests.count += 1
        if self._only is not None:
            self._only.begin(now, Request(self, now))
            return
        frame = Frame(self, None, now)
        if self.steps.begin(now, frame):
            self._over(now, now, True)

    def call_done(self, now: Instant, frame: Any, optional: bool, ok: bool) -> None:
        """One call of a request is over."""
        if type(frame) is Request:
            if ok and self._think is None:  # as in `_over`, without the call
                second = frame.born // SECOND
                self._eventual[second] += 1
                if now - frame.born <= self._patience:
                    self._good[second] += 1
            else:
                self._over(now, frame.born, ok)
            return
        verdict = self.steps.after(now, frame, optional, ok)
        if verdict is not None:
            self.tally.degraded += verdict and frame.degraded
            self._over(now, frame.born, verdict)

    def _over(self, now: Instant, born: Instant, ok: bool) -> None:
        second = born // SECOND
        if ok:
            self._eventual[second] += 1
            if now - born <= self._patience:
                self._good[second] += 1
        else:
            self.tally.failed[second] += 1
        if self._think is not None:
            if self._active > self.users * self.load:
                self._active -= 1
            else:
                # Who is refused at once and does not think would ask for ever at one instant.
                pause = self._think() if now > born else max(self._think(), _PAUSE_MIN)
                self._loop.at(now + pause, self.request, None)

    def _hire(self, now: Instant) -> None:
        assert self._think is not None
        while self._active + 1 <= self.users * self.load:
            self._active += 1
            self._loop.at(now + self._think(), self.request, None)

    def _schedule(self, now: Instant) -> None:
        gap = int(-log(1.0 - self._luck()) * self._mean_gap)
        self._loop.at(now + gap, self._arrive_event)
