"""How long does the fluid take, for one service and for a whole system?

    python benchmarks/fluid.py [rounds]

CPU time, the smallest of some rounds with the spread up to the largest. One service: 30,000 steps
of ten workers at 600 of 1,000 requests a second, 100 ms, four attempts, in health and after a
freeze of half a second. Whole systems: chains of services of which the last is frozen for ten
seconds, to see that the cost grows with their number and no faster; and the examples, each trigger
of them.
"""

import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tidegate.analysis.fluid import Change, Course, Line, run, series, simulate_graph
from tidegate.settings.load import load
from tidegate.settings.system import System, Trigger
from tidegate.units import MILLISECOND, SECOND

STEPS = 30_000
DT = 0.002
BAR = 0.050  # seconds for those steps
EXAMPLES = Path(__file__).parents[1] / "examples"


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def report(name: str, times: list[float], note: str = "") -> None:
    low, high = min(times) * 1000, max(times) * 1000
    print(f"{name:46} {low:8.1f} ms   to {high:.1f}{note}")


def one_service() -> dict[str, Callable[[], object]]:
    length = STEPS * DT
    asked = series(600, length, DT)
    healthy = series(1000, length, DT)
    frozen = series(1000, length, DT, Change(5, 0.5))
    plain = Line(timeout=0.1, attempts=4)
    budget = Line(timeout=0.1, attempts=4, budget=0.1)
    return {
        "30,000 steps, healthy": lambda: run(plain, asked, healthy, dt=DT),
        "30,000 steps, storm": lambda: run(plain, asked, frozen, dt=DT),
        "30,000 steps with a budget, storm": lambda: run(budget, asked, frozen, dt=DT),
    }


def chain(services: int) -> System:
    """Each holds its workers while it calls the next."""

    def calls(index: int) -> dict[str, object]:
        timeout = SECOND * (services - index)
        return {f"c{index}": {"to": f"s{index}", "timeout": timeout, "attempts": 2}}

    middle = {
        f"s{n}": {
            "workers": 400,
            "time": {"mean": 5 * MILLISECOND},
            "calls": calls(n + 1) if n + 1 < services else {},
        }
        for n in range(services)
    }
    return msgspec.convert(
        {"clients": {"users": {"rate": 200.0, "calls": calls(0)}}, "services": middle}, System
    )


def chained(services: int) -> Callable[[], Course]:
    system = chain(services)
    freeze = Trigger(service=f"s{services - 1}", freeze=True, for_=10 * SECOND)
    return lambda: simulate_graph(system, freeze)


def example(path: Path, name: str) -> Callable[[], object]:
    system = load(path).system()
    return lambda: simulate_graph(system, system.triggers[name])


def main(rounds: int) -> None:
    print(f"Python {platform.python_version()}, CPU time, best of {rounds} rounds\n")
    for name, work in one_service().items():
        times = [seconds(work) for _ in range(rounds)]
        met = "" if "budget" in name else f"   bar {BAR * 1000:.0f} ms"
        report(name, times, met)
    print()
    sizes = (5, 10, 20, 40)
    each = []
    for size in sizes:
        work = chained(size)
        course = work()
        steps = len(course.backlog) / course.dt
        times = [seconds(work) for _ in range(rounds)]
        each.append(min(times) / size / steps)
        report(f"a chain of {size}, {steps:,.0f} steps", times)
    micros = statistics.mean(each) * 1e6
    print(f"a service and step: {micros:.1f} us, {max(each) / min(each):.2f}x apart\n")
    for path in sorted(EXAMPLES.glob("*.yaml")):
        for name in load(path).system().triggers:
            work = example(path, name)
            report(f"{path.stem}: {name}", [seconds(work) for _ in range(rounds)])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
