"""Where do the figures on the policies' pages come from: budget, limit, CoDel, order, margin?

    python benchmarks/queue_laws.py

One service of ten workers, exponential service of 10 ms (so 1000/s), Poisson arrivals, callers who
leave after 100 ms. Figures are answers in time per second, mean and range over the seeds. The
policies are the shipped ones; the law they are compared with is written out below.
"""

import heapq
from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from statistics import mean
from typing import Final, NamedTuple

from tidegate.core.backoff import Backoff
from tidegate.core.codel import CoDel
from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.outcome import SUCCESS, TIMEOUT, Outcome
from tidegate.core.queue_order import can_finish, takes_newest
from tidegate.core.retry_budget import RetryBudget
from tidegate.settings import policies as settings
from tidegate.units import MILLISECOND, SECOND

SEEDS: Final = (1, 2, 3, 4, 5)
WORKERS: Final = 10
SERVICE: Final = 10 * MILLISECOND
PATIENCE: Final = 100 * MILLISECOND
RATIOS: Final = (0.05, 0.1, 0.2, 0.5)


class PerSample:
    """The law of Netflix concurrency-limits: one more per success, a cut per timeout."""

    def __init__(self, start: int, decrease: float) -> None:
        self.limit, self.decrease = start, decrease

    def on_sample(self, _now: int, _rtt: int, inflight: int, outcome: Outcome) -> int:
        if outcome is TIMEOUT:
            self.limit = max(1, int(self.limit * self.decrease))
        elif inflight * 2 >= self.limit:
            self.limit = min(1000, self.limit + 1)
        return self.limit


class Setup(NamedTuple):
    """What is tried. `margin` in mean service times; None: late work is not dropped."""

    load: float
    seconds: int = 30
    attempts: int = 1
    patience: int = PATIENCE
    slower: float = 1.0  # after the first third
    stall: int = 0  # nothing moves for so long, at one second
    limiter: Callable[[], ConcurrencyLimiter] | None = None
    codel: settings.CoDel | None = None
    order: settings.Order = "fifo"
    margin: float | None = None
    backoff: settings.Backoff | None = None
    budget: settings.Budget | None = None


class Job:
    """One attempt."""

    def __init__(self, now: int, leaves_at: int, number: int) -> None:
        self.sent, self.leaves_at, self.number = now, leaves_at, number
        self.waited_for = True
        self.stalled = False


