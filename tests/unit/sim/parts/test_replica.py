"""One replica, told in instants: its door, its workers, its calls, and what may happen to it."""

import pytest
from stories import MS, Story, ms

from tidegate.settings.policies import Backoff, Limit, Queue, RateLimit
from tidegate.settings.system import Action, Call, Restart, Service
from tidegate.sim.log import EventLog
from tidegate.sim.parts.work import Request


def one(**service: object) -> dict[str, Service]:
    """One worker with 100 ms of work, unless told otherwise."""
    return {"shop": Service(**({"workers": 1, "time": ms(100)} | service))}


def hub(**service: object) -> dict[str, Service]:
    """A hub of no work of its own that asks a worker with 100 ms; both with room for all."""
    calls = {"leaf": Call(timeout=1000 * MS)}
    return {
        "hub": Service(**({"workers": 1, "calls": calls} | service)),
        "leaf": Service(workers=10, time=ms(100)),
    }


# The door and the line.


def test_who_finds_a_worker_is_served_and_who_does_not_waits_his_turn() -> None:
    story = Story(one())
    story.ask(0, 1, 2)
    assert story.until(99).served == 0
    assert story.until(100).served == 1
    assert story.until(200).served == 2
    assert story.until(300).served == 3


def test_a_full_line_refuses_at_once() -> None:
    """At 0 one is in service, at 1 one waits, at 2 there is no place."""
    story = Story(one(queue=Queue(limit=1)))
    story.ask(0, 1, 2)
    assert story.until(2).call() == (3, 0, 0, 0, 1)
    assert story.until(500).service("shop") == {"served": 2, "refused": 1}


def test_a_silent_line_says_nothing_and_the_caller_waits_out_its_timeout() -> None:
    story = Story(one(queue=Queue(limit=0, full="silence")))
    story.ask(0, 1)
    assert story.until(1000).call() == (2, 1, 0, 0, 0)
    assert story.until(1001).call() == (2, 1, 0, 1, 0)
    assert story.service("shop") == {"served": 1, "dropped": 1}


def test_a_worker_is_free_before_its_answer_is_acted_on() -> None:
    """Else, with no place to wait, the second of two calls would find the first still there."""
    call = Call(to="shop", timeout=1000 * MS, per_request=2)
    story = Story(one(queue=Queue(limit=0)), {"ask": call})
    story.ask(0)
    assert story.until(200).served == 1
    assert story.service("shop") == {"served": 2}


def test_a_limit_at_the_door_counts_those_inside_and_a_rate_those_who_come() -> None:
    story = Story(one(workers=5, limit=Limit(max=2), rate_limit=RateLimit(rate=10, burst=3)))
    story.ask(0, 1, 2, 3, 150)
    assert story.until(3).call() == (4, 0, 0, 0, 2)  # at 2 two are inside, at 3 the rate is used up
    assert story.until(300).served == 3


@pytest.mark.parametrize("full", ["refuse", "silence"])
def test_a_request_that_finds_no_place_gives_the_limit_back(full: str) -> None:
    story = Story(one(queue=Queue(limit=0, full=full), limit=Limit(max=2)))
    story.ask(0, 1, 2, 150)
    assert story.until(1500).served == 2


def test_work_without_workers_or_time_takes_none() -> None:
    story = Story(one(workers=None, time=None))
    story.ask(*[5] * 50)
    assert story.until(5).served == 50


def test_workers_without_limit_all_work_at_once() -> None:
    story = Story(one(workers=None))
    story.ask(*[0] * 50)
    assert story.until(99).served == 0
    assert story.until(100).served == 50


def test_a_refusal_that_costs_work_goes_before_what_waits() -> None:
    """One works, one waits, the third is over the rate: told so at 150, half a work after 100."""
    story = Story(one(refusal_cost=0.5, rate_limit=RateLimit(rate=1, burst=2)))
    story.ask(0, 1, 2)
    assert story.until(149).call() == (3, 1, 0, 0, 0)
    assert story.until(150).call() == (3, 1, 0, 0, 1)
    assert story.until(249).served == 1
    assert story.until(250).served == 2


def test_a_refusal_finds_an_idle_worker_a_place_to_wait_or_nothing() -> None:
    service = one(refusal_cost=0.5, rate_limit=RateLimit(rate=1e-3, burst=1), queue=Queue(limit=1))
    story = Story(service, {"ask": Call(to="shop", timeout=400 * MS)})
    story.ask(
        0, 200, 201, 202
    )  # one is served; one finds the worker idle, one a place, one nothing
    assert story.until(299).call() == (4, 1, 0, 0, 1)
    assert story.until(301).call() == (4, 1, 0, 0, 2)
    assert story.until(602).call() == (4, 1, 0, 1, 2)
    assert story.service("shop") == {"served": 1, "refused": 2, "dropped": 1}


