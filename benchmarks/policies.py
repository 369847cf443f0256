"""What does one decision of each policy cost?

    python benchmarks/policies.py [rounds]

Nanoseconds of CPU time per statement, the loop's own cost taken off. The cases run in turn, round
after round, so that a busy neighbour slows all of them alike; the smallest round counts, and the
middle one shows the spread.
"""

import platform
import statistics
import sys
import time
import timeit
from random import Random

from tidegate.core.backoff import Backoff
from tidegate.core.circuit_breaker import CircuitBreaker
from tidegate.core.codel import CoDel
from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.outcome import FAILURE, OVERLOADED, SUCCESS, Outcome
from tidegate.core.queue_order import can_finish, takes_newest
from tidegate.core.retry_budget import RetryBudget
from tidegate.core.throttle import Throttle
from tidegate.core.token_bucket import TokenBucket
from tidegate.settings import policies as settings
from tidegate.units import HOUR, MILLISECOND, SECOND

CALLS = 50_000
NOW = 1_000 * SECOND
BASELINE = "(an empty loop)"


def breaker() -> CircuitBreaker:
    return CircuitBreaker(settings.Breaker(), Random(1))


def held() -> CircuitBreaker:
    circuit = breaker()
    circuit.hold(NOW, "measured")
    return circuit


def spent() -> RetryBudget:
    budget = RetryBudget(settings.Budget())
    budget.try_retry(NOW)
    return budget


def full(limiter: ConcurrencyLimiter) -> ConcurrencyLimiter:
    while limiter.try_acquire(NOW):
        pass
    return limiter


def throttle(outcome: Outcome) -> Throttle:
    policy = Throttle(settings.Throttle(), Random(1))
    for _ in range(100):
        policy.settle(NOW, outcome)
    return policy


def standing() -> CoDel:
    judge = CoDel(settings.CoDel())
    judge.on_dequeue(NOW - SECOND, NOW - SECOND, queue_empty=False)
    return judge


FIXED = settings.Limit(max=100)
ADAPTIVE = settings.Limit(adaptive=settings.Adaptive())
GRADIENT = settings.Limit(gradient=settings.Gradient())
VEGAS = settings.Limit(vegas=settings.Vegas())
HUGE = settings.RateLimit(rate=1_000.0, burst=10_000_000)
CLOSED, ALSO_CLOSED, FAILING = (
    breaker(),
    breaker(),
    CircuitBreaker(settings.Breaker(volume=1_000_000, failures=1.0), Random(1)),
)
FAILING.settle(NOW, NOW, 0, SUCCESS)  # so that not all of them fail

CALL = """
on_request(now)
if acquire_rate(now) and (generation := admit(now)) >= 0 and acquire_place(now):
    release_place(now, 1000000, SUCCESS)
    settle(now, now, generation, SUCCESS)
"""

