"""The sign-in of September 2023: three calls that must all pass a limit, and what undoes that.

Calls that succeed in 46 of 100 cases leave a sign-in that needs three of them 10 of 100. It holds
while refusing is cheap; where refusals cost more than 23 % of a served call, nobody gets through.
"""

from functools import cache
from pathlib import Path

import msgspec
import pytest

from tidegate.analysis.results import goodput
from tidegate.analysis.runs import Run, Spec, execute, execute_choices
from tidegate.analysis.theory import refusal_cliff, refusals
from tidegate.settings.load import load
from tidegate.settings.system import System
from tidegate.units import MINUTE

pytestmark = pytest.mark.slow  # three minutes each at a tenth of the size: one or two seconds

EXAMPLE = Path(__file__).parents[2] / "examples" / "sign-in.yaml"
SIGN_INS, CALLS, LIMIT, CAPACITY, ATTEMPTS = 720.0, 3, 1000.0, 2000.0, 3
CHEAP, DEAR = 0.10, 0.40  # the ends of the open range
BACK, RAISE, SCALE = "roll back", "raise the limit", "scale out"
CHOICES = ((BACK,), (RAISE,), (SCALE,), (BACK, RAISE), (BACK, SCALE), (RAISE, SCALE))


def sign_in(refusal_cost: float) -> System:
    system = load(EXAMPLE).system()
    core = msgspec.structs.replace(system.services["core"], refusal_cost=refusal_cost)
    return msgspec.structs.replace(system, services={**system.services, "core": core})


def spec(refusal_cost: float, choices: tuple[tuple[str, ...], ...] = ()) -> Spec:
    return Spec(
        system=sign_in(refusal_cost),
        trigger="new feature",
        seed=1,
        divisor=10,
        hold=MINUTE,
        choices=choices,
    )


@cache
def ways_out(refusal_cost: float) -> dict[tuple[str, ...], Run]:
    return dict(zip(CHOICES, execute_choices(spec(refusal_cost, CHOICES)), strict=True))


def at_the_end(run: Run) -> float:
    return goodput(run.clients["people"], run.known - 30, run.known)


def test_the_cliff_lies_within_the_range_that_the_file_leaves_open() -> None:
    """Calls alike, each passes with 0.46 and three together with 0.10, in three attempts each."""
    met = refusals(SIGN_INS * CALLS, LIMIT, ATTEMPTS)
    assert (1 - met.failing) ** CALLS == pytest.approx(0.10, abs=0.005)
    cliff = refusal_cliff(SIGN_INS * CALLS, LIMIT, ATTEMPTS, CAPACITY)
    assert CHEAP < cliff < DEAR
    assert cliff == pytest.approx(0.23, abs=0.005)


@pytest.mark.parametrize("cost", [0.0, CHEAP, 0.20])
def test_nine_sign_ins_in_ten_fail_while_refusing_is_cheap(cost: float) -> None:
    run = execute(spec(cost))
    assert run.outcome == "sticks"
    assert 1 - at_the_end(run) == pytest.approx(0.90, abs=0.03)


@pytest.mark.parametrize("cost", [0.26, DEAR])
def test_beyond_the_cliff_all_do(cost: float) -> None:
    assert at_the_end(execute(spec(cost))) < 0.01


def test_without_the_feature_the_limit_harms_nobody() -> None:
    run = execute(msgspec.structs.replace(spec(DEAR), trigger=None))
    assert at_the_end(run) > 0.99


@pytest.mark.parametrize("cost", [CHEAP, DEAR])
@pytest.mark.parametrize("choice", [(BACK,), (BACK, SCALE), (RAISE, SCALE)])
def test_what_brings_everybody_back(choice: tuple[str, ...], cost: float) -> None:
    run = ways_out(cost)[choice]
    assert run.outcome == "recovers"
    assert at_the_end(run) > 0.99


@pytest.mark.parametrize("cost", [CHEAP, DEAR])
def test_a_higher_limit_alone_turns_nine_in_ten_into_all(cost: float) -> None:
    """More is let in than can be worked off: the limit was what kept the queue short."""
    assert at_the_end(ways_out(cost)[(RAISE,)]) < 0.01


@pytest.mark.parametrize("cost", [CHEAP, DEAR])
def test_twice_the_capacity_alone_leaves_nine_in_ten_failing(cost: float) -> None:
    assert 1 - at_the_end(ways_out(cost)[(SCALE,)]) == pytest.approx(0.90, abs=0.03)


def test_a_higher_limit_keeps_a_rollback_from_helping_where_refusing_is_dear() -> None:
    assert ways_out(CHEAP)[(BACK, RAISE)].outcome == "recovers"
    assert ways_out(DEAR)[(BACK, RAISE)].outcome == "sticks"
