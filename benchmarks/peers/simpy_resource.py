"""SimPy with a resource and a process for each attempt, as its own examples are written."""

from collections.abc import Iterator
from time import process_time
from typing import Any

import simpy
from model import ATTEMPTS, RATE, WORK_S, WORKERS, Result, Scenario, Tally, luck, main


def run(scenario: Scenario, requests: int, seed: int) -> Result:
    """About `requests` arrivals."""
    begin = process_time()
    tally = Tally()
    arrivals, work = luck(seed)
    env = simpy.Environment()
    workers = simpy.Resource(env, WORKERS)

    def source() -> Iterator[Any]:
        while True:
            yield env.timeout(arrivals.expovariate(RATE))
            tally.requests += 1
            env.process(request())

    def request() -> Iterator[Any]:
        arrived = env.now
        for _ in range(ATTEMPTS):
            tally.attempts += 1
            answer = env.process(attempt())
            yield answer | env.timeout(scenario.timeout_s)
            if answer.processed:
                tally.answered += 1
                tally.response_s += env.now - arrived
                return

    def attempt() -> Iterator[Any]:
        with workers.request() as mine:
            yield mine
            yield env.timeout(work.expovariate(1 / WORK_S))

    def late() -> Iterator[Any]:
        with workers.request() as mine:
            yield mine
            yield env.timeout(scenario.late_start_s)

    for _ in range(WORKERS):
        env.process(late())
    env.process(source())
    env.run(until=requests / RATE)
    return tally.result(process_time() - begin)


if __name__ == "__main__":
    main(run)
