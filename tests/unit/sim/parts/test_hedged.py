"""A call that is asked again while its answer is awaited, told in instants."""

import pytest
from stories import MS, Story, ms

from tidegate.settings.policies import Backoff, Budget, Hedge, Limit
from tidegate.settings.system import Action, Call, Service
from tidegate.sim.log import EventLog
from tidegate.sim.parts.caller import CallSite
from tidegate.sim.parts.hedged import HedgedSite
from tidegate.sim.spans import SpanRecorder


def story(service: Service | None = None, log: EventLog | None = None, **call: object) -> Story:
    """Two workers of 100 ms, and another attempt after 50 ms, unless told otherwise."""
    settings = {
        "to": "shop",
        "timeout": 1000 * MS,
        "hedge": Hedge(after=50 * MS),
        "budget": Budget(ratio=1.0),
    } | call
    shop = service or Service(workers=2, time=ms(100))
    return Story({"shop": shop}, {"ask": Call(**settings)}, log=log)


def cancelled(told: Story) -> int:
    return told.world.calls["ask"].cancelled


def test_the_first_answer_wins_and_the_other_attempt_is_called_off() -> None:
    log = EventLog()
    told = story(log=log)
    told.ask(0)
    assert told.until(49).call() == (1, 0, 0, 0, 0)
    assert told.until(50).call() == (2, 0, 0, 0, 0)
    assert told.until(100).call() == (2, 1, 0, 0, 0)
    assert (told.served, cancelled(told)) == (1, 1)
    assert told.until(150).service("shop") == {"served": 2, "late": 1}
    happened = [line.split("\t")[2] for line in log.tail if "\task\t" in line]
    assert happened == ["sent", "sent", "success", "cancelled"]


def test_a_callee_that_stops_what_is_abandoned_hears_of_it() -> None:
    told = story(Service(workers=2, time=ms(100), abandoned="cancel"))
    told.ask(0)
    assert told.until(100).service("shop") == {"served": 1, "cancelled": 1}


def test_an_answer_in_time_sends_no_other() -> None:
    told = story(Service(workers=2, time=ms(40)))
    told.ask(0, 100)
    assert told.until(300).call() == (2, 2, 0, 0, 0)


def test_the_second_may_be_the_faster_one() -> None:
    """The first waits behind another request; the second goes to the other replica."""
    told = story(Service(workers=1, replicas=2, time=ms(200)), hedge=Hedge(after=20 * MS))
    told.ask(0)  # to the second replica at 0, to the first at 20
    told.ask(1)  # to the second again at 1, behind it; to the first at 21
    assert told.until(200).served == 1
    assert told.until(400).served == 2


def test_when_one_fails_the_other_goes_on_and_when_all_have_it_is_tried_again() -> None:
    told = story(Service(workers=2, time=ms(1000)), timeout=80 * MS, attempts=2)
    told.ask(0)
    assert told.until(80).call() == (2, 0, 0, 1, 0)  # sent at 0 and 50
    assert told.until(130).call() == (2, 0, 0, 2, 0), "the retry finds no token"
    assert told.failed == 1
    rich = story(
        Service(workers=9, time=ms(1000)), timeout=80 * MS, attempts=2, budget=Budget(ratio=9.0)
    )
    rich.ask(0)
    assert rich.until(130).call() == (3, 0, 0, 2, 0)
    assert rich.until(300).call() == (4, 0, 0, 4, 0)
    assert rich.failed == 1


def test_a_deadline_cuts_the_second_and_ends_both() -> None:
    told = story(Service(workers=9, time=ms(1000)), deadline=120 * MS, timeout=None)
    told.ask(0)
    assert told.until(120).call() == (2, 0, 0, 2, 0)
    assert told.failed == 1


def test_without_a_timeout_it_waits_for_whichever_comes() -> None:
    told = story(timeout=None)
    told.ask(0)
    assert told.until(100).served == 1


def test_the_limit_may_refuse_the_first_and_the_second() -> None:
    told = story(limit=Limit(max=1))
    told.ask(0, 10)
    assert told.until(100).call() == (1, 1, 0, 0, 0)
    assert (told.served, told.failed) == (1, 1)


def test_a_caller_that_is_called_off_calls_off_all_its_attempts() -> None:
    told = Story(
        {
            "shop": Service(
                workers=1,
                time=ms(10),
                abandoned="cancel",
                calls={"stock": Call(timeout=500 * MS, hedge=Hedge(after=20 * MS), attempts=2)},
            ),
            "stock": Service(workers=9, time=ms(300), abandoned="cancel"),
        },
        {"ask": Call(to="shop", timeout=100 * MS)},
    )
    told.ask(0)
    assert told.until(99).call("stock") == (2, 0, 0, 0, 0)
    told.until(100)
    assert told.world.calls["stock"].cancelled == 2
    assert told.service("stock") == {"cancelled": 2}