# What makes work longer, and what makes it fail.


def test_contention_adds_for_each_inside_and_thrashing_for_each_that_waits() -> None:
    """With itself: 110 ms, then 120 ms. One waiting: twice its time; none: its time."""
    story = Story(one(workers=None, contention=10 * MS))
    story.ask(0, 0)
    assert story.until(110).served == 1
    assert story.until(120).served == 2
    story = Story(one(thrash=1.0))
    story.ask(0, 0, 0)
    assert story.until(100).served == 1
    assert story.until(299).served == 1
    assert story.until(300).served == 2
    assert story.until(400).served == 3


def test_contention_counts_where_there_is_no_other_work() -> None:
    story = Story(one(workers=None, time=None, contention=10 * MS))
    story.ask(0)
    assert story.until(9).served == 0
    assert story.until(10).served == 1


def test_a_request_that_fails_by_itself_makes_no_calls() -> None:
    story = Story(hub(errors=1.0))
    story.ask(0)
    assert story.until(0).call() == (1, 0, 1, 0, 0)
    assert story.call("leaf")[0] == 0


# Calls.


@pytest.mark.parametrize(("blocking", "second"), [(True, 200), (False, 100)])
def test_a_blocking_replica_holds_its_worker_until_the_answer(blocking: bool, second: int) -> None:
    story = Story(hub(blocking=blocking))
    story.ask(0, 0)
    story.until(50)
    replica = story.world.services["hub"].replicas[0]
    assert (replica.busy, replica.calling) == ((1, 0) if blocking else (0, 2))
    assert story.service("hub") == {"inside": 2}
    assert story.until(second - 1).served < 2
    assert story.until(second).served == 2


def test_a_required_call_that_fails_fails_the_request_and_an_optional_one_degrades_it() -> None:
    for optional in (False, True):
        calls = {"leaf": Call(timeout=50 * MS, optional=optional)}
        story = Story(hub(calls=calls))
        story.ask(0)
        story.until(50)
        assert (story.served, story.failed) == (int(optional), int(not optional))
        assert story.world.services["hub"].tally.degraded == int(optional)


# Callers who have left.


def test_abandoned_work_is_finished_and_counted_as_late() -> None:
    story = Story(one(), {"ask": Call(to="shop", timeout=50 * MS)})
    story.ask(0, 1)
    assert story.until(60).call() == (2, 0, 0, 2, 0)
    assert story.service("shop") == {"inside": 2}
    assert story.until(200).service("shop") == {"served": 2, "late": 2}


def test_abandoned_work_is_skipped_at_its_turn() -> None:
    """At 50 both have left; at 100 the worker drops the second and takes the third."""
    story = Story(one(abandoned="skip"), {"ask": Call(to="shop", timeout=50 * MS)})
    story.ask(0, 1, 90)
    assert story.until(99).service("shop") == {"inside": 3}
    assert story.until(100).service("shop") == {"served": 1, "late": 1, "dropped": 1, "inside": 1}
    assert story.until(200).service("shop") == {"served": 2, "late": 2, "dropped": 1}


def test_abandoned_work_is_cancelled_at_once() -> None:
    """At 50 the first leaves and the second is begun; at 51 the second leaves."""
    story = Story(one(abandoned="cancel"), {"ask": Call(to="shop", timeout=50 * MS)})
    story.ask(0, 1, 60)
    assert story.until(50).service("shop") == {"cancelled": 1, "inside": 1}
    assert story.until(51).service("shop") == {"cancelled": 2}
    assert story.until(200).service("shop") == {"cancelled": 3}


def test_a_cancelled_place_in_the_line_is_free_at_once() -> None:
    story = Story(
        one(abandoned="cancel", queue=Queue(limit=1), time=ms(500)),
        {"ask": Call(to="shop", timeout=1000 * MS), "brief": Call(to="shop", timeout=10 * MS)},
    )
    patient, hurried = (story.world.sites[name][0] for name in ("ask", "brief"))
    for instant, site in ((0, patient), (0, hurried), (11, hurried)):
        story.world.loop.at(instant * MS, site.begin, Request(Asker(), 0))
    assert story.until(9).service("shop") == {"inside": 2}
    assert story.until(10).service("shop") == {"cancelled": 1, "inside": 1}
    assert story.until(11).service("shop") == {"cancelled": 1, "inside": 2}


