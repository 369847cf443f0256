"""What does one process tell the next of a piece of work, and what does it believe?

Three headers carry what `context` keeps: how much time remains, how much it matters, how many
retries deep it is. Time travels as what *remains* and never as an instant, because the clocks of
two machines agree only within what a deadline is about. What others already send for the same
purpose is read as well: gRPC's and Envoy's timeouts, and their counts of attempts.

Whether to believe any of it is for whoever reads: a stranger who says "critical" is not.
"""

from collections.abc import Mapping
from typing import Final

from tidegate.runtime.context import CRITICALITIES, NOTHING, Ambient
from tidegate.units import DAY, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND, Duration, Instant

__all__ = ["CRITICALITY", "DEPTH", "READ", "REMAINING", "incoming", "outgoing"]

REMAINING: Final = "Tidegate-Remaining-Ms"
CRITICALITY: Final = "Tidegate-Criticality"
DEPTH: Final = "Tidegate-Retry-Depth"

_REMAINING: Final = REMAINING.lower()
_CRITICALITY: Final = CRITICALITY.lower()
_DEPTH: Final = DEPTH.lower()
_GRPC_TIMEOUT: Final = "grpc-timeout"
_GRPC_ATTEMPTS: Final = "grpc-previous-rpc-attempts"
_ENVOY_TIMEOUT: Final = "x-envoy-expected-rq-timeout-ms"
_ENVOY_ATTEMPT: Final = "x-envoy-attempt-count"

READ: Final = frozenset(
    (
        _REMAINING,
        _CRITICALITY,
        _DEPTH,
        _GRPC_TIMEOUT,
        _GRPC_ATTEMPTS,
        _ENVOY_TIMEOUT,
        _ENVOY_ATTEMPT,
    )
)
"""The names of all headers that `incoming` understands, in small letters."""

# gRPC over HTTP/2: TimeoutValue is at most eight digits, TimeoutUnit one letter.
_GRPC_UNITS: Final = {
    "H": HOUR,
    "M": MINUTE,
    "S": SECOND,
    "m": MILLISECOND,
    "u": MICROSECOND,
    "n": 1,
}
_DIGITS_MAX: Final = 12  # 10^12 ms are 31 years: enough for a day, too few to be a burden
_DEPTH_MAX: Final = 1_000


def outgoing(now: Instant, values: Ambient, *, retries: int = 0) -> dict[str, str]:
    """The headers of a call that is made now with `values`, and is its caller's retry `retries`.

    What nobody has said is not sent: no deadline, no criticality, no depth of zero.
    """
    if values is NOTHING and not retries:
        return {}
    headers = {}
    if values.deadline is not None:
        headers[REMAINING] = str(max(0, values.deadline - now) // MILLISECOND)
    if values.said is not None:
        headers[CRITICALITY] = CRITICALITIES[values.said]
    if depth := values.depth + retries:
        headers[DEPTH] = str(min(depth, _DEPTH_MAX))
    return headers


def incoming(now: Instant, headers: Mapping[str, str]) -> Ambient:
    """What the headers of a request that arrives now say; names in small letters.

    Of several timeouts the shortest holds, of several counts of attempts the highest. What cannot
    be read says nothing: a wrong header from one hop must not refuse the request of another.
    """
    remaining, said, depth = DAY + 1, None, 0
    for name, text in headers.items():
        if name == _CRITICALITY:
            word = text.strip().lower()
            said = CRITICALITIES.index(word) if word in CRITICALITIES else None
        elif name in (_REMAINING, _ENVOY_TIMEOUT):
            remaining = _shorter(remaining, _whole(text, MILLISECOND))
        elif name == _GRPC_TIMEOUT:
            remaining = _shorter(remaining, _grpc_timeout(text))
        elif name in (_DEPTH, _GRPC_ATTEMPTS):
            depth = max(depth, _whole(text) or 0)
        elif name == _ENVOY_ATTEMPT:
            depth = max(depth, (_whole(text) or 1) - 1)  # the first attempt is number one
    deadline = None if remaining > DAY else now + remaining
    return Ambient(deadline, said, min(_DEPTH_MAX, depth))


def _shorter(remaining: Duration, found: Duration | None) -> Duration:
    """The shorter of two timeouts; more than a day is as good as a day."""
    return remaining if found is None else min(remaining, found, DAY)


def _whole(text: str, unit: Duration = 1) -> int | None:
    """A whole number of units; None if it is none."""
    text = text.strip()
    # Digits of other scripts are digits too, to Python; on the wire they are noise.
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        return None
    return int(text) * unit


def _grpc_timeout(text: str) -> Duration | None:
    unit = _GRPC_UNITS.get(text[-1:])
    return None if unit is None else _whole(text[:-1], unit)
