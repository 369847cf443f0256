"""How does a loop of tenacity keep within the guard's retry budget?

    @tenacity.retry(
        retry=retry_if_worth_it(licences),
        stop=tenacity.stop_after_attempt(4) | stop_when_spent(licences),
        wait=wait_as_asked(tenacity.wait_random_exponential(max=10)),
        reraise=True,
    )
    @licences.options(attempts=1)
    def fetch(): ...

By itself tenacity repeats without end and without looking at what all others do. Here the guard
inside counts, judges and refuses the attempts, and the loop outside asks it for each further one.
"""

from typing import Any, Final, final

from tidegate.errors import missing_extra

try:
    import tenacity
    from tenacity.retry import retry_base
    from tenacity.stop import stop_base
    from tenacity.wait import wait_base
except ModuleNotFoundError as error:
    raise missing_extra(error, "tenacity") from None

from tidegate.adapters.again import asked_wait, may_go_on, worth_it
from tidegate.runtime.guard import Guard

__all__ = ["retry_if_worth_it", "stop_when_spent", "wait_as_asked"]


@final
class retry_if_worth_it(retry_base):  # noqa: N801 - named as tenacity names its own
    """`retry=`: another attempt is wanted after what the guard's `retry_on` says.

    Not after a refusal by a guard, nor after what is an answer or the caller's own mistake.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard: Final = guard

    def __call__(self, retry_state: tenacity.RetryCallState) -> bool:
        """Whether this attempt's end asks for another."""
        error = _error(retry_state)
        return error is not None and worth_it(self._guard, error)


@final
class stop_when_spent(stop_base):  # noqa: N801
    """`stop=`: no further attempt without a token of the guard's retry budget.

    Nor one that would start after the ambient deadline, against an open circuit, or before the far
    side wants to be asked again. It takes a token when it lets the loop go on, so it stands last:
    `stop_after_attempt(4) | stop_when_spent(guard)`.

    Raises SettingsError if no call has ever gone through the guard.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard: Final = guard

    def __call__(self, retry_state: tenacity.RetryCallState) -> bool:
        """Whether the loop ends here."""
        error = _error(retry_state)
        if error is None:  # repeated for its result, of which a guard knows nothing
            error = tenacity.TryAgain()
        return not may_go_on(self._guard, error, retry_state.upcoming_sleep)


@final
class wait_as_asked(wait_base):  # noqa: N801
    """`wait=`: as long as `otherwise` says, and no shorter than the far side asks (`Retry-After`).

    Without `otherwise` there is no wait but that one.
    """

    def __init__(self, otherwise: Any = None) -> None:
        self._otherwise: Final = otherwise

    def __call__(self, retry_state: tenacity.RetryCallState) -> float:
        """Seconds until the next attempt."""
        wait = 0.0 if self._otherwise is None else float(self._otherwise(retry_state))
        error = _error(retry_state)
        return wait if error is None else max(wait, asked_wait(error))


def _error(retry_state: tenacity.RetryCallState) -> BaseException | None:
    outcome = retry_state.outcome
    return None if outcome is None else outcome.exception()