class Asker:
    """Somebody who makes a single call by hand."""

    def call_done(self, now: int, frame: object, optional: bool, ok: bool) -> None:
        """It is enough that somebody hears of it."""


@pytest.mark.parametrize("abandoned", ["skip", "cancel"])
def test_abandoned_work_gives_its_place_in_the_limit_back(abandoned: str) -> None:
    story = Story(
        one(abandoned=abandoned, limit=Limit(max=2)), {"ask": Call(to="shop", timeout=50 * MS)}
    )
    story.ask(0, 1, 200)
    assert story.until(300).call() == (3, 0, 0, 3, 0)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_cancel_goes_downstream_too(blocking: bool) -> None:
    """At 50 the people leave: the hub calls its own attempt back, and the leaf is idle again."""
    services = hub(blocking=blocking, abandoned="cancel")
    services["leaf"] = Service(workers=1, time=ms(100), abandoned="cancel")
    story = Story(services, {"ask": Call(to="hub", timeout=50 * MS)})
    story.ask(0)
    story.until(50)
    assert story.service("hub") == {"cancelled": 1}
    assert story.service("leaf") == {"cancelled": 1}
    assert story.world.calls["leaf"].cancelled == 1
    assert story.world.services["leaf"].replicas[0].busy == 0


def test_a_cancelled_request_does_not_try_again() -> None:
    """Its call would come again at 60, when nobody wants it any more."""
    backoff = Backoff(base=40 * MS, jitter="none")
    calls = {"leaf": Call(timeout=20 * MS, attempts=5, backoff=backoff)}
    services = hub(abandoned="cancel", calls=calls)
    story = Story(services, {"ask": Call(to="hub", timeout=50 * MS)})
    story.ask(0)
    assert story.until(1000).call("leaf") == (1, 0, 0, 1, 0)


def test_when_one_of_several_calls_has_failed_the_others_are_called_back() -> None:
    calls = {
        "leaf": Call(timeout=1000 * MS),
        "brief": Call(to="leaf", timeout=10 * MS),
    }
    services = hub(abandoned="cancel", parallel=True, calls=calls)
    services["leaf"] = Service(workers=10, time=ms(100), abandoned="cancel")
    story = Story(services)
    story.ask(0)
    story.until(10)
    assert (story.failed, story.service("leaf")) == (1, {"cancelled": 2})


def test_who_has_left_on_the_way_is_turned_away_at_the_door() -> None:
    for abandoned, fate in (("skip", "dropped"), ("cancel", "cancelled"), ("finish", "late")):
        story = Story(
            one(abandoned=abandoned),
            {"ask": Call(to="shop", timeout=5 * MS, network=ms(10))},
        )
        story.ask(0)
        story.until(500)
        assert story.call() == (1, 0, 0, 1, 0)
        assert story.service("shop")[fate] == 1


def test_an_answer_on_its_way_back_is_not_cancelled_and_counts_as_late() -> None:
    """Done at 110, at home at 120; the caller leaves at 115."""
    story = Story(
        one(abandoned="cancel"), {"ask": Call(to="shop", timeout=115 * MS, network=ms(10))}
    )
    story.ask(0)
    assert story.until(119).service("shop") == {"served": 1}
    assert story.until(120).service("shop") == {"served": 1, "late": 1}


def test_cancelled_work_leaves_nothing_behind_in_a_line_served_newest_first() -> None:
    """A thousand give up in a line whose bottom is never reached."""
    story = Story(
        one(abandoned="cancel", queue=Queue(order="lifo")),
        {"ask": Call(to="shop", timeout=150 * MS)},
    )
    story.ask(*range(0, 10_000, 10))
    story.until(9_999)
    assert len(story.world.services["shop"].replicas[0].line.items) < 35


# Slowness, freezes and lost capacity.


def test_slowness_stretches_what_starts_in_it() -> None:
    """Begun at 0, so done at 100; begun at 100, so done at 400; begun after its end, at 500."""
    story = Story(one())
    story.ask(0, 1, 2)
    story.until(50)
    slow = story.begin(service="shop", slowdown=3.0)
    assert story.until(100).served == 1
    story.until(200)
    story.end(slow)
    assert story.until(399).served == 1
    assert story.until(400).served == 2
    assert story.until(500).served == 3


def test_a_freeze_stops_the_work_in_hand_and_what_arrives_waits() -> None:
    """Frozen from 30 to 230: the first ends 200 ms later, the second after it."""
    story = Story(one(), {"ask": Call(to="shop", timeout=9999 * MS)})
    story.ask(0, 50)
    story.until(30)
    frozen = story.begin(service="shop", freeze=True)
    story.until(230)
    story.end(frozen)
    assert story.until(299).served == 0
    assert story.until(301).served == 1
    assert story.until(401).served == 2


