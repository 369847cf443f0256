"""The model as one writes it without a library: one heap of events, one loop."""

from collections import deque
from heapq import heappop, heappush
from itertools import count
from time import process_time
from typing import Any

from model import ATTEMPTS, RATE, WORK_S, WORKERS, Result, Scenario, Tally, luck, main

ARRIVAL, TIMEOUT, FREE = range(3)


def run(scenario: Scenario, requests: int, seed: int) -> Result:
    """About `requests` arrivals."""
    begin = process_time()
    tally = Tally()
    arrivals, work = luck(seed)
    end = requests / RATE
    order = count()
    events: list[tuple[float, int, int, Any]] = []
    queue: deque[list[Any]] = deque()
    idle = 0

    def later(now: float, kind: int, what: Any) -> None:
        heappush(events, (now, next(order), kind, what))

    def send(now: float, arrived: float, number: int) -> None:
        nonlocal idle
        tally.attempts += 1
        attempt = [arrived, number, True]  # True while its caller waits
        later(now + scenario.timeout_s, TIMEOUT, attempt)
        if idle:
            idle -= 1
            later(now + work.expovariate(1 / WORK_S), FREE, attempt)
        else:
            queue.append(attempt)

    later(arrivals.expovariate(RATE), ARRIVAL, None)
    for _ in range(WORKERS):
        later(scenario.late_start_s, FREE, None)
    while True:
        now, _, kind, attempt = heappop(events)
        if now >= end:
            return tally.result(process_time() - begin)
        if kind == ARRIVAL:
            tally.requests += 1
            later(now + arrivals.expovariate(RATE), ARRIVAL, None)
            send(now, now, 1)
        elif kind == TIMEOUT and attempt[2]:
            attempt[2] = False
            if attempt[1] < ATTEMPTS:
                send(now, attempt[0], attempt[1] + 1)
        elif kind == FREE:
            if attempt is not None and attempt[2]:
                attempt[2] = False
                tally.answered += 1
                tally.response_s += now - attempt[0]
            if queue:
                later(now + work.expovariate(1 / WORK_S), FREE, queue.popleft())
            else:
                idle += 1


if __name__ == "__main__":
    main(run)
