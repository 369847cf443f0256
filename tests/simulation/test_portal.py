"""The portal of three days in May: calls refused at once heal, slow ones are repeated and stick.

On 18 May queries became costlier, on 19 May a small database refused what it could not take, on 20
May a larger one took everything. The midday of each day is the same.
"""

from functools import cache
from pathlib import Path

import msgspec
import pytest

from tidegate.analysis.cures import with_call
from tidegate.analysis.results import goodput
from tidegate.analysis.runs import Run, Spec, execute, execute_choices
from tidegate.settings.load import load
from tidegate.settings.policies import Queue
from tidegate.settings.system import Service, System, Time
from tidegate.units import MILLISECOND

pytestmark = pytest.mark.slow  # six minutes of a day each: half a second

EXAMPLES = Path(__file__).parents[2] / "examples"
RESET, FLUSH = "reset the tables", "empty the queue"


@cache
def day(file: str) -> System:
    return load(EXAMPLES / f"{file}.yaml").system()


def with_database(system: System, **changes: object) -> System:
    database: Service = msgspec.structs.replace(system.services["database"], **changes)
    return msgspec.structs.replace(system, services={**system.services, "database": database})


def midday(system: System) -> Run:
    return execute(Spec(system=system, trigger="midday", seed=1))


@cache
def on_20_may() -> Run:
    return midday(day("portal"))


@cache
def ways_out() -> dict[tuple[str, ...], Run]:
    choices = ((RESET,), (FLUSH,), (RESET, FLUSH))
    spec = Spec(system=day("portal"), trigger="midday", seed=1, choices=choices)
    return dict(zip(choices, execute_choices(spec), strict=True))


def test_the_two_days_differ_in_the_servers_and_the_queue_alone() -> None:
    larger = with_database(day("portal-19-may"), workers=40, queue=Queue())
    assert msgspec.structs.replace(larger, actions=day("portal").actions) == day("portal")


def test_before_the_release_nobody_notices_the_midday() -> None:
    cheaper = with_database(day("portal-19-may"), time=Time(mean=125 * MILLISECOND))
    assert midday(cheaper).outcome == "unharmed"


def test_on_19_may_some_calls_fail_at_once_and_nothing_lasts() -> None:
    run = midday(day("portal-19-may"))
    assert goodput(run.clients["portal"], run.start + 60, run.end) == pytest.approx(
        150 / 210, abs=0.03
    )
    assert run.outcome == "recovers"
    assert run.recovered_after["portal"] == pytest.approx(0, abs=5)
    # No call was slow enough for the apps to repeat it.
    assert sum(run.attempts["open portal"]) == sum(run.calls["open portal"])
    assert sum(run.services["database"].late) == 0


def test_on_20_may_larger_servers_stay_down() -> None:
    run = on_20_may()
    assert run.outcome == "sticks"
    assert run.by_client == {"portal": "sticks", "feeds": "unharmed"}
    assert sum(run.attempts["open portal"]) > 1.3 * sum(run.calls["open portal"])
    assert goodput(run.clients["portal"], run.end, run.known) == 0


def test_the_brake_of_the_day_before_would_have_saved_it() -> None:
    run = midday(with_database(day("portal"), queue=Queue(limit=30)))
    assert run.outcome == "recovers"
    assert goodput(run.clients["portal"], run.start, run.end) > 0.93


def test_without_a_second_attempt_it_comes_back_by_itself() -> None:
    assert midday(with_call(day("portal"), "open portal", attempts=1)).outcome == "recovers"


def test_it_is_idle_while_requests_wait() -> None:
    database = on_20_may().services["database"]
    # Healthy it serves 120 a second. After its restart it does nothing, and looks at rest to
    # whoever watches the processor alone.
    assert sum(database.served[10:30]) / 20 == pytest.approx(120, abs=10)
    assert sum(database.served[-60:]) == 0
    assert min(database.backlog[-30:]) > 1000


@pytest.mark.parametrize("alone", [RESET, FLUSH])
def test_neither_the_reset_nor_the_restart_alone_brings_it_back(alone: str) -> None:
    assert ways_out()[(alone,)].outcome == "sticks"


def test_both_together_do_at_once() -> None:
    run = ways_out()[(RESET, FLUSH)]
    assert run.outcome == "recovers"
    assert run.recovered_after["portal"] == pytest.approx(0, abs=5)


def test_leads_come_in_all_the_time() -> None:
    runs = [on_20_may(), midday(day("portal-19-may")), *ways_out().values()]
    assert min(goodput(run.clients["feeds"], 0, run.known) for run in runs) > 0.99