def test_a_freeze_holds_nothing_that_is_still_on_the_network() -> None:
    """Sent at 0, due at the door at 20. Frozen from 10 to 60: begun at 60, at home at 180."""
    story = Story(one(), {"ask": Call(to="shop", timeout=9999 * MS, network=ms(20))})
    story.ask(0)
    story.until(10)
    frozen = story.begin(service="shop", freeze=True)
    assert story.until(20).service("shop") == {"inside": 1}
    story.until(60)
    story.end(frozen)
    assert story.until(179).served == 0
    assert story.until(181).served == 1


def test_a_frozen_caller_tries_nothing_again_until_it_thaws() -> None:
    """Its call is given up at 20 and would come again at once, and the next after a wait."""
    wait = Backoff(base=30 * MS, jitter="none")
    for backoff, sent in ((None, [1, 1, 2]), (wait, [1, 1, 1])):
        calls = {"leaf": Call(timeout=20 * MS, attempts=2, backoff=backoff)}
        story = Story(hub(calls=calls))
        story.ask(0)
        story.until(10)
        frozen = story.begin(service="hub", freeze=True)
        counts = [story.until(instant).call("leaf")[0] for instant in (15, 100)]
        story.end(frozen)
        assert [*counts, story.until(101).call("leaf")[0]] == sent
        assert story.until(500).call("leaf")[0] == 2
        assert story.failed == 1


def test_a_wait_that_ends_in_a_freeze_goes_on_after_it() -> None:
    """Given up at 20, to come again at 50; frozen from 30 to 100."""
    backoff = Backoff(base=30 * MS, jitter="none")
    story = Story(hub(calls={"leaf": Call(timeout=20 * MS, attempts=2, backoff=backoff)}))
    story.ask(0)
    story.until(30)
    frozen = story.begin(service="hub", freeze=True)
    assert story.until(100).call("leaf")[0] == 1
    story.end(frozen)
    assert story.until(101).call("leaf")[0] == 2


def test_what_was_cancelled_in_a_freeze_is_not_tried_again_after_it() -> None:
    """Given up at 20 while frozen; its people leave at 50, and it thaws at 100."""
    calls = {"leaf": Call(timeout=20 * MS, attempts=9, limit=Limit(max=1))}
    story = Story(hub(calls=calls, abandoned="cancel"), {"ask": Call(to="hub", timeout=50 * MS)})
    story.ask(0)
    story.until(10)
    frozen = story.begin(service="hub", freeze=True)
    story.until(100)
    story.end(frozen)
    assert story.until(500).call("leaf")[0] == 1


def test_an_answer_that_comes_in_a_freeze_is_read_after_it() -> None:
    story = Story(hub())
    story.ask(0)
    story.until(50)
    frozen = story.begin(service="hub", freeze=True)
    story.until(200)
    assert (story.call("leaf")[1], story.served) == (1, 0)
    story.end(frozen)
    assert story.until(201).served == 1


def test_a_line_of_thousands_before_work_that_takes_no_time_thaws() -> None:
    story = Story(one(workers=None, time=None), {"ask": Call(to="shop", timeout=9999 * MS)})
    frozen = story.begin(service="shop", freeze=True)
    story.ask(*[10] * 3000)
    assert story.until(20).served == 0
    story.end(frozen)
    assert story.until(21).served == 3000


def test_lost_workers_finish_what_they_have_and_take_no_more() -> None:
    """Four workers and eight requests; at 50 half of them go: 4 by 100, 6 by 200, 8 by 300."""
    story = Story(one(workers=4))
    story.ask(*[0] * 8)
    story.until(50)
    story.begin(service="shop", capacity=0.5)
    assert [story.until(at).served for at in (99, 100, 199, 200, 299, 300)] == [0, 4, 4, 6, 6, 8]


def test_workers_that_come_back_take_up_what_waits() -> None:
    story = Story(one(workers=2))
    lost = story.begin(service="shop", capacity=0.0)
    story.ask(0, 0)
    assert story.until(50).served == 0
    story.end(lost)
    assert story.until(149).served == 0
    assert story.until(151).served == 2


def test_what_whole_workers_round_up_is_taken_back_as_slowness() -> None:
    """Half of one worker is one at half the speed; a quarter of two also."""
    for workers, capacity in ((1, 0.5), (2, 0.25)):
        story = Story(one(workers=workers))
        story.begin(service="shop", capacity=capacity)
        story.ask(0, 0)
        assert story.until(199).served == 0
        assert story.until(200).served == 1
        assert story.until(400).served == 2


