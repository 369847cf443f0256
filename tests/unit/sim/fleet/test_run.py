"""What is counted of a run: against fleets so simple that the answer is known."""

import pytest

from tidegate.sim.fleet.run import Sent, limit_s, run
from tidegate.sim.fleet.sink import STEP_S, Case, Sink
from tidegate.units import Instant

CASE = Case(live=1e6, backlog=900e6, capacity=2e6, collapsed=1e6)
HOURS = 3 * 3600.0


class Steady:
    """Live as it comes, and one rate of replay."""

    def __init__(self, case: Case, rate: float) -> None:
        self.case, self.step = case, rate * STEP_S
        self.left, self.lost = case.backlog, 0.0

    def send(self, now: Instant, sink: Sink) -> Sent:
        live = self.case.live * STEP_S
        return Sent(live, min(self.left, self.step), live)

    def on_sent(self, now: Instant, sent: Sent, sink: Sink) -> None:
        self.left -= sent.replay * (1 - sink.failed)
        self.lost += sent.live * sink.failed


def test_the_limit_is_the_backlog_by_what_is_left_of_capacity() -> None:
    assert limit_s(CASE, HOURS) == pytest.approx(900)
    assert limit_s(CASE._replace(capacity=4e6), HOURS) == pytest.approx(300)


def test_the_limit_counts_what_the_sink_cannot_do_meanwhile() -> None:
    # From 0.75 of health it misses 1/8 of a live rate on average, for 150 s; a broker 2/3 for 300.
    assert limit_s(CASE._replace(health=0.75), HOURS) == pytest.approx(900 + 18.75, abs=1)
    assert limit_s(CASE._replace(lost=(100.0, 400.0)), HOURS) == pytest.approx(900 + 200, abs=1)


def test_there_is_no_limit_without_room() -> None:
    assert limit_s(CASE._replace(capacity=1e6), HOURS) is None


def test_a_steady_replay_with_room_harms_nobody() -> None:
    ran = run(CASE, Steady(CASE, 0.5e6), seed=1, most_s=HOURS)
    assert ran.drained_s == pytest.approx(1800)
    assert ran.of_limit == pytest.approx(2)
    assert ran.cruise == pytest.approx(0.5)
    assert ran.peak == pytest.approx(1.5)
    assert ran.peak_of_capacity == pytest.approx(0.75)
    assert (ran.lost, ran.late, ran.overload_s, ran.resent) == (0, 0, 0, 0)
    assert ran.p99_s == pytest.approx(0.02)  # 5 ms at three quarters in use


def test_one_that_overloads_is_counted_as_such() -> None:
    ran = run(CASE, Steady(CASE, 12e6), seed=1, most_s=600)
    assert ran.drained_s is None
    # Of what it does not refuse, 1/13 live, it answers a quarter in time, at its worst.
    assert ran.cruise == pytest.approx(0.25 * 12 / 13)
    assert ran.of_limit is None
    assert ran.peak == pytest.approx(13)
    assert ran.lost > 0.5
    assert ran.late == pytest.approx(ran.lost)
    assert ran.overload_s == pytest.approx(600, abs=1)
    assert ran.resent > 0.5
    assert ran.p99_s > 1.5


def test_what_is_kept_back_is_late() -> None:
    class Closed(Steady):
        def send(self, now: Instant, sink: Sink) -> Sent:
            sent = super().send(now, sink)
            return sent if now >= 360 * 10**9 else sent._replace(live=0.0, fresh=0.0)

    ran = run(CASE, Closed(CASE, 1e6), seed=1, most_s=HOURS)
    assert ran.late == pytest.approx(0.1)
    assert ran.lost == 0


def test_the_curve_has_at_most_a_few_hundred_points_of_equal_lists() -> None:
    ran = run(CASE, Steady(CASE, 0.5e6), seed=1, most_s=HOURS)
    assert len(ran.seconds) == len(ran.sent) == len(ran.capacity) <= 480
    assert ran.sent[0] == pytest.approx(1.5)
    assert ran.capacity[0] == pytest.approx(2)
