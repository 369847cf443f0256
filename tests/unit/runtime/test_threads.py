"""Threads that come and go without the lock are counted to the last one, whoever is quicker."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

import tidegate
from tidegate import guard
from tidegate.runtime.registry import _forget
from tidegate.settings.policies import Adaptive, Breaker, Limit
from tidegate.testing import instant

THREADS, CALLS = 8, 1_500


@pytest.fixture(autouse=True)
def _hurried() -> Iterator[None]:
    """A thread is interrupted after a few instructions instead of after five milliseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    _forget()
    with instant():
        yield
    _forget()
    sys.setswitchinterval(before)


def asks(luck: float) -> None:
    if luck < 0.02:
        raise ConnectionError
    if luck < 0.022:
        raise TimeoutError


@pytest.mark.slow  # 12,000 calls of threads that interrupt each other
def test_nobody_is_counted_twice_or_not_at_all() -> None:
    own = guard(
        "d",
        attempts=2,
        backoff=None,
        breaker=Breaker(failures=1.0, volume=1_000_000),
        limit=Limit(adaptive=Adaptive(start=40)),
    )
    guarded, seen, together = own(asks), Counter[str](), threading.Lock()

    def work(seed: int) -> None:
        rng, ends = Random(seed), Counter[str]()
        for number in range(CALLS):
            try:
                guarded(rng.random())
                ends["ok"] += 1
            except tidegate.Rejected:
                ends["rejected"] += 1
            except OSError:
                ends["failed"] += 1
            if number % 500 == 0:
                assert own.snapshot().pending >= 0
        with together:
            seen.update(ends)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = own.snapshot()
    assert (told.started, told.pending, told.inflight) == (THREADS * CALLS, 0, 0)
    assert Counter(ok=told.ok, failed=told.failed, rejected=told.rejected) == seen
    assert told.attempts == sum(told.outcomes.values())
    breaker, budget = own.dependency.pipeline.breaker, own.dependency.pipeline.budget
    assert breaker is not None
    assert budget is not None
    assert breaker.calls == told.attempts
    assert budget.requests == told.attempts - told.retries
