"""What does it cost to share a guard's state with the other processes of the host?

    python benchmarks/shared.py [rounds]

Microseconds of CPU time, smallest and middle of some rounds. The other processes are rows that
have just been written, each with traffic: a look reads all of them. `PYTHONHASHSEED` and load
change the figures by a few percent; the ratio of the first two lines is what a call pays.
"""

import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from tidegate.core.outcome import SUCCESS, Permit
from tidegate.core.pipeline import Pipeline
from tidegate.runtime.shared.lane import Lane
from tidegate.runtime.shared.owner import this_process
from tidegate.runtime.shared.table import Table
from tidegate.settings import policies
from tidegate.settings.system import Call

CALL = Call(attempts=2, budget=policies.Budget(), breaker=policies.Breaker())
FIXED = Call(limit=policies.Limit(max=1_000))
RATE = Call(rate_limit=policies.RateLimit(rate=1_000, burst=10_000_000))
SIZES = (1, 8, 32, 128)
CALLS = 2_000
NOW = time.monotonic_ns()


def process(directory: Path, settings: Call, number: int) -> tuple[Pipeline, Lane]:
    owner = this_process()._replace(namespace=number + 1)
    pipeline = Pipeline(settings, Random(number))
    table = Table.open(directory, "measured")
    return pipeline, Lane(table, lambda: [pipeline], NOW, who=lambda: owner)


def host(base: Path, settings: Call, size: int) -> tuple[Pipeline, Lane]:
    """The first of so many processes."""
    directory = base / f"{id(settings)}-{size}"
    first, *others = (process(directory, settings, number) for number in range(size))
    for pipeline, lane in (*others, first):
        for _ in range(20):
            call(pipeline)
        lane.look(NOW)
    return first


def call(pipeline: Pipeline) -> None:
    permit = pipeline.admit(NOW, 0)
    assert type(permit) is Permit
    pipeline.settle(NOW, permit, SUCCESS)


def exact_no(pipeline: Pipeline) -> None:
    """A retry that is asked of the host and refused; never taken from what is known."""
    budget = pipeline.budget
    budget._sure_until = 0  # type: ignore[union-attr]
    budget.try_retry(NOW)  # type: ignore[union-attr]


def spent(pipeline: Pipeline) -> Pipeline:
    while pipeline.budget is not None and pipeline.budget.try_retry(NOW):
        pass
    return pipeline


def cases(base: Path) -> dict[str, Callable[[], object]]:
    alone, with_limit = Pipeline(CALL, Random(1)), Pipeline(FIXED, Random(1))
    shared, _ = host(base, CALL, 8)
    found: dict[str, Callable[[], object]] = {
        "a call that succeeds, alone": partial(call, alone),
        "a call that succeeds, shared": partial(call, shared),
        "the same with a fixed limit, alone": partial(call, with_limit),
    }
    for size in SIZES:
        limited, _ = host(base, FIXED, size)
        found[f"a fixed limit, shared by {size}"] = partial(call, limited)
    found["the same with a rate, alone"] = partial(call, Pipeline(RATE, Random(1)))
    for size in SIZES:
        rated, _ = host(base, RATE, size)
        found[f"a rate, shared by {size}"] = partial(call, rated)
    for size in SIZES:
        pipeline, lane = host(base, CALL, size)
        found[f"a look at {size} rows"] = partial(lane.look, NOW)
        spent(pipeline)
        found[f"a retry asked of {size} rows"] = partial(exact_no, pipeline)
        if size == 8 and pipeline.budget is not None:
            found["a retry refused as a moment ago"] = partial(pipeline.budget.try_retry, NOW)
    return found


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as base:
        measured = cases(Path(base))
        seen: dict[str, list[float]] = {name: [] for name in measured}
        for _ in range(rounds):
            for name, case in measured.items():
                began = time.process_time_ns()
                for _ in range(CALLS):
                    case()
                seen[name].append((time.process_time_ns() - began) / CALLS / 1_000)
    print(f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}")
    print(f"us of CPU time; {rounds} rounds x {CALLS}")
    print(f"{'':38}{'smallest':>9}{'middle':>9}")
    for name, times in seen.items():
        print(f"{name:38}{min(times):9.2f}{statistics.median(times):9.2f}")


if __name__ == "__main__":
    main()
