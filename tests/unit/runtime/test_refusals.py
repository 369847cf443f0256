"""Every no has an exception, and words that a person reads in it."""

import pytest

from tidegate.core.outcome import Reason
from tidegate.errors import CircuitOpen, LimitExceeded, RateLimited, Rejected, Throttled
from tidegate.runtime.refusals import REFUSALS, WORDS

OF_A_DOOR = {Reason.SHED, Reason.WAITED, Reason.CLIENT}  # of a server's, which has words of its own


def test_every_reason_of_a_guard_has_words_of_its_own() -> None:
    assert set(WORDS) == set(Reason) - OF_A_DOOR
    assert len(set(WORDS.values())) == len(WORDS)
    assert not [words for words in WORDS.values() if words.endswith(".") or not words[0].islower()]


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (Reason.CIRCUIT_OPEN, CircuitOpen),
        (Reason.CIRCUIT_PROBING, CircuitOpen),
        (Reason.CIRCUIT_RAMPING, CircuitOpen),
        (Reason.LIMIT, LimitExceeded),
        (Reason.RATE, RateLimited),
        (Reason.THROTTLED, Throttled),
        (Reason.BUDGET, Rejected),
    ],
)
def test_a_reason_is_found_by_its_number(reason: Reason, kind: type[Rejected]) -> None:
    assert REFUSALS[reason] == (kind, WORDS[reason])
