"""May this attempt start, and what do its results teach the policies of one dependency?

The order is fixed, because every other order has hurt somebody: throttle, then rate, then breaker,
then limit. What is kept at home takes no token of the rate, and an open breaker, which sends
nothing, tells the throttle nothing. A retry asks the budget before all of them, when it is decided
and not when its wait is over, so that a caller who cannot retry learns it at once. `admit` and
`settle` are the flat path of a call that succeeds at its first attempt; from its first failure on,
an `Execution` takes over with the same pipeline.
"""

from random import Random
from typing import Final, final

from tidegate.core.backoff import Backoff
from tidegate.core.calm import NEVER, Calm
from tidegate.core.circuit_breaker import CircuitBreaker
from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.outcome import (
    FAILURE,
    IGNORED,
    OVERLOADED,
    REJECTIONS,
    SUCCESS,
    TIMEOUT,
    Outcome,
    Permit,
    Reason,
    Rejection,
    Transition,
)
from tidegate.core.retry_budget import RetryBudget
from tidegate.core.throttle import Throttle
from tidegate.core.token_bucket import TokenBucket
from tidegate.settings.policies import Backoff as BackoffSettings
from tidegate.settings.policies import RateLimit
from tidegate.settings.system import Call
from tidegate.units import Duration, Instant

__all__ = ["Pipeline"]

_HELD: Final = REJECTIONS[Reason.HELD]
_RATE: Final = REJECTIONS[Reason.RATE]
_LIMIT: Final = REJECTIONS[Reason.LIMIT]
_SHUT: Final = REJECTIONS[Reason.CIRCUIT_OPEN]
_THROTTLED: Final = REJECTIONS[Reason.THROTTLED]

# How long a wait that the far side asks for may be where no backoff says so: its default `max`.
_PATIENCE: Final = BackoffSettings().max

# A bound on what has to be counted at once; from here on the lock is a hundredth of the price.
_SPARE_MAX: Final = 64

# By the reason's number, as `retryable`: to hash a member of an enum costs ten times a look
_OF_THE_BREAKER: Final = tuple(
    reason in (Reason.CIRCUIT_OPEN, Reason.CIRCUIT_PROBING, Reason.CIRCUIT_RAMPING)
    for reason in Reason
)

_BY_NAME: Final[dict[str, Outcome]] = {
    "timeout": TIMEOUT,
    "failure": FAILURE,
    "overloaded": OVERLOADED,
}


