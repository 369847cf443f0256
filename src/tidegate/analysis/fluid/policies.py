"""What do a caller's policies do to a fluid?

The fluid twins of the budget, the throttle, the breaker and the limits in `core`: the same settings
and the same laws, applied to masses per step instead of single attempts. They are approximations: a
window forgets smoothly instead of at its edge, and the policies of a caller's replicas are taken
together, as if every replica saw the same.
"""

import math
from collections.abc import Iterator
from typing import Final, Literal, final

from tidegate.core.limit.gradient import GradientLimit
from tidegate.core.limit.vegas import VegasLimit
from tidegate.settings import policies as settings
from tidegate.settings.policies import Backoff, RateLimit
from tidegate.units import SECOND

__all__ = ["Bucket", "Budget", "Circuit", "Gate", "Throttle", "waits"]

State = Literal["closed", "open", "half-open", "ramping"]

_CERTAIN: Final = {"full": 0.0, "equal": 0.5, "none": 1.0}  # of a wait, how much is not chance
_PROBES_FAIL: Final = 0.2  # three probes in a row succeed half of the time when one in five fails


def waits(
    backoff: Backoff | None, retry: int, dt: float, *, blur: bool
) -> Iterator[tuple[int, float]]:
    """Before retry number `retry`: (steps, share). With `blur` a jitter is two waits, else one.

    The two stand for the halves of what the jitter draws from. Decorrelated jitter goes by the wait
    before, which is taken at its mean.
    """
    if backoff is None:
        yield 0, 1.0
        return
    longest = backoff.longest(retry) / SECOND / dt
    if backoff.jitter == "decorrelated":
        low, longest = (bound / SECOND / dt for bound in _decorrelated(backoff, retry))
    else:
        low = longest * _CERTAIN[backoff.jitter]
    near, far = (low + (longest - low) * part for part in (0.25, 0.75))
    if round(near) == round(far) or not blur:
        yield round((near + far) / 2), 1.0
    else:
        yield round(near), 0.5
        yield round(far), 0.5


def _decorrelated(backoff: Backoff, retry: int) -> tuple[float, float]:
    """The shortest and the longest wait after one of mean length, in nanoseconds."""
    low = mean = float(backoff.base)
    longest = mean
    for _ in range(retry):
        longest = min(backoff.SPREAD * mean, backoff.max)
        mean = (low + longest) / 2
    return low, longest


@final
class Budget:
    """A retry budget, of `hosts` callers together."""

    __slots__ = ("_floor", "_forget", "_ratio", "_requests", "_tokens")

    def __init__(self, budget: settings.Budget, hosts: int, dt: float) -> None:
        self._ratio: Final = budget.ratio
        self._floor: Final = float(hosts) if budget.ratio else 0.0
        self._forget: Final = math.exp(-dt * SECOND / budget.window)
        self._requests = 0.0  # first attempts of about a window
        self._tokens = 0.0

    def step(self) -> None:
        """Time goes on by one step."""
        self._requests *= self._forget

    def deposit(self, mass: float) -> None:
        """So many first attempts were made."""
        self._requests += mass
        cap = max(self._floor, self._ratio * self._requests)
        self._tokens = min(self._tokens + self._ratio * mass, cap)

    def withdraw(self, mass: float) -> float:
        """How many of the retries wanted may be made."""
        allowed = min(mass, self._tokens)
        self._tokens -= allowed
        return allowed


@final
class Throttle:
    """A client-side throttle, of `hosts` callers together."""

    __slots__ = ("_accepts", "_forget", "_requests", "_set", "_volume")

    def __init__(self, throttle: settings.Throttle, hosts: int, dt: float) -> None:
        self._set: Final = throttle
        self._volume: Final = throttle.volume * hosts
        # Forgetting by e over half a window holds, like the window, half a window's mean age.
        self._forget: Final = math.exp(-2 * dt * SECOND / throttle.window)
        self._requests = self._accepts = 0.0

    @property
    def share(self) -> float:
        """How much of what is wanted is kept back."""
        excess = self._requests - self._set.ratio * self._accepts
        if excess <= 0 or 2 * self._requests < self._volume:
            return 0.0
        return min(self._set.most, excess / (self._requests + 1))

    def step(self) -> None:
        """Time goes on by one step."""
        self._requests *= self._forget
        self._accepts *= self._forget

    def take(self, mass: float) -> float:
        """How much of it may be sent; what is kept back is wanted all the same."""
        kept = mass * self.share
        self._requests += kept
        return mass - kept

    def release(self, mass: float, *, accepted: bool) -> None:
        """So much has ended."""
        self._requests += mass
        if accepted:
            self._accepts += mass


@final
class Bucket:
    """A rate limit, or a `share` of one. At least what may come in a step may come at once."""

    __slots__ = ("_burst", "_per_step", "_tokens")

    def __init__(self, limit: RateLimit, dt: float, share: float = 1.0) -> None:
        self._per_step: Final = limit.rate * share * dt
        burst = limit.burst if limit.burst is not None else max(1.0, limit.rate / 10)
        self._burst: Final = max(burst * share, self._per_step)
        self._tokens = self._burst

    def step(self) -> None:
        """Time goes on by one step."""
        self._tokens = min(self._burst, self._tokens + self._per_step)

    def take(self, mass: float) -> float:
        """How much of it may pass."""
        passed = min(mass, self._tokens)
        self._tokens -= passed
        return passed


