"""How does a loop of stamina keep within the guard's retry budget?

    @stamina.retry(on=retry_within(licences), attempts=4)
    @licences.options(attempts=1)
    def fetch(): ...

stamina bounds attempts and time of one call, and looks at no other. Here the guard inside counts,
judges and refuses the attempts, and the loop outside asks it for each further one.
"""

from collections.abc import Callable

from tidegate.adapters.again import asked_wait, may_go_on, worth_it
from tidegate.runtime.guard import Guard

__all__ = ["retry_within"]


def retry_within(guard: Guard) -> Callable[[Exception], bool | float]:
    """`on=`: whether another attempt may follow, or in how many seconds if the far side has said.

    Not after what the guard's `retry_on` does not name, without a token of its retry budget, after
    the ambient deadline, against an open circuit, or if the far side asks for a longer wait than
    the guard's backoff ever makes. stamina asks also when its attempts are used up, so a call that
    uses all of them takes one token more than it makes retries.

    What it gives raises SettingsError if no call has ever gone through the guard.
    """

    def on(error: Exception) -> bool | float:
        if not worth_it(guard, error):
            return False
        wait = asked_wait(error)
        if not may_go_on(guard, error, wait):
            return False
        return wait or True

    return on