class Model:
    """One run. `good[s]` counts the answers in time of second s."""

    def __init__(self, setup: Setup, seed: int) -> None:
        self.setup, self.luck = setup, Random(seed)
        self.end = setup.seconds * SECOND
        self.events: list[tuple[int, int, str, Job | None]] = []
        self.queue: deque[Job] = deque()
        self.busy = self.count = 0
        self.good = [0] * setup.seconds
        self.limiter = setup.limiter() if setup.limiter else None
        self.codel = CoDel(setup.codel) if setup.codel else None
        self.budget = RetryBudget(setup.budget) if setup.budget else None
        self.backoff = Backoff(setup.backoff, self.luck) if setup.backoff else None

    def push(self, at: float, kind: str, job: Job | None) -> None:
        self.count += 1
        heapq.heappush(self.events, (int(at), self.count, kind, job))

    def run(self) -> list[int]:
        self.push(0, "arrive", None)
        while self.events[0][0] < self.end:
            now, _, kind, job = heapq.heappop(self.events)
            if job is None:
                self.push(now + self.luck.expovariate(self.setup.load) * SECOND, "arrive", None)
                self.send(now, 1)
            elif kind == "leave":
                self.leave(now, job)
            elif kind == "retry":
                self.send(now, job.number + 1)
            else:
                self.finish(now, job)
        return self.good

    def send(self, now: int, number: int) -> None:
        if self.budget and number == 1:
            self.budget.on_request(now)
        if self.limiter and not self.limiter.try_acquire(now):
            return
        job = Job(now, now + self.setup.patience, number)
        self.push(job.leaves_at, "leave", job)
        if self.busy < WORKERS:
            self.start(now, job)
        else:
            self.queue.append(job)

    def start(self, now: int, job: Job) -> None:
        self.busy += 1
        slower = self.setup.slower if now > self.end / 3 else 1.0
        begin = now
        if self.setup.stall and SECOND <= now < SECOND + self.setup.stall:
            begin, job.stalled = SECOND + self.setup.stall, True
        self.push(begin + self.luck.expovariate(1) * SERVICE * slower, "finish", job)

    def leave(self, now: int, job: Job) -> None:
        if not job.waited_for:
            return
        job.waited_for = False
        if self.limiter:
            self.limiter.release(now, now - job.sent, TIMEOUT)
        if job.number < self.setup.attempts and (not self.budget or self.budget.try_retry(now)):
            self.push(now + self.backoff.delay(job.number) if self.backoff else now, "retry", job)

    def finish(self, now: int, job: Job) -> None:
        if self.setup.stall and now >= SECOND and job.sent < SECOND and not job.stalled:
            job.stalled = True  # it was being served when everything stopped
            self.push(now + self.setup.stall, "finish", job)
            return
        self.busy -= 1
        if job.waited_for:
            job.waited_for = False
            self.good[now // SECOND] += 1
            if self.limiter:
                self.limiter.release(now, now - job.sent, SUCCESS)
        while self.queue and self.busy < WORKERS:
            newest = takes_newest(self.setup.order, len(self.queue), WORKERS)
            following = self.queue.pop() if newest else self.queue.popleft()
            if self.worth_serving(now, following):
                self.start(now, following)

    def worth_serving(self, now: int, job: Job) -> bool:
        margin = self.setup.margin
        if margin is not None and not can_finish(now, job.leaves_at, int(SERVICE * margin / 5)):
            return False
        return self.codel is None or self.codel.on_dequeue(now, job.sent, not self.queue)


def adaptive(start: int, decrease: float) -> Callable[[], ConcurrencyLimiter]:
    given = settings.Limit(adaptive=settings.Adaptive(start=start, decrease=decrease))
    return lambda: ConcurrencyLimiter(given)


def per_sample(start: int, decrease: float) -> Callable[[], ConcurrencyLimiter]:
    def build() -> ConcurrencyLimiter:
        limiter = ConcurrencyLimiter(settings.Limit(max=start))
        limiter._estimator = PerSample(start, decrease)
        return limiter

    return build


def goodput(setup: Setup, since: int) -> str:
    """Answers in time per second from second `since` on: mean, and range over the seeds."""
    runs = [mean(Model(setup, seed).run()[since:]) for seed in SEEDS]
    return f"{mean(runs):5.0f} ({min(runs):.0f} to {max(runs):.0f})"


def adaptive_laws() -> None:
    print("\nAdaptive limit from 20; answers in time per second, from second 5 of 30")
    for name, law in (("per round trip", adaptive), ("per sample", per_sample)):
        for decrease in (0.9, 0.7, 0.5):
            figures = [goodput(Setup(load, limiter=law(20, decrease)), 5) for load in (800, 1500)]
            print(f"  {name:15} x {decrease}   800/s: {figures[0]}   1500/s: {figures[1]}")
    print(
        "\nThe service becomes five times slower (200/s) at second 20 of 60; 900/s; patience 1 s;"
    )
    print("limit 400 at first. Answers in time per second, after the change")
    for name, law in (("per round trip", adaptive), ("per sample", per_sample)):
        for decrease in (0.9, 0.7, 0.5):
            setup = Setup(900, 60, patience=SECOND, slower=5, limiter=law(400, decrease))
            print(f"  {name:15} x {decrease}   {goodput(setup, 20)}")


LAWS: Final = {
    "adaptive": settings.Limit(adaptive=settings.Adaptive()),
    "gradient": settings.Limit(gradient=settings.Gradient()),
    "vegas": settings.Limit(vegas=settings.Vegas()),
}


def limits_by_latency() -> None:
    print("\nLimits from 20; answers in time per second; from second 5 of 30, and in the last case")
    print("after the service became five times slower (200/s) at second 20 of 60, patience 1 s")
    for name, law in LAWS.items():
        build = partial(ConcurrencyLimiter, law)
        figures = [goodput(Setup(load, limiter=build), 5) for load in (800, 1500)]
        slow = Setup(900, 60, patience=SECOND, slower=5, limiter=build)
        print(f"  {name:9} 800/s: {figures[0]}   1500/s: {figures[1]}   {goodput(slow, 20)}")
    print("\nCallers who wait 10 s, 1500/s: the limit, and with it the queue, after minutes")
    for name, law in LAWS.items():
        for minutes in (1, 10, 30):
            limits = []
            for seed in SEEDS:
                build = partial(ConcurrencyLimiter, law)
                model = Model(Setup(1500, minutes * 60, patience=10 * SECOND, limiter=build), seed)
                model.run()
                assert model.limiter
                limits.append(model.limiter.limit)
            print(
                f"  {name:9} {minutes:3} min  {mean(limits):5.0f} ({min(limits)} to {max(limits)})"
            )


def queues() -> None:
    print("\nNo limit, no retries, 1500/s offered; from second 5 of 30")
    for name, changes in (
        ("first in, first out", {}),
        ("last in, first out", {"order": "lifo"}),
        ("adaptive LIFO", {"order": "adaptive_lifo"}),
        *(
            (f"CoDel {target} ms / 100 ms", {"codel": settings.CoDel(target=target * MILLISECOND)})
            for target in (2, 5, 10, 20, 50)
        ),
    ):
        print(f"  {name:22} {goodput(Setup(1500, **changes), 5)}")
    print("\nHealthy, 900/s offered: what CoDel costs when nothing is wrong")
    for name, changes in (
        ("no CoDel", {}),
        *(
            (f"CoDel {target} ms / 100 ms", {"codel": settings.CoDel(target=target * MILLISECOND)})
            for target in (2, 5, 10, 20)
        ),
    ):
        print(f"  {name:22} {goodput(Setup(900, **changes), 5)}")


def retries() -> None:
    print("\nFour attempts, a stall of half a second at second 1; from second 50 of 60")
    tried: list[tuple[str, dict[str, object]]] = [
        ("at once", {}),
        ("backoff 50 ms", {"backoff": settings.Backoff(base=50 * MILLISECOND)}),
        ("backoff 1 s", {"backoff": settings.Backoff(base=SECOND)}),
        *((f"budget {ratio:.0%}", {"budget": settings.Budget(ratio=ratio)}) for ratio in RATIOS),
    ]
    for load in (600, 750):
        for name, changes in tried:
            setup = Setup(load, 60, attempts=4, stall=SECOND // 2, **changes)
            print(f"  {load}/s  {name:16} {goodput(setup, 50)}")


def margins() -> None:
    tried = (None, 0, 1, 2.5, 5, 7.5, 10)
    print("\nFour attempts at once, a stall of 2 s at second 1; from second 25 of 30")
    for load in (600, 750):
        for margin in tried:
            setup = Setup(load, attempts=4, stall=2 * SECOND, margin=margin)
            print(f"  {load}/s  {margin_name(margin):26} {goodput(setup, 25)}")
    print("\nNo retries, no stall; from second 5 of 30")
    for load in (900, 1500):
        for margin in tried:
            setup = Setup(load, margin=margin)
            print(f"  {load}/s  {margin_name(margin):26} {goodput(setup, 5)}")


def margin_name(margin: float | None) -> str:
    return "late work is served" if margin is None else f"margin {margin} service times"


if __name__ == "__main__":
    retries()
    adaptive_laws()
    limits_by_latency()
    queues()
    margins()
