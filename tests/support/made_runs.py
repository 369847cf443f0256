"""Runs written by hand, to test what is concluded from them: so many a second, so many good."""

from collections.abc import Sequence
from typing import Any

from tidegate.analysis.runs import ClientRun, Run, ServiceRun

START, END, SECONDS = 30, 40, 100  # a trigger of ten seconds, and a minute to watch


def client(before: int, during: int, after: int, *, offered: int = 100, late: int = 0) -> ClientRun:
    """Good requests a second in the three phases; `late` more succeed in the end."""
    good = [before] * START + [during] * (END - START) + [after] * (SECONDS - END)
    return ClientRun([offered] * SECONDS, good, [min(offered, g + late) for g in good])


def service(before: int, during: int, after: int, *, late: int = 0) -> ServiceRun:
    """Attempts a second in the three phases, all served, `late` of each second for nobody."""
    arrived = [before] * START + [during] * (END - START) + [after] * (SECONDS - END)
    none = [0] * SECONDS
    return ServiceRun(arrived, arrived, [late] * SECONDS, none, none)


def made_run(**changes: Any) -> Run:
    """Shoppers who fail for ten seconds, and are well again five seconds later."""
    settings: dict[str, Any] = {
        "spec_seed": 1,
        "start": START,
        "end": END,
        "stopped": SECONDS,
        "known": SECONDS,
        "clients": {"shoppers": client(100, 0, 100)},
        "services": {"store": service(100, 400, 100)},
        "attempts": {},
        "calls": {},
        "repeated": {"buy": 0},
        "outcome": "recovers",
        "by_client": {"shoppers": "recovers"},
        "recovered_after": {"shoppers": 5.0},
        "finishes_after": 5.0,
    }
    return Run(**(settings | changes))


def stuck(**changes: Any) -> Run:
    """Shoppers who fail for ten seconds, and ever after."""
    return made_run(
        clients={"shoppers": client(100, 0, 0)},
        outcome="sticks",
        by_client={"shoppers": "sticks"},
        recovered_after={"shoppers": None},
        finishes_after=None,
        **changes,
    )


def of(phases: Sequence[int], **more: Any) -> Run:
    """A run whose shoppers are served so well before, during and after."""
    before, during, after = phases
    return made_run(clients={"shoppers": client(before, during, after)}, **more)
