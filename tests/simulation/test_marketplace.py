"""The marketplace of January 2024: what falls with it, what need not, and what brings it back.

Simulated at a fifth of its size with a migration of five minutes instead of ten: the state within
it is reached after one, and nothing here depends on how long it lasts.
"""

from functools import cache
from pathlib import Path

import msgspec
import pytest

from tidegate.analysis.cures import with_call
from tidegate.analysis.results import goodput
from tidegate.analysis.runs import Run, Spec, execute, execute_choices
from tidegate.settings.load import load
from tidegate.settings.policies import Breaker
from tidegate.settings.system import Action, System, Trigger
from tidegate.units import MINUTE, SECOND

pytestmark = pytest.mark.slow  # half a minute of simulated storm each: one to two seconds

FIFTH = 5
EXAMPLE = Path(__file__).parents[2] / "examples" / "marketplace.yaml"


@cache
def marketplace() -> System:
    system = load(EXAMPLE).system()
    migration = msgspec.structs.replace(system.triggers["migration"], for_=5 * MINUTE)
    return msgspec.structs.replace(system, triggers={"migration": migration})


def suffer(system: System) -> Run:
    return execute(Spec(system=system, trigger="migration", seed=1, divisor=FIFTH))


@cache
def as_it_was() -> Run:
    return suffer(marketplace())


def during(run: Run, client: str) -> float:
    """Goodput within the migration, from when the calls of before it have timed out."""
    return goodput(run.clients[client], run.start + 60, run.end)


def test_two_pages_in_ten_open_though_seven_in_ten_need_no_licence() -> None:
    run = as_it_was()
    # 3,100 workers wanted of 1,000: 32 % of the pages get one, and 70 % of those check no licence.
    assert during(run, "readers") == pytest.approx(0.70 * 1000 / 3100, abs=0.05)
    assert during(run, "shoppers") < 0.01


def test_it_stays_down_after_the_migration_is_over() -> None:
    run = as_it_was()
    assert run.outcome == "sticks"
    assert run.by_client == {"readers": "sticks", "shoppers": "sticks"}


def test_a_second_and_no_retry_opens_every_page_that_needs_no_licence() -> None:
    run = suffer(with_call(marketplace(), "licences", timeout=SECOND, attempts=1))
    assert during(run, "readers") == pytest.approx(0.70, abs=0.02)


def test_a_second_and_optional_opens_every_page() -> None:
    system = with_call(marketplace(), "licences", timeout=SECOND, attempts=1, optional=True)
    assert during(suffer(system), "readers") > 0.995


def test_behind_a_breaker_and_optional_every_page_opens() -> None:
    system = with_call(
        marketplace(), "licences", optional=True, timeout=SECOND, attempts=1, breaker=Breaker()
    )
    assert during(suffer(system), "readers") > 0.995


def test_without_the_call_every_page_opens() -> None:
    system = with_call(marketplace(), "licences", per_request=0.0)
    assert during(suffer(system), "readers") > 0.995


def test_the_tracker_is_back_while_the_marketplace_is_still_down() -> None:
    actions = {"drop the licence check": Action(call="licences", remove=True)}
    system = msgspec.structs.replace(marketplace(), actions=actions)
    spec = Spec(
        system=system, trigger="migration", seed=1, divisor=FIFTH, choices=(tuple(actions),)
    )
    (run,) = execute_choices(spec)
    assert run.recovered_after["readers"] is not None
    assert run.recovered_after["readers"] < 60
    # What is left of the load, 1,800 attempts a second, is less than the 2,000 that it serves: the
    # backlog of the storm falls, for as long as it takes.
    assert run.recovered_after["shoppers"] is None
    assert run.by_client["shoppers"] == "slow to drain"


def test_purchases_that_the_edge_repeats_are_counted() -> None:
    # The edge does not know that a purchase must not be done twice, and repeats it on a timeout.
    purchases = with_call(marketplace(), "shop", idempotent=False)
    calm = Spec(system=purchases, trigger=None, seed=1, divisor=FIFTH, hold=MINUTE)
    assert sum(execute(calm).repeated.values()) == 0
    assert sum(as_it_was().repeated.values()) == 0  # looking is no purchase
    repeated = suffer(purchases).repeated
    assert repeated["shop"] == 0  # the shoppers themselves do not
    shoppers = sum(as_it_was().clients["shoppers"].offered[30:])
    assert repeated["market"] == pytest.approx(2 * shoppers, rel=0.05)  # two of three attempts


def test_staging_with_a_third_of_the_load_shows_nothing() -> None:
    quiet = {
        name: msgspec.structs.replace(client, rate=client.rate / 3)
        for name, client in marketplace().clients.items()
        if client.rate is not None
    }
    run = suffer(msgspec.structs.replace(marketplace(), clients=quiet))
    assert run.outcome == "unharmed"


def test_a_migration_without_retries_heals_by_itself() -> None:
    system = with_call(with_call(marketplace(), "market", attempts=1), "licences", attempts=1)
    run = suffer(
        msgspec.structs.replace(
            system,
            triggers={"migration": Trigger(service="marketplace", slowdown=4.0, for_=MINUTE)},
        )
    )
    assert run.outcome == "recovers"
