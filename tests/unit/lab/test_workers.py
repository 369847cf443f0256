"""The workers serve as the simulated ones do, from instants, however late they are looked after."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.lab.workers import Workers
from tidegate.units import Instant


class Job:
    def __init__(self, name: str) -> None:
        self.name = name
        self.gone = False
        self.answered = False

    def done(self) -> None:
        self.answered = True

    def dropped(self) -> None:
        assert self.gone
        assert not self.answered


class Timer:
    def __init__(self) -> None:
        self.off = False

    def cancel(self) -> None:
        self.off = True


class Bench:
    """Workers whose every piece of work takes 10, and who are looked after `lag` late."""

    def __init__(self, count: int = 1, places: int | None = None, **more: Any) -> None:
        self.lag = more.pop("lag", 0)
        self.pending: list[tuple[Instant, int, Job, Timer]] = []
        self.finished: list[tuple[Instant, str]] = []
        draw: Callable[[], float] = more.pop("draw", lambda: 10.0)
        self.workers = Workers(
            count, places, more.pop("abandoned", "finish"), late_after=5, draw=draw, at=self.at
        )

    def at(self, due: Instant, job: Job) -> Timer:
        timer = Timer()
        heappush(self.pending, (due, len(self.pending) + len(self.finished), job, timer))
        return timer

    def run(self, until: Instant) -> None:
        while self.pending and self.pending[0][0] + self.lag <= until:
            due, _, job, timer = heappop(self.pending)
            if not timer.off:
                self.finished.append((due, job.name))
                self.workers.finish(due, due + self.lag, job)


def arrive(bench: Bench, *names: str, now: Instant = 0) -> list[Job]:
    jobs = [Job(name) for name in names]
    for job in jobs:
        bench.workers.arrive(now, job)
    return jobs


def test_so_many_work_at_once_and_the_rest_wait_in_their_order() -> None:
    bench = Bench(count=2)
    arrive(bench, *"abcde")
    counts = bench.workers.counts
    assert (counts.busy, counts.waiting) == (2, 3)
    bench.run(100)
    assert bench.finished == [(10, "a"), (10, "b"), (20, "c"), (20, "d"), (30, "e")]
    assert (counts.busy, counts.waiting, counts.served, counts.late) == (0, 0, 5, 0)


def test_a_busy_machine_takes_nothing_from_the_capacity() -> None:
    bench = Bench(lag=7)
    arrive(bench, *"abc")
    bench.run(100)
    assert bench.finished == [(10, "a"), (20, "b"), (30, "c")]
    assert (bench.workers.counts.tardy, bench.workers.counts.latest) == (3, 7)
    bench.lag = 5
    arrive(bench, "d", now=50)
    bench.run(100)
    assert (bench.workers.counts.tardy, bench.workers.counts.latest) == (3, 7)


def test_a_full_line_refuses() -> None:
    bench = Bench(places=1)
    assert [bench.workers.arrive(0, Job(name)) for name in "abc"] == [True, True, False]
    assert (bench.workers.counts.arrived, bench.workers.counts.refused) == (3, 1)


def test_without_places_only_the_workers_take() -> None:
    bench = Bench(places=0)
    assert [bench.workers.arrive(0, Job(name)) for name in "ab"] == [True, False]


def test_a_slowdown_stretches_what_starts_in_it() -> None:
    bench = Bench()
    arrive(bench, "a", "b")
    bench.workers.slowdown = 3.0
    bench.run(100)
    assert bench.finished == [(10, "a"), (40, "b")]


def test_what_its_caller_has_left_is_finished_and_counted_as_late() -> None:
    bench = Bench()
    _, left, _ = arrive(bench, *"abc")
    bench.workers.leave(5, left)
    bench.run(100)
    assert (bench.workers.counts.served, bench.workers.counts.late) == (3, 1)


def test_skipped_at_its_turn() -> None:
    bench = Bench(abandoned="skip")
    working, left, _ = arrive(bench, *"abc")
    bench.workers.leave(5, working)  # whatever is being worked on goes on
    bench.workers.leave(5, left)
    bench.run(100)
    assert bench.finished == [(10, "a"), (20, "c")]
    assert (bench.workers.counts.late, bench.workers.counts.dropped) == (1, 1)


def test_cancelled_at_once() -> None:
    bench = Bench(abandoned="cancel")
    working, left, _ = arrive(bench, *"abc")
    bench.workers.leave(4, left)
    assert bench.workers.counts.waiting == 1
    bench.workers.leave(5, working)
    bench.run(100)
    assert bench.finished == [(15, "c")]
    assert (bench.workers.counts.served, bench.workers.counts.dropped) == (1, 2)


def test_what_somebody_in_front_called_off_is_stopped_in_any_case() -> None:
    bench = Bench()
    working, waiting = arrive(bench, "a", "b")
    bench.workers.stop(3, working)
    bench.workers.stop(4, waiting)
    bench.workers.stop(5, waiting)  # once more says nothing
    bench.run(100)
    assert bench.finished == []
    counts = bench.workers.counts
    assert (counts.dropped, counts.busy, counts.waiting) == (2, 0, 0)


@pytest.mark.parametrize("abandoned", ["finish", "skip", "cancel"])
@given(
    st.lists(st.tuples(st.sampled_from(["arrive", "leave", "stop", "run"]), st.integers(0, 30))),
    st.integers(1, 3),
    st.none() | st.integers(0, 3),
)
def test_nothing_is_lost_from_the_count(
    abandoned: str, script: list[tuple[str, int]], count: int, places: int | None
) -> None:
    bench = Bench(count, places, abandoned=abandoned)
    jobs: list[Job] = []
    now = 0
    for what, number in script:
        if what == "run":
            now += number
            bench.run(now)
        elif what == "arrive":
            jobs.append(Job(str(len(jobs))))
            bench.workers.arrive(now, jobs[-1])
        elif number < len(jobs) and not jobs[number].answered:
            getattr(bench.workers, what)(now, jobs[number])
        counts = bench.workers.counts
        ended = counts.served + counts.refused + counts.dropped
        assert counts.arrived == ended + counts.waiting + counts.busy
        assert counts.busy <= count
        assert not counts.waiting or counts.busy == count
    bench.run(now + 10_000)
    assert (bench.workers.counts.busy, bench.workers.counts.waiting) == (0, 0)
