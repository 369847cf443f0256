"""Ciw, which has impatience while waiting, but no timeout in service, no retry, no abandoned work.

So it runs a weaker model: in health the same but for 6 attempts in 100,000; no storm.
"""

from random import Random
from time import process_time
from typing import Any

import ciw
from model import RATE, WORK_S, WORKERS, Result, Scenario, luck, main


class Exponential(ciw.dists.Distribution):
    """Exponential times from a stream of our own, as Ciw's would come from the global one."""

    def __init__(self, rate: float, stream: Random) -> None:
        self.rate = rate
        self.draw = stream.expovariate

    def sample(self, t: Any = None, ind: Any = None) -> float:
        return self.draw(self.rate)


def run(scenario: Scenario, requests: int, seed: int) -> Result:
    """About `requests` arrivals."""
    begin = process_time()
    arrivals, work = luck(seed)
    network = ciw.create_network(
        arrival_distributions=[Exponential(RATE, arrivals)],
        service_distributions=[Exponential(1 / WORK_S, work)],
        reneging_time_distributions=[ciw.dists.Deterministic(scenario.timeout_s)],
        number_of_servers=[WORKERS],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(requests / RATE)
    cpu_s = process_time() - begin
    records = simulation.get_all_records()
    times = [r.exit_date - r.arrival_date for r in records if r.record_type == "service"]
    answered = [time for time in times if time < scenario.timeout_s]
    arrived: int = simulation.nodes[0].number_of_individuals
    return Result(
        requests=arrived,
        attempts=arrived,
        goodput=len(answered) / arrived,
        response_s=sum(answered) / len(answered),
        cpu_s=cpu_s,
    )


if __name__ == "__main__":
    main(run)
