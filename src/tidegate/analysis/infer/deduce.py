"""What do the counts of one call say about its settings, and how sure is that?

Every rule here gives a value and the sentence that stands beside it in the file: from how many
cases, and what else it could mean. A rule that has too few cases gives no value.
"""

import math
from typing import Final, NamedTuple

from tidegate.analysis.infer.sketch import Sketch
from tidegate.analysis.infer.tally import CallTally
from tidegate.analysis.ingest.span import Ending
from tidegate.settings.policies import Backoff, RetryReason
from tidegate.settings.system import Time
from tidegate.units import DAY, MILLISECOND, format_duration, format_share

__all__ = [
    "Retries",
    "Timeout",
    "backoff_of",
    "is_optional",
    "is_unwaited",
    "network_of",
    "retries_of",
    "spread_of",
    "time_of",
    "timeout_of",
]

# A timeout is a wall: failures pile up right before it and nothing lies behind it.
_WALL_WIDTH: Final = 1.05  # timers, scheduling and the closing of a span add up to 5 %
_WALL_CASES: Final = 5  # fewer can stand together by chance; 2 if each is named a timeout
_WALL_SHARE: Final = 0.3  # of the failures without an answer: one of at most three settings
_WALL_BEHIND: Final = 0.01  # of all attempts may last longer: other operations, wrong clocks

_FEW: Final = 5  # cases below which a yes-or-no question stays with its default
_FEW_FAILURES: Final = 3  # of a kind, below which it counts as not seen
_AT_ONCE: Final = 2 * MILLISECOND  # a gap below this is the client's own work, not a wait


def spread_of(sketch: Sketch) -> str:
    """`n=5,000: median 48ms, p90 96ms, p99 200ms`."""
    if not sketch.count:
        return "n=0"
    shown = (f"{name} {format_duration(rounded(sketch.quantile(q), 2))}" for name, q in _SHOWN)
    return f"n={sketch.count:,}: {', '.join(shown)}"


_SHOWN: Final = (("median", 0.5), ("p90", 0.9), ("p99", 0.99))


def rounded(value: float, digits: int = 3) -> float:
    """The value to so many significant digits: more would claim what a sample cannot know."""
    if value == 0:
        return 0.0
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def duration(value: float) -> int:
    """Nanoseconds to two significant digits where a bin's width allows, else to three.

    At least one and at most a day, so that it can always be written.
    """
    near = rounded(value, 2)
    close = abs(value - near) <= 0.003 * near
    return min(max(1, round(near if close else rounded(value))), DAY)


def time_of(sketch: Sketch) -> Time | None:
    """The simplest form that fits: constant, exponential by its mean, else a lognormal.

    An exponential has p99 / median = ln 100 / ln 2 and mean / median = 1 / ln 2; both must hold
    within a tenth, from at least a hundred cases.
    """
    median, p99 = sketch.quantile(0.5), sketch.quantile(0.99)
    if not sketch.count or median <= 0:
        return None
    if p99 <= sketch.quantile(0.01) * 1.02:
        return Time(constant=duration(median))
    tail = p99 / median * math.log(2) / math.log(100)
    middle = sketch.mean / median * math.log(2)
    if sketch.count >= 100 and abs(tail - 1) < 0.1 and abs(middle - 1) < 0.1:
        return Time(mean=duration(sketch.mean))
    return Time(median=duration(median), p99=max(duration(median), duration(p99)))


class Timeout(NamedTuple):
    """`value` in nanoseconds or None, `at_least` what the slowest answer took."""

    value: int | None
    at_least: int
    says: str


