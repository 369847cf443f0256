"""What becomes of one service under a trigger, when requests are taken as a fluid?

The workhorse behind a search for the smallest trigger: thirty thousand steps cost some tens of
milliseconds, where a simulation of every request costs seconds. Arrivals of one step form a cohort;
a capacity drains the cohorts in their order; what a cohort has not got when its age reaches the
timeout comes again as retries, while the abandoned work stays in the line and is served like any
other. It has no chance and no service time, so it knows neither the collapse that comes by luck nor
work that is begun just before its deadline and ends after it.

In a step: new arrivals, then the retries of the cohort whose age is the timeout, then service.
Another order moves results by a step or two, so the step should be at most a 400th of the timeout
where a figure is to be compared. Times are seconds, rates per second.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from typing import Final, Literal, NamedTuple, final

import msgspec

from tidegate.settings.policies import Full

__all__ = ["Change", "Line", "Run", "jittered", "run", "series", "smallest"]

_AT_ONCE: Final = ((0.0, 1.0),)

Gap = tuple[tuple[float, float], ...]
"""How long a retry waits: (seconds, share of the retries) pairs whose shares sum to one."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One service as its callers meet it, and what they do when they are not answered.

    `places` bounds how many wait, beside what is served within the step; `full` is what happens
    then. `abandoned` work is finished, skipped at its turn at no cost, or cancelled when its caller
    leaves. `budget` is retries per first attempt, saved up to `saved`. `gaps[k]` is the wait before
    retry k + 1, the last one standing for all later; a refused retry waits at least a step.
    Each refusal takes `refusal_cost` of a served request from the capacity, before anything that
    waits. `thrash` divides the capacity by 1 + thrash x waiting.
    """

    timeout: float
    attempts: int = 1
    places: float = math.inf
    full: Full = "refuse"
    order: Literal["fifo", "lifo"] = "fifo"
    abandoned: Literal["finish", "skip", "cancel"] = "finish"
    budget: float | None = None
    saved: float = 10.0
    gaps: tuple[Gap, ...] = (_AT_ONCE,)
    refusal_cost: float = 0.0
    thrash: float = 0.0

    @property
    def plain(self) -> bool:
        """Nothing but a timeout and immediate retries: the fast path applies."""
        return self == Line(timeout=self.timeout, attempts=self.attempts)


class Change(NamedTuple):
    """From `at`, for `lasts` seconds, something is `factor` times what it was; 0 is an outage.

    It reaches full strength after `ramp`, in a straight line, and ends at once.
    """

    at: float
    lasts: float = math.inf
    factor: float = 0.0
    ramp: float = 0.0


def series(base: float, seconds: float, dt: float, *changes: Change) -> list[float]:
    """A load or a capacity, step by step."""
    values = [base] * round(seconds / dt)
    for change in changes:
        first = round(min(change.at, seconds) / dt)
        last = min(len(values), round(min(change.at + change.lasts, seconds) / dt))
        rising = change.ramp / dt
        for step in range(first, last):
            strength = min(1.0, (step - first + 1) / rising) if rising > 1 else 1.0
            values[step] *= 1 + (change.factor - 1) * strength
    return values


class Run(NamedTuple):
    """Masses per step: first attempts, answers in time, all attempts; and what waits at its end."""

    dt: float
    offered: list[float]
    goodput: list[float]
    attempts: list[float]
    backlog: list[float]

    def share(self, start: float, end: float = math.inf) -> float:
        """Answers in time per first attempt between two instants."""
        window = self._window(start, end)
        offered = math.fsum(self.offered[window])
        return math.fsum(self.goodput[window]) / offered if offered else 1.0

    def rate(self, start: float, end: float = math.inf) -> float:
        """Attempts per second between two instants."""
        made = self.attempts[self._window(start, end)]
        return math.fsum(made) / (len(made) * self.dt)

    def back_at(self, share: float, start: float = 0.0) -> float:
        """When, after `start`, goodput is `share` of the load again and stays so; inf if never."""
        first = round(start / self.dt)
        for step in range(len(self.offered) - 1, first - 1, -1):
            if self.goodput[step] < share * self.offered[step]:
                return (step + 1) * self.dt if step + 1 < len(self.offered) else math.inf
        return start

    def _window(self, start: float, end: float) -> slice:
        last = len(self.offered) if end == math.inf else round(end / self.dt)
        return slice(round(start / self.dt), last)


def run(
    line: Line,
    load: Sequence[float],
    capacity: Sequence[float],
    *,
    dt: float,
    limit: Sequence[float] | None = None,
) -> Run:
    """Let `load` first attempts per second meet `capacity`, both given per step of `dt` seconds.

    `limit` is a rate limit at the door, likewise per step; without it there is none.
    """
    if len(load) != len(capacity) or (limit is not None and len(limit) != len(load)):
        raise ValueError("load, capacity and limit must have as many steps as each other")
    if round(line.timeout / dt) < 1:
        raise ValueError("the step must be shorter than the timeout")
    if limit is None and line.plain:
        return _run_plain(line, load, capacity, dt)
    return _Queue(line, dt).run(load, capacity, limit or [math.inf] * len(load))


def _run_plain(line: Line, load: Sequence[float], capacity: Sequence[float], dt: float) -> Run:
    """First in, first out needs no cohorts: what has arrived and what was served, as two sums.

    Written flat: 1.0 us a step against 3.2 with cohorts (CPython 3.11).
    """
    timeout, tries = round(line.timeout / dt), line.attempts - 1
    arrived = [0.0]  # all attempts before each step
    mixes: list[list[float]] = []  # of each cohort: how much is first attempts, second, ...
    goodput: list[float] = []
    backlog: list[float] = []
    total = served = expired = 0.0
    for step, (rate, room) in enumerate(zip(load, capacity, strict=True), -timeout):
        mix = [rate * dt]
        total += mix[0]
        if step >= 0:
            before, expired = arrived[step], arrived[step + 1]
            if expired > served and expired > before:
                left = min(1.0, (expired - served) / (expired - before))
                for mass in islice(mixes[step], tries):
                    mix.append(mass * left)
                    total += mass * left
        mixes.append(mix)
        arrived.append(total)
        late = max(served, expired)
        served += room * dt
        if served > total:
            served = total
        goodput.append(served - late if served > late else 0.0)
        backlog.append(total - served)
    offered = [rate * dt for rate in load]
    attempts = [after - before for before, after in pairwise(arrived)]
    return Run(dt, offered, goodput, attempts, backlog)


@final
class _Queue:
    """The line with all its options, cohort by cohort."""

    __slots__ = (
        "arrivals",
        "debt",
        "dt",
        "due",
        "expiry",
        "gaps",
        "head",
        "left",
        "limit",
        "line",
        "lost",
        "masses",
        "room",
        "stack",
        "step",
        "tokens",
        "waiting",
    )

    def __init__(self, line: Line, dt: float) -> None:
        self.line: Final = line
        self.dt: Final = dt
        self.expiry: Final = round(line.timeout / dt)
        self.gaps: Final = [[(round(s / dt), share) for s, share in gap] for gap in line.gaps]
        self.masses: list[list[float]] = []  # what each cohort sent, by number of attempt
        self.left: list[float] = []  # how much of it still waits
        self.lost: list[float] = []  # how much of it a full queue has swallowed in silence
        self.due: defaultdict[int, list[float]] = defaultdict(lambda: [0.0] * line.attempts)
        self.arrivals: list[float] = []
        self.tokens = line.saved
        self.head = 0  # oldest first: before it all are served
        self.stack: list[int] = []  # newest first: those with something left
        self.step = 0
        self.waiting = 0.0
        self.room = 0.0
        self.limit = math.inf
        self.debt = 0.0  # capacity that refusals have taken in advance

    def run(self, load: Sequence[float], capacity: Sequence[float], limit: Sequence[float]) -> Run:
        """Every step in its order."""
        newest = self.line.order == "lifo"
        serve = self._serve_newest if newest else self._serve_oldest
        goodput: list[float] = []
        backlog: list[float] = []
        rates = zip(load, capacity, limit, strict=True)
        for self.step, (rate, most, self.limit) in enumerate(rates):
            slow = 1 + self.line.thrash * self.waiting
            self.room = most * self.dt / slow - self.debt
            self._arrive(rate * self.dt)
            if newest:
                self.stack.append(self.step)
            goodput.append(serve() if self.room > 0 else 0.0)
            self.debt = max(0.0, -self.room)
            backlog.append(self.waiting)
        return Run(self.dt, [rate * self.dt for rate in load], goodput, self.arrivals, backlog)

    def _arrive(self, first: float) -> None:
        budget = self.line.budget
        if budget is not None:
            self.tokens = min(self.line.saved, self.tokens + budget * first)
        if self.step >= self.expiry:
            self._expire(self.step - self.expiry)
        mix = self.due.pop(self.step, None) or [0.0] * self.line.attempts
        mix[0] += first
        sent = sum(mix)
        admitted = self._admit(sent)
        refused = sent - admitted
        self.arrivals.append(sent)
        self.masses.append(mix)
        self.left.append(admitted)
        self.lost.append(0.0)
        self.waiting += admitted
        if refused > 0:
            self._refuse(mix, refused, sent)

    def _admit(self, sent: float) -> float:
        """How much of what is sent passes the limit at the door and finds a place."""
        passed = min(sent, self.limit * self.dt)
        self.room -= self.line.refusal_cost * (sent - passed)
        places = self.line.places - self.waiting + max(0.0, self.room)
        return min(passed, max(0.0, places))

    def _refuse(self, mix: list[float], refused: float, sent: float) -> None:
        overflow = refused - max(0.0, sent - self.limit * self.dt)
        if self.line.full == "silence":
            self.lost[-1] = overflow
            refused -= overflow
        else:
            self.room -= self.line.refusal_cost * overflow
        self._retry(mix, refused / sent, soonest=1)

    def _expire(self, cohort: int) -> None:
        left = self.left[cohort]
        unanswered = left + self.lost[cohort]
        if unanswered <= 0:
            return
        self._retry(self.masses[cohort], unanswered / sum(self.masses[cohort]), soonest=0)
        if self.line.abandoned == "cancel":
            self.left[cohort] = 0.0
            self.waiting -= left

    def _retry(self, mix: list[float], share: float, *, soonest: int) -> None:
        """`share` of a cohort has failed: what the attempts and the budget allow comes again."""
        again = [mass * share for mass in mix[:-1]]
        wanted = sum(again)
        if wanted <= 0:
            return
        if self.line.budget is not None:
            allowed = min(1.0, self.tokens / wanted)
            self.tokens -= allowed * wanted
            again = [mass * allowed for mass in again]
        for number, mass in enumerate(again, 1):
            for gap, part in self.gaps[min(number, len(self.gaps)) - 1]:
                self.due[self.step + max(gap, soonest)][number] += mass * part

    def _serve_oldest(self) -> float:
        good, left = 0.0, self.left
        while self.room > 0 and self.head <= self.step:
            good += self._serve(self.head)
            if left[self.head] > 0:
                break
            self.head += 1
        return good

    def _serve_newest(self) -> float:
        good, stack = 0.0, self.stack
        while self.room > 0 and stack:
            good += self._serve(stack[-1])
            if self.left[stack[-1]] > 0:
                break
            stack.pop()
        return good

    def _serve(self, cohort: int) -> float:
        """Serve what there is room for, and say how much of it is in time."""
        alive = self.step - cohort < self.expiry
        served = self.left[cohort]
        if not alive and self.line.abandoned == "skip":
            self.left[cohort] = 0.0
            self.waiting -= served
            return 0.0
        served = min(served, self.room)
        self.left[cohort] -= served
        self.waiting -= served
        self.room -= served
        return served if alive else 0.0


def jittered(base: float, retries: int, *, factor: float = 2.0, bins: int = 20) -> tuple[Gap, ...]:
    """Full jitter before each retry: uniform from zero to base x factor^(k-1), in `bins` parts."""
    widths = [base * factor**retry for retry in range(retries)]
    return tuple(
        tuple((width * (part + 0.5) / bins, 1 / bins) for part in range(bins)) for width in widths
    )


def smallest(tips: Callable[[float], bool], low: float, high: float, *, tolerance: float) -> float:
    """The smallest size of a trigger that `tips`, by halving; inf if not even `high` does.

    It is right where a larger trigger never does less than a smaller one. Bounded queues and
    breakers can break that: look at a coarse grid first.
    """
    if not tips(high):
        return math.inf
    while high - low > tolerance:
        middle = (low + high) / 2
        if tips(middle):
            high = middle
        else:
            low = middle
    return high
