"""How much can the workers of a service start within one step of the fluid?

A worker has time for so many works in a step, its turns: the step over what a work takes of it. It
stops at the first work whose calls outlast the step and is held until they end. How likely that is
shows only once the calls are made, so the first wave of a step starts one work for each worker, and
what came back of it decides how much the next may start.
"""

import math
from typing import Final, final

from tidegate.analysis.fluid.flow import LEAST

__all__ = ["Workers"]

_NEVER_HELD: Final = 1e-6  # a chance of being held that is as good as none


@final
class Workers:
    """All workers of a pool; `count` is infinite where the service has no limit.

    `capacity` is the share of them that a trigger leaves, `held` how many wait for calls.
    """

    __slots__ = (
        "_calling",
        "_count",
        "_dt",
        "_left",
        "_made",
        "_started",
        "_sticks",
        "_turns",
        "_worked",
        "capacity",
        "held",
    )

    def __init__(self, count: float, dt: float) -> None:
        self.capacity = 1.0
        self.held = 0.0
        self._count: Final = count
        self._dt: Final = dt
        self._turns = math.inf  # of a worker in a step, when it is never held
        self._left = math.inf  # of that in this step; below zero it is owed by the next
        self._started = 0.0  # in this step
        self._worked = 0.0  # own work that has ended in this step,
        self._made = 0.0  # how much of it went on to make calls,
        self._calling = 1.0  # and the share of that, when last seen
        self._sticks = 0.0  # the share of what is started that is held beyond the step

    @property
    def present(self) -> float:
        """How many there are now."""
        return self._count * self.capacity if self.capacity > 0 else 0.0

    @property
    def limited(self) -> bool:
        """Whether there is a bound on what they can start."""
        return self._count < math.inf or self.capacity <= 0

    @property
    def per_step(self) -> float:
        """Works that all of them end in a step when none is held."""
        return self.present * self._turns if self.present else 0.0

    def retime(self, own: float, below: float) -> None:
        """A work takes `own` seconds, and `below` more within the step if it goes on to call."""
        holding = own + below * self._calling
        self._turns = self._dt / holding if holding > 0 else math.inf

    def begin_step(self, *, frozen: bool) -> None:
        """A new step."""
        if self._worked > LEAST:
            self._calling = self._made / self._worked
        self._started = self._worked = self._made = 0.0
        self._left = 0.0 if frozen else self._turns + min(0.0, self._left)

    def startable(self, *, cautious: bool) -> float:
        """How much can be started in what is left of the step.

        In t turns, each held with probability s, a worker starts 1 + (1 - s)(1 - (1 - s)^(t - 1))/s
        works, or t if that is less than one. `cautious`: as long as s is not known, one.
        """
        turns, s = self._left, self._sticks
        if not self.limited:
            return math.inf if turns > 0 else 0.0
        free = self.present - self.held
        if free <= 0 or turns <= 0:
            return 0.0
        if turns <= 1:
            return free * turns
        if s > _NEVER_HELD:
            return free * (1 + (1 - s) * (1 - math.pow(1 - s, turns - 1)) / s)
        return free if cautious and self._started <= LEAST else free * turns

    def start(self, mass: float) -> None:
        """So much is started: time goes by on the free workers, `startable` solved for t."""
        self._started += mass
        free = self.present - self.held
        if not self.limited or free <= 0:
            return
        used, s = mass / free, self._sticks
        if used > 1 and s > _NEVER_HELD:
            left = 1 - s * (used - 1) / max(_NEVER_HELD, 1 - s)
            used = 1 + math.log(max(_NEVER_HELD, left)) / math.log(max(_NEVER_HELD, 1 - s))
        self._left = max(0.0, self._left - used)

    def charge(self, works: float) -> None:
        """So many works are done besides, now or at the cost of the next step."""
        if self.limited and self._turns < math.inf:
            self._left -= works / max(LEAST, self.present)

    def work_done(self, mass: float, calling: float) -> None:
        """Own work has ended, and `calling` of it goes on to make calls."""
        self._worked += mass
        self._made += calling

    def has_started(self) -> bool:
        """Whether anything was started in this step."""
        return self._started > LEAST

    def learn(self, returned: float) -> None:
        """Of what began its calls in this step, `returned` has already ended them."""
        whole = max(self._started, self._made)
        self._sticks = min(1.0, max(0.0, (self._made - returned) / whole)) if whole > LEAST else 0.0
