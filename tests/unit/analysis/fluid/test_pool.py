"""A service as a fluid, step by step of 0.1 s: its door, its queue, its workers, its restarts."""

from collections.abc import Sequence

import pytest

from tidegate.analysis.fluid.client import Client
from tidegate.analysis.fluid.pool import Group, Pool, spread
from tidegate.analysis.fluid.site import Site
from tidegate.settings import system as settings
from tidegate.settings.policies import CoDel, Limit, Queue, RateLimit
from tidegate.settings.system import Call, Restart, Service, Time
from tidegate.units import MILLISECOND, SECOND

STEP = 0.1


class Bench:
    """A client that sends what a test says, one call, and a service of ten works a step."""

    def __init__(self, *, call: dict[str, object] | None = None, **service: object) -> None:
        said = {"workers": 1, "time": Time(constant=10 * MILLISECOND), **service}
        self.service = Service(**said)  # type: ignore[arg-type]
        asked = Call(**{"timeout": SECOND, **(call or {})})  # type: ignore[arg-type]
        patience = round((asked.timeout or 0) / SECOND / STEP)
        self.client = Client(
            "users", settings.Client(rate=1.0, calls={"x": asked}), dt=STEP, patience=patience
        )
        hasty = (asked.timeout or 0) / SECOND
        self.pool = Pool("x", self.service, replicas=1, dt=STEP, hasty=hasty)
        self.pool.set_rate(self.service.rate_limit, 1.0)
        self.pool.retime()
        group = Group([self.pool], least_loaded=False)
        self.site = Site("x", asked, group, hosts=1, dt=STEP, answer=0.01)
        self.client.add(self.site, 1.0)
        self.served: list[float] = []
        self.waiting: list[float] = []

    def run(self, loads: Sequence[float]) -> "Bench":
        for load in loads:
            now = len(self.waiting)
            self.pool.remember()
            self.pool.look(now)
            self.pool.begin_step()
            self.client.remember()
            self.site.look()
            self.client.set_load(load / STEP)
            self.client.arrive(now)
            self.site.tick(now)
            while self.pool.dirty or self.pool.news or self.client.news or self.pool.goes_on():
                self.pool.visit(now)
                self.pool.hear(now)
                self.client.hear(now)
            self.pool.pass_on()
            self.pool.end_step(now)
            self.site.end_step()
            self.served.append(round(sum(self.client.good) - sum(self.served), 6))
            self.waiting.append(round(self.pool.waiting, 6) + 0.0)
        return self


def test_up_to_its_capacity_all_is_served_at_once() -> None:
    bench = Bench().run([8, 10, 3])
    assert bench.served == [8, 10, 3]
    assert bench.waiting == [0, 0, 0]


def test_what_is_too_much_waits_in_line() -> None:
    bench = Bench().run([10, 25, 3, 0])
    assert bench.served == [10, 10, 10, 8]
    assert bench.waiting == [0, 15, 8, 0]


def test_what_was_done_at_once_for_too_many_is_owed() -> None:
    """Clear until seen otherwise: the first step of a flood is answered, and paid for after."""
    bench = Bench().run([5, 25, 5, 5, 5])
    assert bench.served[:2] == [5, 25]
    assert sum(bench.served) == 45


def test_a_full_queue_refuses_or_is_silent() -> None:
    refusing = Bench(queue=Queue(limit=4)).run([10, 20, 0])
    assert refusing.waiting == [0, 4, 0]
    assert refusing.site.orbit == 0
    again = Bench(queue=Queue(limit=4), call={"attempts": 2}).run([10, 20])
    assert again.site.orbit == pytest.approx(6)
    silent = Bench(queue=Queue(limit=4, full="silence"), call={"attempts": 2}).run([10, 20])
    assert (silent.site.orbit, silent.waiting[-1]) == (0, 4)
    silent.run([0] * 10)
    assert silent.site.made == pytest.approx(36)  # the six come again when their time is up


def test_newest_first_and_of_one_step_all_alike() -> None:
    bench = Bench(queue=Queue(order="lifo")).run([10, 20, 10, 0])
    assert bench.served == [10, 10, 10, 10]
    assert bench.client.good[:3] == pytest.approx([10, 20, 10])


def test_a_frozen_service_does_nothing_and_what_comes_waits() -> None:
    bench = Bench()
    bench.run([5])
    bench.pool.freeze(frozen=True)
    bench.run([5, 5])
    assert bench.waiting == [0, 5, 10]
    bench.pool.freeze(frozen=False)
    assert bench.run([0, 0]).served == [5, 0, 0, 10, 0]


def test_long_work_is_waited_for_and_stands_still_in_a_freeze() -> None:
    bench = Bench(workers=100, time=Time(constant=250 * MILLISECOND)).run([5])
    bench.pool.freeze(frozen=True)
    bench.run([0, 0, 0])
    bench.pool.freeze(frozen=False)
    assert bench.run([0, 0, 0]).served == [0, 0, 0, 0, 0, 5, 0]


def test_work_that_is_long_against_the_timeout_is_spread() -> None:
    bench = Bench(workers=100, time=Time(mean=800 * MILLISECOND)).run([5] + [0] * 30)
    assert sum(bench.served) == pytest.approx(3)  # the two slowest fifths are too late
    assert len([mass for mass in bench.served if mass]) == 3


