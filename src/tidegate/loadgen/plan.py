"""When does each request start, if nobody waits for the one before?

People do not wait for each other's answers, so load from outside is open: every start is fixed
before the first answer, and a slow answer delays none of them. A tool that sends the next request
when the last was answered sends less to what is slow, and hides the very queue it came to measure.

A plan is a row of stretches in which the rate stands still or goes in a straight line; surges and
ramps are made of them. `arrivals` walks it in units of expected arrivals and bends those into time
(the inverse of the integrated rate), so that Poisson and evenly spaced starts are one function and
a ramp is exact, not a staircase.
"""

from collections.abc import Iterable, Iterator
from itertools import repeat
from math import log, sqrt
from random import Random
from typing import Final, NamedTuple

from tidegate.errors import SettingsError
from tidegate.settings.system import Trigger
from tidegate.units import DAY, SECOND, Duration

__all__ = ["Stretch", "arrivals", "evenly", "expected", "poisson", "rate_at", "steady", "surging"]

_RATE_MAX: Final = 100_000  # per second; more than one process of ours can send, and a bound


class Stretch(NamedTuple):
    """For `lasts`, the rate goes from `begins` to `ends` per second in a straight line."""

    lasts: Duration
    begins: float
    ends: float


def steady(rate: float, lasts: Duration) -> list[Stretch]:
    """The same rate all the time."""
    if not 0 <= rate <= _RATE_MAX:
        raise SettingsError(f"expected a rate from 0/s to {_RATE_MAX:,}/s, found {rate:g}/s")
    if not 0 < lasts <= DAY:
        raise SettingsError("expected a duration above zero and at most 24h", path=("lasts",))
    return [Stretch(lasts, rate, rate)]


def surging(rate: float, lasts: Duration, trigger: Trigger, at: Duration) -> list[Stretch]:
    """`rate`, and from `at` on what `trigger` makes of it: `load: 2x`, with its `ramp` and `for`.

    A surge that outlasts the plan is cut off with it. As in the simulator it ends all at once.
    """
    factor = 1.0 if trigger.load is None else trigger.load
    high = steady(rate * factor, lasts)[0].begins
    ramp = trigger.ramp or 0
    end = lasts if trigger.for_ is None else at + trigger.for_
    parts = (
        Stretch(at, rate, rate),
        Stretch(ramp, rate, high),
        Stretch(end - at - ramp, high, high),
        Stretch(lasts - end, rate, rate),
    )
    return list(_cut(parts, lasts))


def _cut(parts: Iterable[Stretch], left: Duration) -> Iterator[Stretch]:
    """What of the stretches lies within the first `left`."""
    for part in parts:
        lasts = min(part.lasts, left)
        if lasts > 0:
            reached = part.begins + (part.ends - part.begins) * lasts / part.lasts
            yield Stretch(lasts, part.begins, reached)
            left -= lasts


def expected(stretches: Iterable[Stretch]) -> float:
    """How many arrivals the plan has on average."""
    return sum((s.begins + s.ends) / 2 * s.lasts / SECOND for s in stretches)


def rate_at(stretches: Iterable[Stretch], at: Duration) -> float:
    """What is sent per second at that instant of the plan; nothing after its end."""
    for lasts, begins, ends in stretches:
        if at < lasts:
            return begins + (ends - begins) * at / lasts
        at -= lasts
    return 0.0


def poisson(luck: Random) -> Iterator[float]:
    """Gaps of independent people: exponential, of mean one."""
    while True:
        yield -log(1.0 - luck.random())


def evenly() -> Iterator[float]:
    """Gaps of a clock. The first start stands in the middle of its gap, so that no edge counts."""
    yield 0.5
    yield from repeat(1.0)


def arrivals(stretches: Iterable[Stretch], gaps: Iterator[float]) -> Iterator[Duration]:
    """The instant of each start, in nanoseconds from the beginning, in order.

    `gaps` are in expected arrivals: `poisson(luck)` or `evenly()`.
    """
    begin = 0
    into = next(gaps)
    for lasts, begins, ends in stretches:
        per_ns, steeper = begins / SECOND, (ends - begins) / SECOND / max(lasts, 1)
        whole = (begins + ends) / 2 * lasts / SECOND
        while into < whole:
            # The t at which begins·t + (ends - begins)/(2·lasts)·t² = into, without cancellation.
            root = per_ns + sqrt(per_ns * per_ns + 2 * steeper * into)
            yield begin + min(lasts - 1, round(2 * into / root) if root else 0)
            into += next(gaps)
        into -= whole
        begin += lasts
