"""How fast is our simulator beside its peers, on one identical model?

One command: it makes `.venv-peers` with every engine in it, runs each in a process of its own in
interleaved rounds, checks that all of them simulated the same thing, and only then prints speeds:
requests per second of CPU time, so that whatever else the machine does counts little.

    python benchmarks/run.py
"""

import argparse
import json
import platform
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ENVIRONMENT = ROOT / ".venv-peers"
REQUIREMENTS = HERE / "peers" / "requirements.txt"
PYTHON = ENVIRONMENT / "bin" / "python"

# Closed form of M/M/10 at 800/s and 10 ms: Erlang C 0.409, mean response 12.046 ms.
RESPONSE_S = 0.0120459


class Engine(NamedTuple):
    """One way to run the model. `seeds` per round, so that a round lasts about a second."""

    name: str
    module: str
    seeds: int
    scenarios: tuple[str, ...] = ("healthy", "storm")
    luck: str = "shared"  # `shared`: equal to the last count; `own`: equal in its statistics


OURS = Engine("Tidegate, policies asked", "tidegate_with_policies", 8, luck="own")
REFERENCE = Engine("plain heap, no library", "plain_heap", 8)
ENGINES = (
    OURS,
    Engine("Tidegate, no policies", "tidegate_model", 8, luck="own"),
    REFERENCE,
    Engine("SimPy, store", "simpy_store", 2),
    Engine("SimPy, resource", "simpy_resource", 2),
    Engine("Ciw, weaker model", "ciw_model", 2, ("healthy",), luck="weaker"),
    Engine("salabim", "salabim_model", 1),
)


class Measured(NamedTuple):
    """All rounds of one engine in one scenario."""

    results: list[dict[str, float]]  # of the first round, one per seed
    speeds: list[float]  # requests per CPU second, one per round
    peak_mb: float

    @property
    def best(self) -> float:
        """The round that was disturbed least."""
        return max(self.speeds)

    @property
    def spread(self) -> float:
        """How much slower the slowest round was, as a share of the best."""
        return 1 - min(self.speeds) / self.best

    def mean(self, key: str) -> float:
        """Mean over the seeds."""
        return sum(result[key] for result in self.results) / len(self.results)


def prepare() -> None:
    """The environment with every engine, made once and again when the pins change."""
    pins = REQUIREMENTS.read_text()
    made_from = ENVIRONMENT / "made-from"
    if made_from.exists() and made_from.read_text() == pins:
        return
    say("making .venv-peers")
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", str(REQUIREMENTS)], check=True)
    ours = ["--no-build-isolation", "--no-deps", "-e", str(ROOT)]
    subprocess.run([*pip, *ours], check=True)
    made_from.write_text(pins)


def say(what: str) -> None:
    """Progress, kept apart from the figures."""
    print(what, file=sys.stderr, flush=True)


def run_once(engine: Engine, scenario: str, requests: int) -> dict[str, Any]:
    """One engine, one scenario, one process."""
    command = [str(PYTHON), f"{engine.module}.py", scenario, str(requests), str(engine.seeds)]
    run = subprocess.run(command, cwd=HERE / "peers", capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"{engine.name} failed:\n{run.stderr}")
    said: dict[str, Any] = json.loads(run.stdout)
    return said


def measure(scenario: str, requests: int, rounds: int) -> dict[Engine, Measured]:
    """Every engine in turn, round after round, so that a slow minute hits all alike."""
    engines = [engine for engine in ENGINES if scenario in engine.scenarios]
    measured = {engine: Measured([], [], 0.0) for engine in engines}
    for number in range(1, rounds + 1):
        say(f"{scenario}, round {number} of {rounds}")
        for engine in engines:
            said = run_once(engine, scenario, requests)
            results = said["results"]
            cpu_s = sum(result["cpu_s"] for result in results)
            speed = sum(result["requests"] for result in results) / cpu_s
            old = measured[engine]
            peak_mb = max(old.peak_mb, said["peak_mb"])
            measured[engine] = Measured(results, [*old.speeds, speed], peak_mb)
    return measured


def disagreements(scenario: str, measured: dict[Engine, Measured]) -> list[str]:
    """What an engine did that another model would do: then its speed means nothing."""
    reference = measured[REFERENCE]
    wrong = []
    for engine, mine in measured.items():
        if engine.luck == "shared":
            for key in ("requests", "attempts", "goodput", "response_s"):
                here = [result[key] for result in mine.results]
                there = [result[key] for result in reference.results[: len(here)]]
                if here != there:
                    wrong.append(f"{engine.name}: {key} {here}, not {there}")
            continue
        ratio = mine.mean("attempts") / mine.mean("requests")
        expected = reference.mean("attempts") / reference.mean("requests")
        if abs(ratio - expected) > 0.01 * expected:
            wrong.append(f"{engine.name}: {ratio:.4f} attempts a request, not {expected:.4f}")
        if abs(mine.mean("goodput") - reference.mean("goodput")) > 0.002:
            wrong.append(f"{engine.name}: goodput {mine.mean('goodput'):.4f}")
        if scenario == "healthy" and abs(mine.mean("response_s") / RESPONSE_S - 1) > 0.1:
            wrong.append(f"{engine.name}: mean response {mine.mean('response_s'):.5f} s")
    return wrong


def agreement(scenario: str, measured: dict[Engine, Measured]) -> str:
    """In what they agree, in one line for each kind of luck."""
    shared = [engine.name for engine in measured if engine.luck == "shared"]
    said = [f"equal counts and means on equal luck: {'; '.join(shared)}"]
    for engine in (REFERENCE, OURS):
        mine = measured[engine]
        line = f"{engine.name}: {mine.mean('attempts') / mine.mean('requests'):.4f} attempts"
        line += f" a request, goodput {mine.mean('goodput'):.4f}"
        if scenario == "healthy":
            line += f", mean response {mine.mean('response_s') * 1000:.2f} ms"
            line += f" (closed form {RESPONSE_S * 1000:.2f})"
        said.append(line)
    return "\n".join(said)


def table(measured: dict[Engine, Measured]) -> str:
    """The speeds of one scenario, with ours divided by each."""
    ours = measured[OURS].best
    lines = [f"{'':26}{'requests per CPU s':>18}{'spread':>8}{'ours is':>9}{'peak':>9}"]
    for engine, mine in measured.items():
        lines.append(
            f"{engine.name:26}{mine.best:18,.0f}{mine.spread:8.0%}{ours / mine.best:8.2f}x"
            f"{mine.peak_mb:6.0f} MB"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description="Our simulator beside its peers, in CPU time.")
    parser.add_argument("--requests", type=int, default=40_000, help="of one run (40000)")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved (3)")
    given = parser.parse_args()
    prepare()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    print(
        f"{python}, {platform.machine()}; {given.requests:,} requests a run; "
        f"best of {given.rounds} interleaved rounds, spread = how much slower the slowest was",
        flush=True,
    )
    for scenario in ("healthy", "storm"):
        measured = measure(scenario, given.requests, given.rounds)
        wrong = disagreements(scenario, measured)
        if wrong:
            sys.exit("the engines do not simulate the same thing:\n  " + "\n  ".join(wrong))
        print(f"\n{scenario}\n{agreement(scenario, measured)}\n{table(measured)}", flush=True)


if __name__ == "__main__":
    main()
