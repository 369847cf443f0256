"""What retries save in health: shares of independent failures, by hand."""

from typing import Any

import pytest
from systems import store

from tidegate.analysis.mended import mended, successes
from tidegate.analysis.results import goodput
from tidegate.analysis.runs import Spec, execute
from tidegate.settings.policies import Budget
from tidegate.settings.system import Call, Client, Service, System, Time
from tidegate.units import MILLISECOND, SECOND

MS = MILLISECOND


def flaky(errors: float = 0.1, time: Time | None = None, **call: Any) -> System:
    settings = {"to": "store", "timeout": SECOND, "attempts": 3} | call
    work = time or Time(constant=40 * MS)
    return System(
        clients={"shoppers": Client(rate=50.0, calls={"buy": Call(**settings)})},
        services={"store": Service(workers=20, time=work, errors=errors)},
    )


def test_three_tries_of_nine_in_ten_fail_once_in_a_thousand() -> None:
    assert successes(flaky()) == {"shoppers": pytest.approx(0.999)}
    assert successes(flaky(), retries=False) == {"shoppers": pytest.approx(0.9)}
    assert mended(flaky()) == {"shoppers": pytest.approx(0.099)}


def test_nothing_is_mended_where_nothing_fails_or_nothing_is_repeated() -> None:
    assert mended(flaky(errors=0.0)) == {"shoppers": 0.0}
    assert mended(flaky(attempts=1)) == {"shoppers": 0.0}
    assert mended(flaky(retry_on=("timeout",))) == {"shoppers": 0.0}


def test_a_budget_mends_as_much_as_it_grants() -> None:
    # 0.11 retries a request are wanted, 0.05 granted; nine in ten of them succeed.
    assert mended(flaky(budget=Budget(ratio=0.05))) == {"shoppers": pytest.approx(0.9 * 0.05)}


def test_work_that_outlasts_its_timeout_is_mended_too() -> None:
    slow = flaky(errors=0.0, time=Time(mean=100 * MS), timeout=100 * MS, attempts=2)
    late = 0.36787944  # exp(-1)
    assert successes(slow)["shoppers"] == pytest.approx(1 - late**2)
    assert mended(flaky(errors=0.0, time=Time(constant=2 * SECOND))) == {"shoppers": 0.0}


def test_a_request_of_two_and_a_half_calls_needs_them_all() -> None:
    share = successes(flaky(attempts=1, per_request=2.5))["shoppers"]
    assert share == pytest.approx(0.9**2 * (0.5 + 0.5 * 0.9))


def test_a_call_that_may_fail_costs_nothing() -> None:
    assert successes(flaky(attempts=1, optional=True)) == {"shoppers": 1.0}


def test_failures_come_up_through_the_callers() -> None:
    system = System(
        clients={"shoppers": Client(rate=1.0, calls={"web": Call(attempts=2)})},
        services={
            "web": Service(time=Time(mean=MS), calls={"db": Call(attempts=1)}),
            "db": Service(time=Time(mean=MS), errors=0.2),
        },
    )
    assert successes(system)["shoppers"] == pytest.approx(1 - 0.2**2)


@pytest.mark.slow  # four minutes at fifty a second: a third of a second
def test_the_simulation_agrees() -> None:
    for system in (flaky(), flaky(attempts=1)):
        run = execute(Spec(system=system, trigger=None, seed=1, hold=240 * SECOND))
        seen = goodput(run.clients["shoppers"], 0, run.known)
        assert seen == pytest.approx(successes(system)["shoppers"], abs=0.01)


def test_a_store_that_never_fails_needs_no_retry() -> None:
    assert mended(store()) == {"shoppers": pytest.approx(0.0, abs=1e-4)}
