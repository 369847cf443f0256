"""May a loop that is not ours try once more?

tenacity and stamina have loops of their own. What they lack is the look at everybody else: whether
the dependency's retry budget has a token left, whether its circuit is open, whether anybody still
waits. A bridge asks the guard for them before each further attempt.

The attempts themselves go through the guard, with one try each: it counts them, deposits into the
budget for them, and learns from them. A guard that has not seen one is a mistake, and told.
"""

from typing import Final

from tidegate.core.circuit_breaker import State
from tidegate.core.outcome import Reason
from tidegate.errors import SettingsError
from tidegate.runtime.classify import retry_after
from tidegate.runtime.context import AMBIENT
from tidegate.runtime.guard import Guard
from tidegate.units import SECOND, Duration

__all__ = ["asked_wait", "may_go_on", "worth_it"]

_SHUT: Final = (State.OPEN, State.HELD)


def worth_it(guard: Guard, error: BaseException) -> bool:
    """Whether what this says may be over at the next attempt, by the guard's `retry_on`.

    Never for a refusal (`tidegate.Rejected`): whoever refuses wants less.
    """
    return guard.pipeline.retryable[guard.outcome_of(error)]


def asked_wait(error: BaseException) -> float:
    """The seconds for which the far side wants to be left alone; zero if it has not said."""
    return retry_after(error) / SECOND


def may_go_on(guard: Guard, error: BaseException, wait: float) -> bool:
    """Whether another attempt may follow this error in `wait` seconds; takes a token if so.

    Raises SettingsError if no call has ever gone through the guard.
    """
    reason = _against(guard, error, round(wait * SECOND))
    if reason is not None:
        dependency = guard.dependency
        with dependency.lock:
            dependency.refused[reason] += 1
    return reason is None


def _against(guard: Guard, error: BaseException, wait: Duration) -> Reason | None:
    dependency, pipeline = guard.dependency, guard.pipeline
    inherited = AMBIENT.get()
    with dependency.lock:
        dependency.take_stock()
        if not dependency.started:
            raise SettingsError(
                f"no call has gone through guard({guard.name!r}): put it around the function too,"
                f" as {guard.name}.options(attempts=1)"
            )
        now = dependency.now()
        if inherited.deadline is not None and now + wait >= inherited.deadline:
            return Reason.DEADLINE
        if retry_after(error) > pipeline.patience:
            return Reason.RETRY_AFTER
        if pipeline.held:
            return Reason.HELD
        breaker = pipeline.breaker
        if breaker is not None and breaker.state(now) in _SHUT and breaker.retry_after(now) > wait:
            return Reason.CIRCUIT_OPEN
    # Each of them takes its own lock.
    payer = inherited.payer
    if payer is not None and payer is not dependency and not payer.pay():
        return Reason.BUDGET
    return None if dependency.pay() else Reason.BUDGET
