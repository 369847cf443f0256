"""How long does `tidegate check` take, and how much memory, on the examples and on a large system?

    .venv/bin/python benchmarks/check.py [NAME ...]

Prints wall seconds, CPU seconds of all processes, and the peak memory of the largest. `large` is
made here: 50 services in five layers, 200 calls, ten triggers, the same for every run.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tidegate.settings.dump import dump
from tidegate.settings.system import Call, Client, Service, System, Time, Trigger
from tidegate.units import MILLISECOND, SECOND

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = ("minimal", "marketplace", "sign-in", "token-service", "portal", "large")


def large(seed: int = 1) -> System:
    """Fifty services in five layers of ten; each calls four to six of the layer below."""
    random = Random(seed)
    services: dict[str, Service] = {}
    calls = 0
    for layer in range(5):
        for place in range(10):
            name = f"s{layer}{place}"
            below = [f"s{layer + 1}{i}" for i in random.sample(range(10), 5)] if layer < 4 else []
            services[name] = Service(
                workers=random.choice((20, 40, 80)),
                time=Time(mean=random.choice((5, 10, 20)) * MILLISECOND),
                calls={
                    f"{name}-{callee}": Call(
                        to=callee,
                        per_request=random.choice((0.1, 0.2, 0.3)),
                        timeout=SECOND,
                        attempts=random.choice((1, 2, 3)),
                    )
                    for callee in below
                },
            )
            calls += len(below)
    clients = {
        f"c{place}": Client(
            rate=50.0, calls={f"c{place}-s0{place}": Call(to=f"s0{place}", timeout=3 * SECOND)}
        )
        for place in range(10)
    }
    assert (len(services), calls) == (50, 200)
    hit = random.sample(sorted(services), 10)
    triggers = {
        f"trouble at {name}": Trigger(service=name, slowdown=5.0, for_=30 * SECOND) for name in hit
    }
    return System(clients=clients, services=services, triggers=triggers)


def main(names: list[str]) -> None:
    print(f"{'system':16} {'verdict':22} {'wall s':>8} {'CPU s':>8} {'peak MiB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for name in names or NAMES:
            path = EXAMPLES / f"{name}.yaml"
            if name == "large":
                path = Path(folder) / "large.yaml"
                path.write_text(dump(large()))
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            started = time.monotonic()
            answer = subprocess.run(
                [sys.executable, "-m", "tidegate", "check", str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
            wall = time.monotonic() - started
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            verdict = answer.stdout.partition("  ")[0] or answer.stderr.strip()
            peak = after.ru_maxrss / 1024
            print(f"{name:16} {verdict:22} {wall:8.1f} {cpu:8.1f} {peak:9.0f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
