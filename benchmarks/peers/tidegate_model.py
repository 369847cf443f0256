"""Tidegate: the model as a described system, run in virtual time with the event log off.

Its luck comes from streams of its own, so its runs agree with the others' in their statistics, not
to the last count. `policies` puts a retry budget, a circuit breaker and a concurrency limit in the
path of every attempt, set so wide that they never say no: the same run, and what asking them costs.
"""

from time import process_time

from model import ATTEMPTS, RATE, WORK_S, WORKERS, Result, Scenario, main

from tidegate.settings.policies import Breaker, Budget, Limit
from tidegate.settings.system import Call, Client, Service, System, Time, Trigger
from tidegate.sim.world import World
from tidegate.units import seconds

WIDE = {
    "budget": Budget(ratio=10.0),
    "breaker": Breaker(failures=1.0, volume=1_000_000),
    "limit": Limit(max=1_000_000),
}


def run(scenario: Scenario, requests: int, seed: int, *, policies: bool = False) -> Result:
    """About `requests` arrivals."""
    begin = process_time()
    call = Call(
        timeout=seconds(scenario.timeout_s),
        attempts=ATTEMPTS,
        retry_on=("timeout",),
        **(WIDE if policies else {}),
    )
    system = System(
        clients={"people": Client(rate=RATE, calls={"pool": call})},
        services={"pool": Service(workers=WORKERS, time=Time(mean=seconds(WORK_S)))},
    )
    end = seconds(requests / RATE)
    world = World(system, seed=seed, horizon=end)
    if scenario.late_start_s:
        late = Trigger(service="pool", freeze=True, for_=seconds(scenario.late_start_s))
        world.plan("late start", late, 0)
    world.run(end)
    cpu_s = process_time() - begin
    people = world.clients["people"].tally
    arrived = sum(people.offered)
    # Little's law: what is in the system, sampled each second, is the rate times the response.
    in_system = world.services["pool"].tally.backlog[1 : int(requests / RATE)]
    return Result(
        requests=arrived,
        attempts=sum(world.calls["pool"].attempts),
        goodput=sum(people.eventual) / arrived,
        response_s=sum(in_system) / len(in_system) / RATE,
        cpu_s=cpu_s,
    )


if __name__ == "__main__":
    main(run)
