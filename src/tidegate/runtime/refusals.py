"""In which words, and as which exception, is a caller told no?"""

from typing import Final

from tidegate.core.outcome import Reason
from tidegate.errors import (
    CircuitOpen,
    Held,
    LimitExceeded,
    RateLimited,
    Rejected,
    Throttled,
)

__all__ = ["REFUSALS", "WORDS"]

WORDS: Final = {
    Reason.CIRCUIT_OPEN: "its circuit is open",
    Reason.CIRCUIT_PROBING: "its circuit is half-open and all probes are out",
    Reason.CIRCUIT_RAMPING: "its circuit lets only a share in again",
    Reason.HELD: "it is held open by hand",
    Reason.LIMIT: "as many calls are out as may be",
    Reason.RATE: "as many calls were made as may be",
    Reason.BUDGET: "the retry budget is spent",
    Reason.DEADLINE: "the deadline would pass",
    Reason.ATTEMPTS: "all attempts are used",
    Reason.NOT_RETRYABLE: "this is not to be repeated",
    Reason.RETRY_AFTER: "it asks for a longer wait than the backoff ever makes",
    Reason.THROTTLED: "it has refused too much of what it was sent",
}
"""Each as the end of a sentence."""

_ERRORS: Final[dict[Reason, type[Rejected]]] = {
    Reason.CIRCUIT_OPEN: CircuitOpen,
    Reason.CIRCUIT_PROBING: CircuitOpen,
    Reason.CIRCUIT_RAMPING: CircuitOpen,
    Reason.HELD: Held,
    Reason.LIMIT: LimitExceeded,
    Reason.RATE: RateLimited,
    Reason.THROTTLED: Throttled,
}

REFUSALS: Final = tuple(
    (_ERRORS.get(reason, Rejected), WORDS.get(reason, reason.name.lower())) for reason in Reason
)
"""The exception and its words by the reason's number: to hash a member of an enum costs ten times
a look into a tuple.
"""