def test_latency_at_a_service_holds_no_worker() -> None:
    story = Story(one())
    story.begin(service="shop", latency=70 * MS)
    story.ask(0, 0)
    assert [story.until(at).served for at in (169, 170, 269, 270)] == [0, 1, 1, 2]


# Restarts.


def test_one_too_many_breaks_it_and_everything_it_holds_is_lost() -> None:
    """One works, two may wait; the fourth breaks it. Away until 500, then as before."""
    story = Story(one(restart=Restart(backlog=2, down=500 * MS), limit=Limit(max=9)))
    story.ask(0, 1, 2, 3, 400, 600)
    assert story.until(2).service("shop") == {"inside": 3}
    assert story.until(3).call() == (4, 0, 4, 0, 0)
    assert story.service("shop") == {"dropped": 4}
    assert story.until(400).call() == (5, 0, 5, 0, 0)
    assert story.until(700).served == 1
    assert story.world.services["shop"].replicas[0].limiter.inflight == 0


def test_a_full_line_refuses_before_it_breaks() -> None:
    story = Story(one(queue=Queue(limit=2), restart=Restart(backlog=2)))
    story.ask(0, 1, 2, 3)
    assert story.until(3).service("shop") == {"refused": 1, "inside": 3}


@pytest.mark.parametrize(
    ("blocking", "asked", "lost"), [(True, (0, 12, 13), 3), (False, (0, 12, 13, 14), 4)]
)
def test_a_restart_loses_the_calls_too_and_they_are_not_tried_again(
    blocking: bool, asked: tuple[int, ...], lost: int
) -> None:
    """At 10 the first calls the leaf. It holds the worker, or else the second has it from 12."""
    calls = {"leaf": Call(timeout=50 * MS, attempts=3)}
    services = hub(calls=calls, blocking=blocking, time=ms(10), restart=Restart(backlog=1))
    services["leaf"] = Service(workers=10, time=ms(100), abandoned="cancel")
    story = Story(services, log=EventLog())
    story.ask(*asked)
    assert story.until(asked[-1]).service("hub") == {"dropped": lost}
    replica = story.world.services["hub"].replicas[0]
    assert (replica.busy, replica.calling) == (0, 0)
    assert story.until(500).service("leaf") == {"cancelled": 1}
    assert (story.call("leaf")[0], story.failed) == (1, lost)


def test_a_restart_says_the_refusals_that_it_had_begun() -> None:
    """The limit turns the second away, which costs 50 ms of work and, at 60, a restart."""
    story = Story(
        one(
            workers=2,
            refusal_cost=0.5,
            rate_limit=RateLimit(rate=1, burst=1),
            restart=Restart(backlog=1),
        )
    )
    story.ask(0, 1)
    story.until(2)
    replica = story.world.services["shop"].replicas[0]
    assert replica.refusing == 1
    replica.restart(story.world.now, MS)
    assert story.until(10).call() == (2, 0, 1, 0, 1)
    assert story.service("shop") == {"refused": 1, "dropped": 1}


def test_what_comes_back_stuck_accepts_and_finishes_nothing_until_it_is_reset() -> None:
    story = Story(
        one(restart=Restart(backlog=1, down=100 * MS, stuck=True)),
        {"ask": Call(to="shop", timeout=9999 * MS)},
    )
    story.ask(0, 1, 2, 200, 201, 202)
    assert story.until(2).call()[2] == 3
    assert story.until(5000).service("shop") == {"dropped": 3, "inside": 3}
    story.world.act("reset", Action(service="shop", reset=True))
    assert story.until(5301).served == 3


def test_a_reset_does_not_thaw_what_is_frozen_for_another_reason() -> None:
    story = Story(one(restart=Restart(backlog=1, down=0, stuck=True)))
    story.ask(0, 1, 2)
    story.until(10)
    frozen = story.begin(service="shop", freeze=True)
    story.world.act("reset", Action(service="shop", reset=True))
    story.ask(20)
    assert story.until(500).served == 0
    story.end(frozen)
    assert story.until(601).served == 1


def test_a_flush_empties_the_line_and_not_the_workers() -> None:
    story = Story(one(limit=Limit(max=5)))
    story.ask(0, 1, 2)
    story.until(50)
    story.world.act("flush", Action(service="shop", flush=True))
    assert story.until(51).call() == (3, 0, 2, 0, 0)
    assert story.until(100).service("shop") == {"served": 1, "dropped": 2}
    assert story.world.services["shop"].replicas[0].limiter.inflight == 0