@final
class Gate:
    """A concurrency limit. `turns` is how often a place is used within a step, at least once.

    A law that goes by latency is the one of `core` itself, as each of the hosts has it, told of
    rounds of so many samples each. What is answered within a step has taken `dt` / `turns`.
    """

    __slots__ = (
        "_adaptive",
        "_cut_at",
        "_dt",
        "_hosts",
        "_inflight",
        "_law",
        "_round",
        "_samples",
        "limit",
        "turns",
    )

    def __init__(self, limit: settings.Limit, hosts: int, dt: float) -> None:
        self._adaptive: Final = limit.adaptive
        self._hosts: Final = hosts
        self._dt: Final = dt * SECOND
        law = limit.law
        each = law.start if law is not None else limit.max
        assert each is not None
        self.limit = float(each * hosts)
        self.turns = 1.0
        self._inflight = 0.0
        self._cut_at = -1
        self._law: GradientLimit | VegasLimit | None = None
        self._samples = 0.0
        if limit.gradient is not None:
            self._law, self._samples = GradientLimit(limit.gradient), float(limit.gradient.samples)
        elif limit.vegas is not None:
            self._law, self._samples = VegasLimit(limit.vegas), float(limit.vegas.samples)
        self._round: _Round = _Round(0)

    def take(self, mass: float) -> float:
        """How much of it may start."""
        passed = min(mass, max(0.0, self.limit - self._inflight) * self.turns)
        self._inflight += passed
        return passed

    def release(self, now: int, sent: int, mass: float, *, trouble: bool) -> None:
        """So much has ended; what began before the last cut says nothing about the limit now."""
        law = self._adaptive
        if self._law is not None:
            self._gather(self._law, now, sent, mass, trouble=trouble)
        elif law is not None and sent > self._cut_at:
            if trouble:
                self.limit = max(law.min * self._hosts, self.limit * law.decrease)
                self._cut_at = now
            elif self._inflight * 2 >= self.limit:
                # One more per round trip for each host: `limit` successes.
                most = float(law.max * self._hosts)
                self.limit = min(most, self.limit + self._hosts * mass / self.limit)
        self._inflight = max(0.0, self._inflight - mass)

    def _gather(
        self,
        law: GradientLimit | VegasLimit,
        now: int,
        sent: int,
        mass: float,
        *,
        trouble: bool,
    ) -> None:
        """Add to the round, and let the law hear of it when it is over."""
        seen = self._round
        fresh = sent >= seen.began
        if not trouble:
            seen.good += mass
            seen.time += mass * max(now - sent, 1 / self.turns)
        elif fresh:
            seen.trouble = True
        else:
            return
        seen.mass += mass
        seen.most = max(seen.most, min(self._inflight, self.limit))
        if fresh and seen.mass >= self._samples * self._hosts:
            mean = max(1.0, seen.time / seen.good * self._dt) if seen.good > 0 else 0.0
            each = law.on_round(
                round(now * self._dt), mean, seen.most / self._hosts, trouble=seen.trouble
            )
            self.limit = float(each * self._hosts)
            self._round = _Round(now)


class _Round:
    """The masses of a limit's present round; times in steps."""

    __slots__ = ("began", "good", "mass", "most", "time", "trouble")

    def __init__(self, began: int) -> None:
        self.began: Final = began
        self.mass = self.good = self.time = self.most = 0.0
        self.trouble = False


@final
class Circuit:
    """A circuit breaker, of `hosts` callers together."""

    __slots__ = (
        "_bad",
        "_dt",
        "_era",
        "_forget",
        "_good",
        "_hosts",
        "_left",
        "_set",
        "_until",
        "state",
    )

    def __init__(self, breaker: settings.Breaker, hosts: int, dt: float) -> None:
        self._set: Final = breaker
        self._hosts: Final = hosts
        self._dt: Final = dt
        # Forgetting by e over half a window holds, like the window, half a window's mean age.
        self._forget: Final = math.exp(-2 * dt * SECOND / breaker.window)
        self.state: State = "closed"
        self._good = self._bad = 0.0
        self._era = 0  # what was sent before this step says nothing
        self._until = 0
        self._left = 0.0  # probes that may still go out

    def step(self, now: int) -> None:
        """Time goes on by one step, and with it what time alone changes."""
        if self.state in {"closed", "ramping"}:
            self._good *= self._forget
            self._bad *= self._forget
        if now < self._until:
            return
        if self.state == "open":
            self._enter("half-open", now, self._set.lease)
            self._left = float(self._set.probes * self._hosts)
        elif self.state == "half-open":
            self._enter("open", now, self._set.open_for)
        elif self.state == "ramping":
            self.state = "closed"

    def take(self, now: int, mass: float) -> float:
        """How much of it may go out."""
        if self.state == "closed":
            return mass
        if self.state == "ramping":
            grown = max(0.0, 1 - (self._until - now) * self._dt * SECOND / self._set.ramp)
            return mass * (self._set.ramp_from + (1 - self._set.ramp_from) * grown)
        if self.state == "open":
            return 0.0
        passed = min(mass, self._left)
        self._left -= passed
        return passed

    def succeed(self, mass: float) -> None:
        """So much has gone well, while closed."""
        self._good += mass

    def release(self, now: int, sent: int, mass: float, *, ok: bool) -> None:
        """So much has ended."""
        if sent < self._era:
            return
        if ok:
            self._good += mass
        else:
            self._bad += mass
        total = self._good + self._bad
        if self.state == "half-open":
            if total >= self._set.probes * self._hosts * 0.999:
                if self._bad > _PROBES_FAIL * total:
                    self._enter("open", now, self._set.open_for)
                else:
                    self._enter("ramping" if self._set.ramp else "closed", now, self._set.ramp)
        elif not ok and total >= self._set.volume and self._bad >= self._set.failures * total:
            self._enter("open", now, self._set.open_for)

    def _enter(self, state: State, now: int, lasts: float) -> None:
        self.state = state
        self._era = now
        self._until = now + max(1, round(lasts / SECOND / self._dt))
        self._good = self._bad = 0.0