CASES: list[tuple[str, str, dict[str, object]]] = [
    (BASELINE, "pass", {}),
    ("(an empty function)", "f(now)", {"f": lambda _now: None}),
    ("backoff: delay", "f(1)", {"f": Backoff(settings.Backoff(), Random(1)).delay}),
    ("retry budget: on_request", "f(now)", {"f": RetryBudget(settings.Budget()).on_request}),
    ("retry budget: try_retry, refused", "f(now)", {"f": spent().try_retry}),
    ("breaker closed: admit", "f(now)", {"f": CLOSED.admit}),
    ("breaker closed: settle a success", "f(now, now, 0, SUCCESS)", {"f": CLOSED.settle}),
    ("breaker closed: settle a failure", "f(now, now, 0, FAILURE)", {"f": FAILING.settle}),
    (
        "breaker closed: try_acquire + release",
        "g(now, f(now), SUCCESS)",
        {"f": ALSO_CLOSED.try_acquire, "g": ALSO_CLOSED.release},
    ),
    ("breaker held: admit, refused", "f(now)", {"f": held().admit}),
    ("breaker held: try_acquire, refused", "f(now)", {"f": held().try_acquire}),
    ("token bucket: try_acquire", "f(now)", {"f": TokenBucket(HUGE).try_acquire}),
    (
        "token bucket: try_acquire, refused",
        "f(now)",
        {"f": TokenBucket(settings.RateLimit(rate=1 / 3600, burst=1)).try_acquire},
    ),
    (
        "limiter fixed: try_acquire + release",
        "f(now); g(now, 1000000, SUCCESS)",
        {
            "f": (fixed := ConcurrencyLimiter(FIXED)).try_acquire,
            "g": fixed.release,
        },
    ),
    (
        "limiter adaptive: try_acquire + release",
        "f(now); g(now, 1000000, SUCCESS)",
        {
            "f": (adaptive := ConcurrencyLimiter(ADAPTIVE)).try_acquire,
            "g": adaptive.release,
        },
    ),
    (
        "limiter gradient: try_acquire + release",
        "f(now); g(now, 1000000, SUCCESS)",
        {
            "f": (gradient := ConcurrencyLimiter(GRADIENT)).try_acquire,
            "g": gradient.release,
        },
    ),
    (
        "limiter vegas: try_acquire + release",
        "f(now); g(now, 1000000, SUCCESS)",
        {
            "f": (vegas := ConcurrencyLimiter(VEGAS)).try_acquire,
            "g": vegas.release,
        },
    ),
    ("throttle: try_acquire", "f(now)", {"f": throttle(SUCCESS).try_acquire}),
    ("throttle: try_acquire, nine in ten kept", "f(now)", {"f": throttle(OVERLOADED).try_acquire}),
    ("throttle: settle a success", "f(now, SUCCESS)", {"f": throttle(SUCCESS).settle}),
    (
        "limiter: try_acquire, refused",
        "f(now)",
        {"f": full(ConcurrencyLimiter(FIXED)).try_acquire},
    ),
    ("codel: on_dequeue, delivered", "f(now, now, False)", {"f": standing().on_dequeue}),
    (
        "codel: on_dequeue, dropped",
        "f(now, then, False)",
        {"f": standing().on_dequeue, "then": NOW - SECOND},
    ),
    ("queue order: takes_newest", "f('adaptive_lifo', 30, 10)", {"f": takes_newest}),
    (
        "queue order: can_finish",
        "f(now, later, mean)",
        {"f": can_finish, "later": NOW + HOUR, "mean": 10 * MILLISECOND},
    ),
    (
        "all: one call that succeeds (flat form)",
        CALL,
        {
            "on_request": RetryBudget(settings.Budget()).on_request,
            "acquire_rate": TokenBucket(HUGE).try_acquire,
            "admit": (circuit := breaker()).admit,
            "settle": circuit.settle,
            "acquire_place": (places := ConcurrencyLimiter(FIXED)).try_acquire,
            "release_place": places.release,
        },
    ),
]


def timer(statement: str, names: dict[str, object]) -> timeit.Timer:
    """Names become locals of the loop, as they are in a guard that binds its policies once."""
    given = {"now": NOW, "SUCCESS": SUCCESS, "FAILURE": FAILURE} | names
    bind = "; ".join(f"{name} = given[{name!r}]" for name in given)
    return timeit.Timer(statement, bind, timer=time.process_time, globals={"given": given})


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    timers = [(name, timer(statement, names)) for name, statement, names in CASES]
    seen: dict[str, list[float]] = {name: [] for name, _ in timers}
    for _ in range(rounds):
        for name, case in timers:
            seen[name].append(case.timeit(CALLS) / CALLS * 1e9)
    loop = min(seen.pop(BASELINE))
    print(f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}")
    print(f"ns of CPU time per line, loop ({loop:.0f} ns) taken off; {rounds} rounds x {CALLS}")
    print(f"{'':42}{'smallest':>9}{'middle':>9}")
    for name, times in seen.items():
        print(f"{name:42}{min(times) - loop:9.0f}{statistics.median(times) - loop:9.0f}")


if __name__ == "__main__":
    main()
