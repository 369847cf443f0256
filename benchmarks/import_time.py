"""What does `import tidegate` add to the start of an interpreter?

    .venv/bin/python benchmarks/import_time.py

Bar: 60 ms. Fresh interpreters start with and without the import in turn, so that a slow minute hits
both alike; the figure is the difference of the medians of the wall time.
"""

import subprocess
import sys
from statistics import median, quantiles
from time import perf_counter

RUNS = 20


def start_ms(script: str) -> float:
    """One fresh interpreter, from its start to its end."""
    begin = perf_counter()
    subprocess.run([sys.executable, "-I", "-c", script], check=True)
    return (perf_counter() - begin) * 1000


def main() -> None:
    """Print both medians with their quartiles, and the difference."""
    scripts = {"bare interpreter": "pass", "import tidegate": "import tidegate"}
    for script in scripts.values():
        start_ms(script)  # once unmeasured: the first start compiles and fills caches
    times: dict[str, list[float]] = {name: [] for name in scripts}
    for _ in range(RUNS):
        for name, script in scripts.items():
            times[name].append(start_ms(script))
    for name, spent in times.items():
        low, middle, high = quantiles(spent, n=4)
        print(f"{name:18}{middle:7.1f} ms, quartiles {low:.1f} to {high:.1f}")
    added = median(times["import tidegate"]) - median(times["bare interpreter"])
    print(f"{'added':18}{added:7.1f} ms, {RUNS} interleaved starts each; bar 60 ms")


if __name__ == "__main__":
    main()