@pytest.mark.parametrize(
    "time", [Time(mean=SECOND), Time(median=SECOND, p99=9 * SECOND), Time(constant=SECOND)]
)
def test_a_spread_keeps_the_mean(time: Time) -> None:
    values = spread(time)
    assert sum(values) / len(values) == pytest.approx(1)
    assert values == sorted(values)


def test_errors_fail_their_share() -> None:
    bench = Bench(errors=0.25).run([8, 8])
    assert bench.served == [6, 6]


def test_slowness_less_workers_and_contention() -> None:
    slow = Bench()
    slow.pool.slowdown = 2.0
    slow.pool.retime()
    assert slow.run([5, 10]).served == [5, 5]
    cut = Bench(workers=2)
    cut.pool.workers.capacity = 0.25
    assert cut.run([5, 10]).served == [5, 5]
    crowded = Bench(thrash=0.1).run([10, 20, 0])
    assert crowded.served == [10, 10, 5]  # ten wait: everything takes twice as long


def test_a_limit_at_the_door_and_its_cost() -> None:
    limited = Bench(rate_limit=RateLimit(rate=60, burst=1)).run([10, 10])
    assert limited.served == [6, 6]
    costly = Bench(rate_limit=RateLimit(rate=60, burst=1), refusal_cost=1.5).run([10, 10])
    assert costly.served == [4, 4]  # four refusals take the time of six


def test_a_concurrency_limit_counts_what_waits_too() -> None:
    bench = Bench(limit=Limit(max=1), time=Time(constant=10 * MILLISECOND)).run([25, 0])
    assert bench.served == [10, 0]
    assert bench.waiting == [0, 0]


def test_abandoned_work_is_skipped_or_cancelled() -> None:
    def frozen(**service: object) -> Bench:
        bench = Bench(call={"timeout": 300 * MILLISECOND}, **service)
        bench.pool.freeze(frozen=True)
        bench.run([20, 0, 0, 0])
        bench.pool.freeze(frozen=False)
        return bench

    assert frozen(abandoned="finish").run([10]).served[-1] == 0
    skipping, cancelling = frozen(abandoned="skip"), frozen(abandoned="cancel")
    assert (skipping.waiting[-1], cancelling.waiting[-1]) == (20, 0)
    assert skipping.run([10]).served[-1] == 10
    assert cancelling.run([10]).served[-1] == 10


def test_exponential_work_that_is_cancelled_is_never_in_vain() -> None:
    bench = Bench(call={"timeout": 200 * MILLISECOND}, abandoned="cancel", workers=4,
                  time=Time(mean=200 * MILLISECOND))  # fmt: skip
    bench.pool.slowdown = 1.0
    done, cost = bench.pool._before_leaving(0, type("P", (), {"leaves": 2})())
    assert done == cost == pytest.approx(1 - 2.718281828**-1)


def test_constant_work_that_cannot_end_in_time_is_all_in_vain() -> None:
    bench = Bench(abandoned="cancel", time=Time(constant=400 * MILLISECOND))
    soon = type("P", (), {"leaves": 2})()
    assert bench.pool._before_leaving(0, soon) == (0.0, 0.5)


def test_late_work_and_standing_queues_are_dropped() -> None:
    late = Bench(queue=Queue(late=True), call={"timeout": 300 * MILLISECOND}, workers=1)
    late.pool.freeze(frozen=True)
    late.run([10, 0])
    late.pool.freeze(frozen=False)
    assert late.run([0]).served[-1] == 10  # 50 ms are enough for 10 ms
    late.pool.freeze(frozen=True)
    late.run([10, 0, 0])
    late.pool.freeze(frozen=False)
    assert late.run([0]).waiting[-1] == 0
    codel = Bench(queue=Queue(codel=CoDel(target=50 * MILLISECOND, interval=200 * MILLISECOND)))
    codel.run([10, 60, 0, 0])
    assert codel.waiting == [0, 50, 40, 0]  # standing for 0.2 s: what is old goes


def test_a_restart_drops_all_and_may_stick() -> None:
    bench = Bench(restart=Restart(backlog=15, down=200 * MILLISECOND))
    bench.run([10, 30, 5, 5, 5, 5])
    assert bench.waiting == [0, 20, 0, 0, 0, 0]
    assert bench.served == [10, 10, 0, 0, 5, 5]
    stuck = Bench(restart=Restart(backlog=15, down=200 * MILLISECOND, stuck=True))
    stuck.run([10, 30, 5, 5, 5, 5])
    assert stuck.pool.frozen
    assert stuck.waiting[-2:] == [5, 10]
    stuck.pool.freeze(frozen=False)
    assert stuck.pool.frozen  # the end of a trigger does not free it


def test_how_many_may_wait_and_still_be_answered_in_time() -> None:
    assert Bench().pool.answered_in_time() == pytest.approx(100)
    assert Bench(workers=None, time=None).pool.answered_in_time() == 0


def test_a_balancer_spreads_by_replicas_or_to_the_idle() -> None:
    service = Service(workers=1, time=Time(constant=SECOND))
    few = Pool("x", service, replicas=1, dt=STEP, hasty=1)
    many = Pool("x", service, replicas=3, dt=STEP, hasty=1)
    assert [share for _, share in Group([few, many], least_loaded=False).spread()] == [0.25, 0.75]
    many.in_system = 9
    assert Group([few, many], least_loaded=True).spread() == [(few, 1.0)]
