"""SimPy with a store between requests and workers: the fastest of its idioms that we found."""

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
    queue = simpy.Store(env)

    def source() -> Iterator[Any]:
        while True:
            yield env.timeout(arrivals.expovariate(RATE))
            tally.requests += 1
            env.process(request())

    def request() -> Iterator[Any]:
        arrived = env.now
        for _ in range(ATTEMPTS):
            tally.attempts += 1
            answer = env.event()
            queue.put(answer)
            yield answer | env.timeout(scenario.timeout_s)
            if answer.processed:
                tally.answered += 1
                tally.response_s += env.now - arrived
                return

    def worker() -> Iterator[Any]:
        yield env.timeout(scenario.late_start_s)
        while True:
            answer = yield queue.get()
            yield env.timeout(work.expovariate(1 / WORK_S))
            answer.succeed()

    env.process(source())
    for _ in range(WORKERS):
        env.process(worker())
    env.run(until=requests / RATE)
    return tally.result(process_time() - begin)


if __name__ == "__main__":
    main(run)
