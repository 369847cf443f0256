"""One call of one caller, told in instants: sent, timed out, tried again, given up."""

import pytest
from stories import MS, Story, ms

from tidegate.settings.policies import Backoff, Breaker, Budget, Limit, Queue, RateLimit
from tidegate.settings.system import Action, Call, Service
from tidegate.sim.log import EventLog


def story(service: Service | None = None, **call: object) -> Story:
    """A shop of one worker and 100 ms, asked with a timeout of a second, unless told otherwise."""
    settings = {"to": "shop", "timeout": 1000 * MS} | call
    return Story({"shop": service or Service(workers=1, time=ms(100))}, {"ask": Call(**settings)})


def lines(log: EventLog) -> list[str]:
    """What the log has of a call: the instant in milliseconds, and what happened."""
    parts = [line.split("\t") for line in log.tail]
    return [f"{int(at) // MS} {what}" for at, part, what, _ in parts if part == "ask"]


def test_a_timeout_brings_the_next_attempt_at_once_until_all_are_used() -> None:
    log = EventLog()
    told = Story(
        {"shop": Service(workers=1, time=ms(500))},
        {"ask": Call(to="shop", timeout=50 * MS, attempts=3)},
        log=log,
    )
    told.ask(0)
    assert told.until(150).failed == 1
    assert lines(log) == [
        "0 sent", "50 timeout", "50 sent", "100 timeout", "100 sent", "150 timeout",
    ]  # fmt: skip


def test_a_late_answer_ends_nothing_and_a_good_one_everything() -> None:
    """One is answered at 100. The other, begun then, is given up at 130, done at 200 and wasted."""
    told = story(timeout=130 * MS, attempts=2)
    told.ask(0, 0)
    assert told.until(100).call() == (2, 1, 0, 0, 0)
    assert told.until(130).call() == (3, 1, 0, 1, 0)
    assert told.until(200).service("shop")["late"] == 1
    assert told.until(260).call() == (3, 1, 0, 2, 0)
    assert told.failed == 1


def test_a_refusal_is_tried_again_after_its_wait() -> None:
    backoff = Backoff(base=30 * MS, jitter="none")
    told = story(
        Service(workers=1, time=ms(100), queue=Queue(limit=0)), attempts=3, backoff=backoff
    )
    told.ask(0, 1)
    assert told.until(30).call() == (2, 0, 0, 0, 1)
    assert told.until(31).call() == (3, 0, 0, 0, 2)
    assert told.until(91).call() == (4, 0, 0, 0, 3)
    assert (told.served, told.failed) == (0, 1)


@pytest.mark.parametrize(("retry_on", "sent"), [(("overloaded",), 1), (("failure",), 3)])
def test_only_what_is_named_is_tried_again(retry_on: tuple[str, ...], sent: int) -> None:
    told = story(Service(errors=1.0), attempts=3, retry_on=retry_on)
    told.ask(0)
    assert told.until(1).call()[0] == sent
    assert told.failed == 1


def test_the_network_takes_its_time_there_and_back() -> None:
    told = story(network=ms(10))
    told.ask(0)
    assert told.until(9).service("shop") == {}
    assert told.until(10).service("shop") == {"inside": 1}
    assert told.until(119).served == 0
    assert told.until(120).served == 1


def test_latency_on_the_wire_is_on_the_way_there() -> None:
    told = story()
    slow = told.begin(call="ask", latency=40 * MS)
    told.ask(0, 200)
    assert told.until(39).service("shop") == {}
    assert told.until(140).served == 1
    told.end(slow)
    assert told.until(300).served == 2


def test_a_queue_counts_its_wait_from_the_arrival_not_from_the_sending() -> None:
    """Of a second's patience 120 ms went on the way; at most half of what is left is margin."""
    told = story(
        Service(workers=1, time=ms(100), queue=Queue(late=True)),
        propagate=True,
        network=ms(120),
    )
    told.ask(*[0] * 9)
    told.until(2000)  # taken at 120, 220, ... and at 120 + 880 / 2 = 560 at the latest
    assert told.service("shop") == {"served": 5, "dropped": 4}


# Deadlines.


def test_the_deadline_cuts_the_last_timeout_and_lets_nothing_start() -> None:
    log = EventLog()
    told = Story(
        {"shop": Service(workers=1, time=ms(500))},
        {"ask": Call(to="shop", timeout=50 * MS, attempts=9, deadline=120 * MS)},
        log=log,
    )
    told.ask(0)
    assert told.until(120).failed == 1
    assert lines(log) == [
        "0 sent", "50 timeout", "50 sent", "100 timeout", "100 sent", "120 timeout",
    ]  # fmt: skip


@pytest.mark.parametrize(("propagate", "sent"), [(False, 4), (True, 2)])
def test_who_is_told_what_time_is_left_starts_nothing_after_it(propagate: bool, sent: int) -> None:
    """The people give up at 100. The hub tries at 0, 60, 120, 180; if it knows, at 0 and 60."""
    services = {
        "hub": Service(calls={"leaf": Call(timeout=60 * MS, attempts=4)}),
        "leaf": Service(time=ms(500)),
    }
    calls = {"ask": Call(to="hub", timeout=100 * MS, propagate=propagate)}
    told = Story(services, calls)
    told.ask(0)
    assert told.until(1000).call("leaf")[0] == sent
    assert told.service("hub") == {"served": 1, "late": 1}


