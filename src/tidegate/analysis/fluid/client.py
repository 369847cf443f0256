"""Who sends requests into the fluid, how often, and were they served?

An open client sends its rate, a closed one as its users come back from thinking.
"""

from typing import Final, final

from tidegate.analysis.fluid.flow import LEAST, NEVER, Caller, Packet, Parts
from tidegate.settings import system as settings
from tidegate.units import SECOND

__all__ = ["Client"]


@final
class Client(Caller):
    """One population: what it sent in each step, and how much of that was served in time."""

    __slots__ = (
        "_dt",
        "_patience",
        "_rate",
        "_returns",
        "_think",
        "_thinking",
        "_users",
        "good",
        "load",
        "name",
        "offered",
    )

    def __init__(self, name: str, client: settings.Client, *, dt: float, patience: int) -> None:
        super().__init__(parallel=False)
        self.name: Final = name
        self.load = 1.0
        self.offered: Final[list[float]] = []
        self.good: Final[list[float]] = []
        self._patience: Final = patience
        self._rate: Final = (client.rate or 0.0) * dt
        self._users: Final = float(client.users or 0)
        self._thinking = self._users
        self._think: Final = client.think.average / SECOND if client.think else 0.0
        self._dt: Final = dt
        self._returns = 1.0  # the share of those who think that asks again in a step
        self.set_below(0.0)

    def set_below(self, seconds: float) -> None:
        """So much of an answer passes within a step: nobody is seen to wait for it."""
        pause = max(self._dt, self._think + seconds)
        self._returns = self._dt / pause

    def set_load(self, load: float) -> None:
        """Send `load` times as often, or be `load` times as many."""
        self._thinking += self._users * (load - self.load)
        self.load = load

    def arrive(self, now: int) -> None:
        """The requests of one step."""
        mass = self._rate * self.load
        if self._users:
            mass = max(0.0, self._thinking) * self._returns
            self._thinking -= mass
        self.offered.append(mass)
        self.good.append(0.0)
        if mass > LEAST:
            self.begin([(Packet(None, 1, mass, now, NEVER, 1.0), mass)])
            self.flush(now)

    def finish(self, now: int, parts: Parts, *, ok: bool) -> None:
        """Count what was served in time; a person goes back to thinking in any case."""
        for packet, mass in parts:
            if ok and now - packet.sent < self._patience:
                self.good[packet.sent] += mass
            self._thinking += mass
