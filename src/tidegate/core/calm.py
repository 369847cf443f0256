"""How long is there nothing to decide: but to count, or but to say no?

While a circuit is closed and nothing fails, asking for leave changes the policies by one: one more
request for the budget, one more call for the breaker. So a pipeline asks them how long that will
hold, and until then counts for them. They see the same numbers in the same buckets of their windows
as if each had been told, and a call that succeeds costs half (`benchmarks/policies.py`).

While a circuit is open and its time is not over, every answer is the same no.
"""

from typing import final

from tidegate.core.circuit_breaker import CircuitBreaker
from tidegate.core.retry_budget import RetryBudget
from tidegate.units import Instant

__all__ = ["NEVER", "Calm"]

NEVER: Instant = 1 << 62
"""Later than any clock: 146 years of nanoseconds."""


@final
class Calm:
    """It lasts `until` that instant: the first end of a bucket; zero when there is something to
    decide. `generation` is the breaker's, for the permits that are given meanwhile; `breaker` and
    `budget` are those that are counted for. `shut_until` is when an open circuit's time is over;
    zero when it is not known to be open.
    """

    __slots__ = ("breaker", "budget", "generation", "shut_until", "until")

    def __init__(self) -> None:
        self.until: Instant = 0
        self.shut_until: Instant = 0
        self.generation = 0
        self.breaker: CircuitBreaker | None = None
        self.budget: RetryBudget | None = None
