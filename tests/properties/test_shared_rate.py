"""One bucket of a host, in as many processes as you like, decides as one bucket in one process."""

import tempfile
from pathlib import Path

import pytest
from host_rig import Process
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.token_bucket import TokenBucket
from tidegate.runtime.shared import table as t
from tidegate.settings import policies
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND, SECOND

RATES = st.sampled_from(
    [
        policies.RateLimit(rate=10),
        policies.RateLimit(rate=10, burst=3),
        policies.RateLimit(rate=1 / 60, burst=2),
        policies.RateLimit(rate=1_000),
    ]
)
STEPS = st.one_of(
    st.just(0),
    st.integers(0, 200 * MILLISECOND),
    st.sampled_from([100 * MILLISECOND, SECOND, 60 * SECOND, 3600 * SECOND]),
)
CALLS = st.lists(st.tuples(st.integers(0, 2), STEPS, st.integers(1, 3), st.booleans()), max_size=60)


@pytest.mark.slow  # each of a hundred hosts has a table in a file
@given(rate=RATES, calls=CALLS)
def test_together_they_decide_as_one(
    rate: policies.RateLimit, calls: list[tuple[int, int, int, bool]]
) -> None:
    with tempfile.TemporaryDirectory() as base:
        directory = Path(base) / "state"
        call = Call(rate_limit=rate)
        now, born = SECOND, 3
        processes = [Process(directory, call, now, number) for number in range(3)]
        one = TokenBucket(rate)
        for who, step, cost, killed in calls:
            now += step
            policy = processes[who].pipeline.rate
            assert policy is not None
            assert policy.try_acquire(now, cost) == one.try_acquire(now, cost)
            assert policy.retry_after(now) == one.retry_after(now)
            if killed:
                table = processes[who].table
                table.words[table.row(processes[who].lane._row.index) + t.PID] = 0
                born += 1
                processes[who] = Process(directory, call, now, born)
