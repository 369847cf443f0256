"""Which model do all engines run, and what does each report of it?

Clients send requests as a Poisson stream of 800/s to 10 workers with an unbounded queue, first in
first out; work is exponential with a mean of 10 ms. An attempt that has no answer after its timeout
is given up by its caller, who sends another at once, four attempts in all. The workers still do
what was given up, in full, and a late answer counts for nothing.

Two scenarios. Healthy: a timeout of 100 ms, which 6 of 100,000 attempts miss. Storm: a timeout of
50 ms, and workers that start half a second late. Left alone, that timeout tips over by itself after
67 s on average, so that a run would measure how lucky its seed was; after the late start every
engine is in the storm from its first request to its last.

Engines that take their luck from `luck` draw the same numbers in the same order (work is drawn when
a worker takes it, and first in is first out). Their runs are the same run, so their counts must be
equal to the last one, and their means to the last digit.
"""

import argparse
import gc
import json
import resource
from collections.abc import Callable
from random import Random
from typing import NamedTuple, TypedDict

RATE = 800.0  # requests per second
WORKERS = 10
WORK_S = 0.010
ATTEMPTS = 4


class Scenario(NamedTuple):
    """What differs between health and storm."""

    timeout_s: float
    late_start_s: float  # how long the workers do nothing at first


SCENARIOS = {"healthy": Scenario(0.100, 0.0), "storm": Scenario(0.050, 0.5)}


class Result(TypedDict):
    """What one run says of itself."""

    requests: int  # that arrived within the run
    attempts: int
    goodput: float  # share of the requests that were answered within a timeout
    response_s: float  # mean of those, from the request's arrival to its answer
    cpu_s: float


Run = Callable[[Scenario, int, int], Result]


def luck(seed: int) -> tuple[Random, Random]:
    """The stream of arrivals and the stream of work."""
    return Random(f"{seed}/arrivals"), Random(f"{seed}/work")


class Tally:
    """The counts of one run, kept alike by every engine."""

    __slots__ = ("answered", "attempts", "requests", "response_s")

    def __init__(self) -> None:
        self.requests = self.attempts = self.answered = 0
        self.response_s = 0.0

    def result(self, cpu_s: float) -> Result:
        """The figures of the run, which took `cpu_s`."""
        return Result(
            requests=self.requests,
            attempts=self.attempts,
            goodput=self.answered / self.requests,
            response_s=self.response_s / max(1, self.answered),
            cpu_s=cpu_s,
        )


def main(run: Run) -> None:
    """Run one engine in a process of its own: a result for each seed, and the peak of memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("requests", type=int)
    parser.add_argument("seeds", type=int, help="how many, from 1")
    given = parser.parse_args()
    scenario = SCENARIOS[given.scenario]
    results = []
    for seed in range(1, given.seeds + 1):
        results.append(run(scenario, given.requests, seed))
        gc.collect()  # a finished run is a heap of cycles; the next must not start on top of it
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"results": results, "peak_mb": peak_mb}))
