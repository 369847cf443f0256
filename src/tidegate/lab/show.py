"""In which order is a storm shown, and what follows from it?

First what the simulator says, which takes a second; then the same live, without a guard and with
one, each for as long as the story lasts, one after the other so that neither disturbs the other.
The verdict is about the guard: it *holds* if, live, most of what the service can still do is
answered in time, and all is well again as soon as the file's objective asks.
"""

import time
from collections.abc import Callable
from importlib import resources
from typing import Final

from tidegate._version import __version__
from tidegate.findings import Measure
from tidegate.lab.findings import StormReport, StormRun
from tidegate.lab.live import live
from tidegate.lab.storm import Storm, agreement, guarded, predicted, told
from tidegate.settings.system import Call
from tidegate.units import SECOND, format_duration, format_share

__all__ = ["HOLDS", "default_story", "show"]

HOLDS: Final = 0.8
"""So much of what the service can still do must be answered in time, live, for a guard to hold."""

_PREDICTIONS: Final = 20  # each takes a few hundredths of a second; their range is then 5..95 %


def default_story() -> str:
    """The text of the storm's own system file."""
    return resources.files("tidegate.lab").joinpath("storm.yaml").read_text(encoding="utf-8")


def show(
    storm: Storm, *, source: str, seed: int, repeat: str, progress: Callable[[str], None]
) -> StormReport:
    """Predict it, raise it, raise it again with a guard, and say what was seen."""
    began = time.monotonic()
    with_guard = guarded(storm)
    seeds = range(seed, seed + _PREDICTIONS)
    progress("predicting")
    said = [predicted(storm, each) for each in seeds]
    said_guarded = [predicted(with_guard, each) for each in seeds]
    lasts = f"{storm.whole // SECOND} s"
    progress(f"live, without a guard: {lasts}")
    seen = live(storm, seed, guard=False)
    progress(f"live, with a guard: {lasts}")
    seen_guarded = live(with_guard, seed, guard=True)
    runs = [
        told(storm, "unguarded", "simulated", said),
        told(storm, "unguarded", "measured", [seen]),
        told(with_guard, "guarded", "simulated", said_guarded),
        told(with_guard, "guarded", "measured", [seen_guarded]),
    ]
    return StormReport(
        version=__version__,
        source=source,
        says=_says(storm, runs[1], runs[3]),
        trigger=_what_happens(storm),
        offered=storm.rate,
        left=storm.left,
        guard=_terms(with_guard.call),
        runs=runs,
        agreement=[
            *agreement("unguarded", said, [seen]),
            *agreement("guarded", said_guarded, [seen_guarded]),
        ],
        seeds=list(seeds),
        repeat=repeat,
        took_s=time.monotonic() - began,
        exit_code=0 if _holds(storm, runs[3]) else 1,
    )


def _what_happens(storm: Storm) -> str:
    for_ = f"for {format_duration(storm.lasts)}"
    trigger = storm.trigger
    if trigger.client is None:
        return f"{storm.service_name} is {storm.slowdown:g} times slower {for_}"
    ramp = f", after a ramp of {format_duration(trigger.ramp)}" if trigger.ramp else ""
    return f"{storm.client} send {trigger.load or 1:g} times as much {for_}{ramp}"


def _holds(storm: Storm, run: StormRun) -> bool:
    back = run.back_after
    within = storm.system.objective.within / SECOND
    return run.kept.low >= HOLDS and back is not None and back.high <= within


def _says(storm: Storm, without: StormRun, with_guard: StormRun) -> str:
    could = f"of what {storm.service_name} could still do"
    return (
        f"with a guard {_kept(with_guard.kept)} {could} was answered in time, and it was"
        f" {_back(with_guard.back_after)}; without one {_kept(without.kept)}, and it was"
        f" {_back(without.back_after)}"
    )


def _kept(kept: Measure) -> str:
    """More than all is what was in work when the slowness came; it would be odd to boast of it."""
    return "all" if kept.value >= 1 else format_share(int(100 * kept.value) / 100)


def _back(back: Measure | None) -> str:
    if back is None:
        return "not well again while it was watched"
    return "well again at once" if back.value == 0 else f"well again {back.value:g} s after its end"


def _terms(call: Call) -> str:
    """What the guard goes by, in a line."""
    told = [f"attempts {call.attempts or 1}"]
    if call.timeout is not None:
        told.append(f"timeout {format_duration(call.timeout)}")
    if call.budget is not None:
        told.append(f"retry budget {format_share(call.budget.ratio)}")
    if call.backoff is not None:
        told.append(f"backoff from {format_duration(call.backoff.base)}")
    if call.breaker is not None:
        told.append(f"circuit breaker at {format_share(call.breaker.failures)}")
    if call.limit is not None:
        limit = call.limit
        told.append("a limit that finds itself" if limit.max is None else f"limit {limit.max}")
    return ", ".join(told)