def test_a_frozen_caller_sends_its_hedge_when_it_thaws() -> None:
    told = Story(
        {
            "shop": Service(
                workers=1,
                time=ms(10),
                calls={"stock": Call(timeout=500 * MS, hedge=Hedge(after=20 * MS))},
            ),
            "stock": Service(workers=9, time=ms(300)),
        },
    )
    told.ask(0)
    told.until(20)
    freeze = told.begin(service="shop", freeze=True)
    assert told.until(60).call("stock") == (1, 0, 0, 0, 0)
    told.end(freeze)
    assert told.until(61).call("stock") == (2, 0, 0, 0, 0)
    assert told.until(400).served == 1


def test_a_frozen_caller_hears_of_its_failures_when_it_thaws() -> None:
    stock = Call(timeout=50 * MS, hedge=Hedge(after=20 * MS), attempts=2, budget=Budget(ratio=9.0))
    told = Story(
        {
            "shop": Service(workers=1, time=ms(10), calls={"stock": stock}),
            "stock": Service(workers=9, time=ms(300)),
        },
    )
    told.ask(0)
    assert told.until(31).call("stock") == (2, 0, 0, 0, 0)
    freeze = told.begin(service="shop", freeze=True)
    assert told.until(100).call("stock") == (2, 0, 0, 2, 0)
    told.end(freeze)
    told.until(101)
    assert told.call("stock")[0] == 3


def waiting(*, abandoned: str = "finish", timeout: int = 1000) -> Story:
    """The shop asks the stock, which refuses, and waits 50 ms before it asks again."""
    stock = Call(
        timeout=500 * MS,
        hedge=Hedge(after=20 * MS),
        attempts=2,
        backoff=Backoff(base=50 * MS, jitter="none"),
    )
    return Story(
        {
            "shop": Service(workers=1, time=ms(10), abandoned=abandoned, calls={"stock": stock}),
            "stock": Service(workers=1, time=ms(10), errors=1.0),
        },
        {"ask": Call(to="shop", timeout=timeout * MS)},
    )


def test_it_waits_before_it_is_tried_again() -> None:
    told = waiting()
    told.ask(0)
    assert told.until(69).call("stock") == (1, 0, 1, 0, 0)
    assert told.until(70).call("stock") == (2, 0, 1, 0, 0)
    assert told.until(80).call("stock") == (2, 0, 2, 0, 0)


def test_a_caller_who_is_frozen_while_it_waits_tries_again_when_it_thaws() -> None:
    told = waiting()
    told.ask(0)
    told.until(30)
    freeze = told.begin(service="shop", freeze=True)
    assert told.until(100).call("stock") == (1, 0, 1, 0, 0)
    told.end(freeze)
    assert told.until(101).call("stock") == (2, 0, 1, 0, 0)


def test_a_caller_who_is_called_off_while_it_waits_does_not_try_again() -> None:
    told = waiting(abandoned="cancel", timeout=40)
    told.ask(0)
    assert told.until(300).call("stock") == (1, 0, 1, 0, 0)


def test_fewer_attempts_keep_their_hedges() -> None:
    told = story(attempts=3)
    site = told.world.sites["ask"][0]
    assert site.attempts_most == 6
    told.world.act("calm", Action(call="ask", attempts=1))
    assert site.attempts_most == 6
    told.ask(0)
    assert told.until(100).call() == (2, 1, 0, 0, 0)


def test_an_effect_is_repeated_by_a_hedge_below_it() -> None:
    told = Story(
        {
            "shop": Service(
                workers=1,
                time=ms(10),
                calls={"stock": Call(timeout=500 * MS, hedge=Hedge(after=20 * MS))},
            ),
            "stock": Service(workers=9, time=ms(100)),
        },
        {"ask": Call(to="shop", timeout=1000 * MS, idempotent=False)},
    )
    told.ask(0)
    told.until(200)
    assert told.world.calls["stock"].repeated == 1


def test_the_trace_shows_both() -> None:
    spans = SpanRecorder()
    told = Story(
        {
            "shop": Service(
                workers=1,
                time=ms(10),
                calls={"stock": Call(timeout=500 * MS, hedge=Hedge(after=20 * MS))},
            ),
            "stock": Service(workers=9, time=ms(100)),
        },
        spans=spans,
    )
    told.ask(0)
    told.until(300)
    numbers = [span.number for span in spans.records if span.caller and span.peer == "stock"]
    assert sorted(numbers) == [1, 2]


@pytest.mark.parametrize(("idempotent", "kind"), [(True, HedgedSite), (False, CallSite)])
def test_what_must_not_be_done_twice_is_not_hedged(idempotent: bool, kind: type) -> None:
    told = story(idempotent=idempotent)
    assert type(told.world.sites["ask"][0]) is kind