@final
class Pipeline:
    """The policies that one caller keeps for one dependency, in their fixed order.

    One per dependency and host (in the simulator: per replica of the caller). `rng` serves the
    backoff's jitter and the breaker's ramp.
    """

    __slots__ = (
        "_can_be_calm",
        "attempts",
        "backoff",
        "breaker",
        "budget",
        "calm",
        "deadline",
        "hedge",
        "held",
        "limiter",
        "patience",
        "plain",
        "rate",
        "retryable",
        "settings",
        "throttle",
        "timeout",
    )

    def __init__(self, settings: Call, rng: Random) -> None:
        self.settings: Final = settings
        self.attempts = settings.tries
        self.held = False
        self.timeout: Final = settings.timeout
        self.deadline: Final = settings.deadline
        # Indexed by outcome: a lookup in a tuple is half the price of one in a set.
        self.retryable: Final = tuple(outcome in _retried(settings) for outcome in Outcome)
        self.backoff = Backoff(settings.backoff, rng) if settings.backoff else None
        self.patience: Final = settings.backoff.max if settings.backoff else _PATIENCE
        self.hedge: Final = settings.hedge if settings.idempotent else None
        self.budget = RetryBudget(settings.paid_from) if settings.paid_from else None
        self.throttle = Throttle(settings.throttle, rng) if settings.throttle else None
        self.breaker = CircuitBreaker(settings.breaker, rng) if settings.breaker else None
        self.limiter = ConcurrencyLimiter(settings.limit) if settings.limit else None
        self.rate = TokenBucket(settings.rate_limit) if settings.rate_limit else None
        # Nothing to ask and nothing to tell: a shell may skip admit and settle altogether.
        policies = self.budget, self.throttle, self.breaker, self.limiter, self.rate
        self.plain = not any(policies)
        self.calm = Calm()
        # A rate and a throttle have something to decide at every call.
        self._can_be_calm = self.rate is None and self.throttle is None

    def admit(self, now: Instant, depth: int) -> Permit | Rejection:
        """Leave for one attempt that is `depth` retries deep, those of its own call included.

        Only what is let in, and at depth 0, deposits into the retry budget: what a breaker refused
        pays for no burst when it closes. So n nested layers that pass the depth on hold
        1 + n x ratio attempts per request together. Layers that do not pass it on take each
        other's retries for first attempts, which deposit: they multiply, (1 + ratio)^n.
        """
        calm = self.calm
        if now < calm.until:
            if self.limiter is not None and not self.limiter.try_acquire(now):
                return _LIMIT
            if depth == 0 and calm.budget is not None:
                calm.budget.requests += 1
            try:
                permit = Permit(now, calm.generation)
            except BaseException:
                self._take_back(now)
                raise
            return permit
        if now < calm.shut_until:
            return _SHUT
        return self._admit(now, depth)

    def _admit(self, now: Instant, depth: int) -> Permit | Rejection:
        """Ask every policy. What they allow may begin a calm."""
        if self.held:
            return _HELD
        if self.throttle is not None and not self.throttle.try_acquire(now):
            return _THROTTLED
        if self.rate is not None and not self.rate.try_acquire(now):
            return _RATE
        generation = 0
        breaker = self.breaker
        if breaker is not None:
            generation = breaker.admit(now)
            if generation < 0:
                if self._can_be_calm:
                    self.calm.shut_until = breaker.shut_until(now)
                return REJECTIONS[~generation]
        if self.limiter is not None and not self.limiter.try_acquire(now):
            if breaker is not None:
                breaker.settle(now, now, generation, IGNORED)
            return _LIMIT
        try:
            if depth == 0 and self.budget is not None:
                self.budget.on_request(now)
            if self._can_be_calm:
                self._begin_calm(now, generation)
            permit = Permit(now, generation)
        except BaseException:
            self._take_back(now)
            raise
        return permit

    def _take_back(self, now: Instant) -> None:
        """A Ctrl-C has come between a place and its permit, which nobody will ever have."""
        if self.limiter is not None:
            self.limiter.release(now, 0, IGNORED)

    def settle(self, now: Instant, permit: Permit, outcome: Outcome) -> None:
        """Tell the policies how an attempt ended. A second settlement of a permit does nothing."""
        if permit.settled:
            return
        calm, limiter = self.calm, self.limiter
        if outcome is SUCCESS and now < calm.until and permit.generation == calm.generation:
            if limiter is not None:
                if limiter.inflight < limiter.indifferent:
                    limiter.inflight -= 1
                else:
                    limiter.release(now, permit.took or now - permit.start, outcome)
            permit.settled = True  # in one breath with the place: a Ctrl-C comes after a call
            if calm.breaker is not None:
                calm.breaker.calls += 1
            return
        if limiter is not None:
            limiter.release(now, permit.took or now - permit.start, outcome)
        permit.settled = True
        if self.throttle is not None:
            self.throttle.settle(now, outcome)
        if self.breaker is not None:
            self.breaker.settle(now, permit.start, permit.generation, outcome)
            if self.breaker.changes:
                calm.until = 0

    def spare(self) -> int:
        """How many more may be out, while it is calm, with nothing to decide about any of them."""
        limiter = self.limiter
        if limiter is None:
            return _SPARE_MAX
        spare = limiter.indifferent - 1 - limiter.inflight
        if spare > _SPARE_MAX:  # for half the price of `min`
            return _SPARE_MAX
        return spare

    def end_calm(self) -> None:
        """Something has changed, or may have: ask every policy at the next attempt."""
        self.calm.until = self.calm.shut_until = 0

    def _begin_calm(self, now: Instant, generation: int) -> None:
        calm, breaker, budget = self.calm, self.breaker, self.budget
        calm.until, calm.generation = NEVER, generation
        if breaker is not None:
            calm.breaker = breaker.original
            calm.until = breaker.calm_until(now)
        if budget is not None:
            calm.budget = budget.original
            calm.until = min(calm.until, budget.calm_until(now))

    def adjusted(self, settings: Call, rng: Random) -> "Pipeline":
        """A pipeline with other settings that goes on with the same policies.

        A policy whose own settings are the same is the same object, so what it has learnt is kept
        and shared; the others begin anew.
        """
        other = Pipeline(settings, rng)
        old = self.settings
        if settings.paid_from == old.paid_from:
            other.budget = self.budget
        if settings.throttle == old.throttle:
            other.throttle = self.throttle
        if settings.breaker == old.breaker:
            other.breaker = self.breaker
        if settings.limit == old.limit:
            other.limiter = self.limiter
        if settings.rate_limit == old.rate_limit:
            other.rate = self.rate
        kept = other.budget is self.budget and other.breaker is self.breaker
        if kept and other.limiter is self.limiter:
            other.calm = self.calm
        else:
            self.end_calm()
        if self.held:
            other.hold()
        return other

    def retry_after(self, now: Instant, reason: Reason) -> Duration | None:
        """How long until another try is worth it, as far as the policy that refused knows."""
        breaker = self.breaker
        if reason is Reason.CIRCUIT_OPEN and now < self.calm.shut_until:
            return self.calm.shut_until - now
        if breaker is not None and _OF_THE_BREAKER[reason]:
            return breaker.retry_after(now)
        if self.rate is not None and reason is Reason.RATE:
            return self.rate.retry_after(now)
        return None

    def limit_rate(self, now: Instant, rate: RateLimit | None) -> None:
        """Change the rate limit while calls are under way."""
        if rate is None or self.rate is None:
            self.rate = None if rate is None else TokenBucket(rate)
        else:
            self.rate.reconfigure(now, rate)
        self.plain &= rate is None
        self._can_be_calm = self.rate is None and self.throttle is None
        self.end_calm()

    def hold(self) -> None:
        """Refuse everything until `free`: a person has taken the dependency out."""
        self.held = True
        self.plain = False
        self.end_calm()

    def free(self) -> None:
        """Undo `hold`."""
        self.held = False

    def drain_transitions(self) -> list[Transition]:
        """What changed state since the last call, oldest first. Costs a look when nothing has."""
        breaker = self.breaker
        return breaker.drain_transitions() if breaker is not None and breaker.changes else []


def _retried(settings: Call) -> frozenset[Outcome]:
    """The outcomes after which another attempt may be made.

    A call that must not be done twice is repeated only after a refusal: that one was not done.
    """
    wanted = frozenset(_BY_NAME[name] for name in settings.retry_on)
    return wanted if settings.idempotent else wanted & {OVERLOADED}