def test_who_is_not_told_does_not_know_even_where_others_are() -> None:
    services = {
        "hub": Service(calls={"leaf": Call(timeout=60 * MS, attempts=4)}),
        "leaf": Service(time=ms(500)),
    }
    calls = {
        "ask": Call(to="hub", timeout=100 * MS, optional=True),
        "tell": Call(to="hub", timeout=100 * MS, propagate=True),
    }
    told = Story(services, calls)
    told.ask(0)
    assert told.until(1000).call("leaf")[0] == 4 + 2


def test_a_call_that_comes_too_late_is_never_sent() -> None:
    """The hub works until 100, and what it was told was 80."""
    services = {"hub": Service(time=ms(100), calls={"leaf": Call()}), "leaf": Service()}
    told = Story(services, {"ask": Call(to="hub", timeout=80 * MS, propagate=True)})
    told.ask(0)
    told.until(200)
    assert told.call("leaf")[0] == 0
    assert told.world.calls["leaf"].rejected == 1


def test_who_may_wait_for_ever_leaves_no_timer_behind() -> None:
    """Told that there is no deadline, the hub's calls have none either."""
    services = {"hub": Service(calls={"leaf": Call()}), "leaf": Service(time=ms(1))}
    told = Story(services, {"ask": Call(to="hub", propagate=True)})
    pending = len(told.world.loop.heap)
    told.ask(*range(100))
    told.until(500)
    assert (told.served, len(told.world.loop.heap)) == (100, pending)


# Policies.


def test_a_rejected_call_is_never_sent_and_fails_at_once() -> None:
    log = EventLog()
    call = Call(to="shop", timeout=1000 * MS, limit=Limit(max=1), attempts=3)
    told = Story({"shop": Service(workers=1, time=ms(100))}, {"ask": call}, log=log)
    told.ask(0, 10)
    assert told.until(10).failed == 1
    assert lines(log) == ["0 sent", "10 rejected"]
    assert told.call()[0] == 1
    assert told.world.calls["ask"].rejected == 1


def test_only_requests_that_are_nobodys_retry_deposit_further_down() -> None:
    """The hub's budget has one token to begin with, and half of one from the first attempt."""
    calls = {"leaf": Call(timeout=20 * MS, attempts=2, budget=Budget(ratio=0.5))}
    services = {"hub": Service(calls=calls), "leaf": Service(time=ms(500))}
    told = Story(services, {"ask": Call(to="hub", timeout=100 * MS, attempts=3)})
    told.ask(0)
    told.until(1000)
    budget = told.world.sites["leaf"][0].pipeline.budget
    assert budget is not None
    assert budget.snapshot(0).requests == 1
    assert told.call("leaf")[0] == 4  # one for each of the hub's three, and one retry


def test_a_breaker_that_opens_refuses_the_retry() -> None:
    told = story(timeout=20 * MS, attempts=3, breaker=Breaker(volume=1))
    told.ask(0, 30)
    assert told.until(40).call()[0] == 1
    assert (told.failed, told.world.calls["ask"].rejected) == (2, 2)


def test_what_was_cancelled_says_nothing_about_the_far_side() -> None:
    """The hub's call is called back at 50: no failure for its breaker, and its place is free."""
    calls = {"leaf": Call(timeout=1000 * MS, breaker=Breaker(volume=1), limit=Limit(max=1))}
    services = {"hub": Service(abandoned="cancel", calls=calls), "leaf": Service(time=ms(500))}
    told = Story(services, {"ask": Call(to="hub", timeout=50 * MS)})
    told.ask(0, 100)
    told.until(120)
    pipeline = told.world.sites["leaf"][0].pipeline
    assert pipeline.breaker is not None
    assert pipeline.limiter is not None
    assert pipeline.breaker.snapshot(told.world.now).calls == 0
    assert pipeline.limiter.inflight == 1  # the second's


# What actions and triggers do.


def test_more_and_fewer_attempts_from_the_next_decision_on() -> None:
    told = story(Service(time=ms(500)), timeout=50 * MS)
    told.world.act("more", Action(call="ask", attempts=2))
    told.ask(0)
    assert told.until(60).call()[0] == 2
    told.world.act("fewer", Action(call="ask", attempts=1))
    told.ask(200)
    assert told.until(500).call()[0] == 3


def test_a_circuit_held_open_by_hand_lets_nothing_out() -> None:
    told = story(attempts=3)
    told.ask(0, 100)
    told.until(50)
    told.world.act("hold", Action(call="ask", open=True))
    assert told.until(200).call()[0] == 1
    assert (told.served, told.failed) == (1, 1)


def test_a_rate_limit_at_the_caller_comes_and_goes() -> None:
    told = story(Service())
    tight = told.begin(call="ask", rate_limit=RateLimit(rate=1, burst=1))
    told.ask(0, 1, 3)
    assert told.until(1).failed == 1
    told.end(tight)
    assert told.until(3).served == 2
    told.world.act("limit", Action(call="ask", rate_limit=RateLimit(rate=1, burst=1)))
    told.ask(4, 5)
    assert told.until(5).failed == 2
