"""The fluid, which rates cures, and the simulation, which decides: do they end alike?

Cases are taken away from the tipping point, where luck decides and the fluid has none.
"""

from pathlib import Path

import msgspec
import pytest
from systems import stall, store

from tidegate.analysis.cures import with_call
from tidegate.analysis.fluid import simulate_graph
from tidegate.analysis.outcome import SEVERITY
from tidegate.analysis.results import goodput
from tidegate.analysis.runs import Spec, execute
from tidegate.settings.admission import Admission
from tidegate.settings.load import load
from tidegate.settings.policies import (
    Backoff,
    Breaker,
    Budget,
    Gradient,
    Hedge,
    Limit,
    Queue,
    Throttle,
    Vegas,
)
from tidegate.settings.system import System, Trigger
from tidegate.units import MILLISECOND, MINUTE, SECOND

pytestmark = pytest.mark.slow  # each case is one simulated run: half a second to four

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str, **trigger: object) -> System:
    system = load(EXAMPLES / f"{name}.yaml").system()
    changed = {
        key: msgspec.structs.replace(said, **trigger) for key, said in system.triggers.items()
    }
    return msgspec.structs.replace(system, triggers=changed)


def slow_store(**call: object) -> System:
    """A store three times slower for 20 s: 67 of its 140 requests a second can be served."""
    slow = Trigger(service="store", slowdown=3.0, for_=20 * SECOND)
    return store(triggers={"slow": slow}, **call)


def with_queue(system: System, queue: Queue) -> System:
    service = msgspec.structs.replace(system.services["store"], queue=queue)
    return msgspec.structs.replace(system, services={"store": service})


def with_door(system: System, limit: Limit) -> System:
    service = msgspec.structs.replace(system.services["store"], admission=Admission(limit=limit))
    return msgspec.structs.replace(system, services={"store": service})


MARKET = example("marketplace", for_=3 * MINUTE)
CASES = {
    "a storm sticks": (slow_store(), 1),
    "one attempt heals": (slow_store(attempts=1), 1),
    "a budget heals": (slow_store(budget=Budget()), 1),
    "backoff alone does not": (slow_store(backoff=Backoff(base=50 * MILLISECOND)), 1),
    "nor does decorrelated jitter": (
        slow_store(backoff=Backoff(base=50 * MILLISECOND, jitter="decorrelated")),
        1,
    ),
    "a throttle heals": (slow_store(throttle=Throttle()), 1),
    "a limit by the gradient of latency heals": (slow_store(limit=Limit(gradient=Gradient())), 1),
    "a limit by its queue heals": (slow_store(limit=Limit(vegas=Vegas())), 1),
    "the budget that a hedge brings heals": (slow_store(hedge=Hedge(after=400 * MILLISECOND)), 1),
    "a short queue heals": (with_queue(slow_store(), Queue(limit=40)), 1),
    "a long queue does not": (with_queue(slow_store(), Queue(limit=400)), 1),
    "newest first heals": (with_queue(slow_store(), Queue(order="lifo")), 1),
    "a door for as many as there are workers heals": (with_door(slow_store(), Limit(max=8)), 1),
    "a door that finds its limit heals": (with_door(slow_store(), Limit(gradient=Gradient())), 1),
    "a freeze of ten seconds sticks": (store(triggers={"stall": stall(10 * SECOND)}), 1),
    "the marketplace sticks": (MARKET, 5),
    "its licences optional": (
        with_call(MARKET, "licences", timeout=SECOND, attempts=1, optional=True),
        5,
    ),
    "its licences behind a breaker": (
        with_call(MARKET, "licences", optional=True, breaker=Breaker()),
        5,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_they_end_alike_and_serve_alike(case: str) -> None:
    system, divisor = CASES[case]
    (name,) = system.triggers
    course = simulate_graph(system, system.triggers[name])
    run = execute(Spec(system=system, trigger=name, seed=1, divisor=divisor, watch_drain=False))
    bad = SEVERITY["slow to drain"]
    assert (SEVERITY[course.outcome] >= bad) == (SEVERITY[run.outcome] >= bad)
    for client in system.clients:
        served = goodput(run.clients[client], run.start, run.end)
        assert course.goodput(client, course.start, course.end) == pytest.approx(served, abs=0.12)
