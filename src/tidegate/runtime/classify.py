"""What does an exception say about the dependency: failed, too slow, overloaded, or nothing?

The rule, first match wins:

- what the guard was told: `expected` exceptions are answers, `classify` may say anything;
- a refusal by a guard further in says nothing about this dependency, and is not repeated;
- a time that ran out (`TimeoutError`, or a type whose name ends so, since HTTP clients and drivers
  each have their own) is a TIMEOUT;
- an HTTP status, if the exception has one: 429 and 503 are OVERLOADED, other 5xx a FAILURE, and
  other 4xx an answer: the request is wrong, the dependency is well;
- a mistake in the caller's own code (`TypeError`, `AttributeError` and their like) says nothing;
- any other `Exception` is a FAILURE;
- what is no `Exception` (cancellation, Ctrl-C, the end of the program) says nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

from tidegate.core.outcome import FAILURE, IGNORED, OVERLOADED, SUCCESS, TIMEOUT, Outcome
from tidegate.errors import DeadlineExceeded, Rejected
from tidegate.units import SECOND, Duration

__all__ = ["classify", "parse_retry_after", "retry_after", "status_outcome"]

_TIMED_OUT: Final = ("Timeout", "TimeoutError", "TimeoutException", "TimedOut")

_OUR_OWN_MISTAKES: Final = (
    AssertionError,
    AttributeError,
    ImportError,
    NameError,
    NotImplementedError,
    SyntaxError,
    TypeError,
)

_WAIT_MAX_S: Final = 1e9  # what the header's nine digits can say

_BY_TYPE: Final[dict[type[BaseException], Outcome]] = {}
_TYPES_MAX: Final = 1024  # a bound: types made at run time must not fill the memory


def classify(error: BaseException) -> Outcome:
    """How the attempt that raised this ended, when nobody has said otherwise."""
    status = _status(error)
    if status is not None:
        return status_outcome(status)
    kind = type(error)
    outcome = _BY_TYPE.get(kind)
    if outcome is None:
        outcome = _by_type(kind)
        if len(_BY_TYPE) < _TYPES_MAX:
            _BY_TYPE[kind] = outcome
    return outcome


def status_outcome(status: int) -> Outcome:
    """What an HTTP status says. RFC 6585 section 4 (429), RFC 9110 section 15.6.4 (503)."""
    if status in (429, 503):
        return OVERLOADED
    if status == 504:  # somebody on the way waited in vain
        return TIMEOUT
    return FAILURE if status >= 500 else SUCCESS


def retry_after(error: BaseException) -> Duration:
    """When the far side wants to be asked again; zero if it has not said.

    Read from the exception's `retry_after`, in seconds, as many client libraries have it, or from a
    `Retry-After` header in seconds (RFC 9110 section 10.2.3). A date is not read: comparing it
    would trust two wall clocks.
    """
    said = _read(error, "retry_after")
    if isinstance(said, int | float) and said is not True and 0 < said <= _WAIT_MAX_S:
        return round(said * SECOND)
    for holder in (_read(error, "response"), error):
        headers = _read(holder, "headers")
        if isinstance(headers, Mapping):
            return parse_retry_after(headers.get("retry-after") or headers.get("Retry-After"))
    return 0


def parse_retry_after(text: Any) -> Duration:
    """The header's seconds; zero for a date, nonsense, or nothing."""
    if not isinstance(text, str) or not text.strip().isdecimal() or len(text) > 9:
        return 0
    return int(text) * SECOND


def _status(error: BaseException) -> int | None:
    """The HTTP status of an exception that has one, as httpx, requests or aiohttp write it."""
    response = _read(error, "response")
    for holder, name in ((response, "status_code"), (response, "status"), (error, "status")):
        status = _read(holder, name)
        if type(status) is int and 100 <= status <= 599:
            return status
    return None


def _read(holder: object, name: str) -> object:
    """An attribute of somebody else's exception, None also if it is a property that raises."""
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - theirs may raise what it likes
        return None


def _by_type(kind: type[BaseException]) -> Outcome:
    if issubclass(kind, Rejected):
        return IGNORED
    if issubclass(kind, TimeoutError | DeadlineExceeded):
        return TIMEOUT
    if any(base.__name__.endswith(_TIMED_OUT) for base in kind.__mro__):
        return TIMEOUT
    if issubclass(kind, _OUR_OWN_MISTAKES) or not issubclass(kind, Exception):
        return IGNORED
    return FAILURE