def timeout_of(tally: CallTally) -> Timeout:
    """The wall at which attempts without an answer end.

    The fullest 5 % wide window of the durations of failures without an answer is a timeout if it
    holds five of them (two if all are named timeouts), at least 30 % of them, and at most 1 % of
    all attempts last longer than it.
    """
    slowest = tally.good.quantile(1.0)
    silent = tally.silent.count
    needed = 2 if silent == tally.attempts[Ending.TIMEOUT] else _WALL_CASES
    for cases, low in tally.silent.windows(_WALL_WIDTH):
        if cases < max(needed, _WALL_SHARE * silent):
            break
        behind = tally.durations.above(low * _WALL_WIDTH)
        if low > 0 and behind <= _WALL_BEHIND * tally.durations.count:
            value = _as_set(low)
            says = (
                f"{cases:,} of {silent:,} attempts without an answer end within 5% of it,"
                f" {behind:,} of {tally.durations.count:,} last longer"
            )
            return Timeout(value, slowest, says)
    seen = f"the slowest answer of {tally.good.count:,} took {format_duration(slowest)}"
    return Timeout(None, slowest, f"none seen; {seen}")


def _as_set(low: int) -> int:
    """What a person would have set: two digits if they lie up to 2 % below, else three."""
    near = rounded(low, 2)
    return min(round(near), DAY) if -0.003 <= low / near - 1 <= 0.02 else duration(low)


class Retries(NamedTuple):
    """`attempts` in all; None if nothing failed from which a retry would have followed.

    `calls` is the number of calls for each counted call: above 1 where siblings that look like
    retries were the turns of a loop.
    """

    attempts: int | None
    calls: float
    retry_on: tuple[RetryReason, ...]
    says: str
    says_on: str = ""


def retries_of(tally: CallTally, timeout: int | None) -> Retries:
    """How often a call is tried in all, and after which outcomes.

    The client's own count where it has one. Else the size at which most retried calls were given
    up, if larger ones are few (two calls taken for one); else the largest size seen.
    """
    if _is_loop(tally):
        total = sum(size * count for size, count in tally.sizes.items())
        says = "no retries: a success is followed by a like call as often as a failure, so a loop"
        return Retries(1, total / tally.calls, (), says)
    size = _size(tally)
    found = _reasons(tally, size, timeout)
    if size == 1:
        return _never_retried(tally, found)
    how = "counted by the client" if tally.counted else "told by siblings after a failure"
    reached = sum(n for s, n in tally.sizes.items() if s >= size)
    larger = sum(n for s, n in tally.sizes.items() if s > size)
    in_vain = sum(n for s, n in tally.used_up.items() if s >= size)
    says = f"{reached:,} of {tally.calls:,} calls used all {size}, {in_vain:,} in vain; {how}"
    if larger:
        says += f"; {larger:,} longer rows taken for several calls"
    told = (reason.says for reason in found)
    retry_on = tuple(reason.kind for reason in found if reason.retried)
    return Retries(size, 1.0, retry_on, says, f"tried again: {', '.join(told)}")


class _Reason(NamedTuple):
    """How often an attempt that ended so was tried again, of those that could have been."""

    kind: RetryReason
    again: int
    seen: int

    @property
    def retried(self) -> bool:
        """One that was hardly seen counts as retried: what did not happen was not forbidden."""
        return (self.seen < _FEW_FAILURES and not self.again) or self.again >= 0.2 * self.seen

    @property
    def says(self) -> str:
        if self.retried and not self.again:
            times = f"seen {self.seen} times" if self.seen else "never seen"
            return f"{self.kind} {times}, taken as retried"
        return f"{self.again:,} of {self.seen:,} after {self.kind}"


def _reasons(tally: CallTally, size: int, timeout: int | None) -> list[_Reason]:
    """The three outcomes after which another attempt may follow, with what was seen of each.

    An error without an answer counts as a timeout where a timeout was found.
    """
    broken: RetryReason = "failure" if timeout is None else "timeout"
    kinds: dict[RetryReason, tuple[Ending, ...]] = {
        "timeout": (Ending.TIMEOUT,),
        "failure": (Ending.FAILED,),
        "overloaded": (Ending.OVERLOADED,),
    }
    kinds[broken] = (*kinds[broken], Ending.BROKEN)
    found = []
    for kind, endings in kinds.items():
        again = sum(tally.retried[ending] for ending in endings)
        ended = sum(n for (e, s), n in tally.given_up.items() if e in endings and s < max(size, 2))
        found.append(_Reason(kind, again, again + ended))
    return found


def _never_retried(tally: CallTally, found: list[_Reason]) -> Retries:
    failures = sum(reason.seen for reason in found)
    unseen = tuple(reason.kind for reason in found if reason.retried)
    if not failures:
        says = f"none of {tally.calls:,} calls failed, so a retry could not show"
        return Retries(None, 1.0, unseen, says)
    says = f"none of {failures:,} failures was tried again"
    if not unseen:
        return Retries(1, 1.0, (), says)
    seldom = " and ".join(unseen)
    return Retries(None, 1.0, unseen, f"{says}, but {seldom} hardly occurred", "see attempts")


def _is_loop(tally: CallTally) -> bool:
    """Whether what follows a failure follows a success as well: three standard errors decide."""
    if tally.counted or max(tally.sizes, default=1) == 1:
        return False
    bad, all_bad = tally.after_bad
    good, all_good = tally.after_good
    if not all_bad or not all_good:
        return False
    usual = good / all_good
    error = math.sqrt(usual * (1 - usual) / all_bad)
    return bad / all_bad <= usual + max(0.05, 3 * error)


def _size(tally: CallTally) -> int:
    largest = max(tally.sizes, default=1)
    retried = {size: n for size, n in tally.used_up.items() if size > 1}
    if not retried:
        return largest
    usual = max(retried, key=lambda size: (retried[size], size))
    longer = sum(n for size, n in tally.sizes.items() if size > usual)
    few = retried[usual] >= _FEW and longer <= 0.05 * retried[usual]
    return usual if few else largest


def backoff_of(tally: CallTally) -> tuple[Backoff | None, str]:
    """The wait between attempts from its gaps: the first gives base and jitter, the second growth.

    `full` jitter draws from zero to the wait, `equal` from its half: told by where the lower
    tenth of the gaps lies beside the upper one.
    """
    first = tally.gaps.get(1, Sketch())
    if not first.count:
        return None, ""
    median = first.quantile(0.5)
    says = f"gaps before a second attempt, {spread_of(first)}"
    if median < _AT_ONCE:
        return None, f"at once; {says}"
    low, high = first.quantile(0.1), first.quantile(0.9)
    spread = low / high if high else 1.0
    if spread > 0.85:
        jitter, base = "none", median
    elif spread > 0.4:
        jitter, base = "equal", round(median / 0.75)
    else:
        jitter, base = "full", 2 * median
    second = tally.gaps.get(2, Sketch())
    factor = 2.0
    if second.count >= _FEW:
        factor = min(10.0, max(1.0, rounded(second.quantile(0.5) / median, 2)))
        says += f"; before a third, {spread_of(second)}"
    else:
        says += "; growth not seen"
    settings = {"base": duration(base), "factor": factor, "jitter": jitter}
    return Backoff(**settings), says  # type: ignore[arg-type]  # jitter is one of its three words


def is_optional(tally: CallTally) -> bool:
    """Whether requests end well although this call failed: nine of ten, at least five cases."""
    return tally.failed >= _FEW and tally.forgiven >= 0.9 * tally.failed


def is_unwaited(tally: CallTally) -> bool:
    """Whether requests end before this call does: nine of ten, at least five cases."""
    return tally.calls >= _FEW and tally.outlives >= 0.9 * tally.calls


def network_of(tally: CallTally) -> tuple[Time | None, str]:
    """What the caller's clock always shows beyond the server's: the lower tenth of the difference.

    More than that may be the server's queue, which its span leaves out and the model adds itself.
    """
    gap = tally.network.quantile(0.1)
    if tally.network.count < _FEW or gap < MILLISECOND // 10:
        return None, ""
    says = f"a call takes longer than its server says, {spread_of(tally.network)}; the rest may be"
    return Time(constant=duration(gap)), f"{says} waiting there"


def share(part: int, whole: int) -> str:
    """`3.2% (32 of 1,000)`."""
    return f"{format_share(part / whole if whole else 0)} ({part:,} of {whole:,})"
