"""One run under one trigger: where it ends, what is tried when stuck, who shares the cores."""

import os
import signal
from functools import partial
from pathlib import Path

import msgspec
import pytest
from systems import stall, store

from tidegate.analysis import runs
from tidegate.analysis.runs import Runner, Spec, execute, execute_choices
from tidegate.errors import InvariantError, WorkerLost
from tidegate.settings.system import Action, System, Trigger
from tidegate.units import MILLISECOND, SECOND

WAYS_OUT = {
    "no retries": Action(call="buy", attempts=1),
    "twice the workers": Action(service="store", capacity=2.0),
    "empty the queue": Action(service="store", flush=True),
}


def with_ways_out() -> System:
    return msgspec.structs.replace(store(retry_on=("timeout",)), actions=WAYS_OUT)


def spec(system: System, trigger: str | None = "stall", seed: int = 1, **more: object) -> Spec:
    return Spec(system=system, trigger=trigger, seed=seed, **more)  # type: ignore[arg-type]


def test_a_stall_is_over_and_the_store_stays_down() -> None:
    run = execute(spec(store()))
    assert (run.start, run.end) == (30, 40)
    assert run.outcome == "sticks"
    assert run.recovered_after == {"shoppers": None}


def test_a_run_ends_as_soon_as_all_are_well_again() -> None:
    run = execute(spec(store(attempts=1)))
    assert run.outcome == "recovers"
    assert run.stopped < run.end + 60


def test_a_run_that_cannot_turn_is_not_followed_for_ever() -> None:
    run = execute(spec(store()))
    # A minute without an answer, seen half a second late; not the objective's minute and the drain.
    assert run.stopped <= run.end + 60 + 1 + 30


def test_an_unharmed_system_is_not_called_recovered() -> None:
    run = execute(spec(store(rate=20.0, triggers={"stall": stall(100 * MILLISECOND)})))
    assert run.outcome == "unharmed"


def test_a_backlog_that_falls_is_followed_to_its_end() -> None:
    # One attempt, patience of two seconds, so 200/s against 180/s: 3,600 waiting drain at 20/s.
    slow = store(rate=180.0, attempts=1, timeout=2 * SECOND, triggers={"stall": stall(20 * SECOND)})
    run = execute(spec(slow))
    assert run.outcome in {"recovers", "slow to drain"}
    assert run.recovered_after["shoppers"] is not None
    assert run.recovered_after["shoppers"] == pytest.approx((3600 - 400) / 20, rel=0.5)


def test_a_trigger_without_an_end_is_judged_while_it_lasts() -> None:
    wrong = Trigger(service="store", slowdown=3.0)
    run = execute(spec(store(triggers={"stall": wrong}), hold=60 * SECOND))
    assert (run.start, run.end) == (30, 90)
    assert run.outcome == "sticks"


def test_nothing_happens_to_a_system_left_alone() -> None:
    run = execute(spec(store(rate=100.0), trigger=None, hold=60 * SECOND))
    assert run.outcome == "unharmed"
    assert run.stopped == 90


def test_the_same_spec_gives_the_same_run_in_any_number_of_processes() -> None:
    specs = [spec(store(), seed=seed) for seed in (1, 2, 3)]
    with Runner(1) as alone, Runner(2) as together:
        here, there = alone.map(specs, "here"), together.map(specs, "there")
    assert here == there
    assert here[0] != here[1]


def test_each_way_out_is_tried_from_the_same_stuck_state() -> None:
    choices = tuple((name,) for name in WAYS_OUT)
    none, more, flushed = execute_choices(spec(with_ways_out(), choices=choices))
    assert {run.end for run in (none, more, flushed)} == {100}  # a minute after the stall's end
    before = [run.clients["shoppers"].offered[:100] for run in (none, more, flushed)]
    assert before[0] == before[1] == before[2]
    assert none.outcome == "recovers"  # 140/s are less than 200/s
    assert flushed.outcome == "recovers"  # what it fails is not tried again
    assert more.outcome == "sticks"  # 560 attempts a second are more than 400/s


def test_a_flush_that_callers_repeat_on_fills_the_queue_again() -> None:
    system = msgspec.structs.replace(store(), actions=WAYS_OUT)
    (flushed,) = execute_choices(spec(system, choices=(("empty the queue",),)))
    assert flushed.outcome == "sticks"


def test_without_fork_the_way_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = (("no retries",), ("empty the queue",))
    asked = spec(with_ways_out(), choices=choices)
    forked = execute_choices(asked)
    monkeypatch.delattr(os, "fork")
    again = execute_choices(asked)
    assert [run.clients for run in again] == [run.clients for run in forked]


def test_progress_is_told_in_words() -> None:
    told: list[str] = []
    with Runner(1, told.append) as runner:
        runner.map([spec(store(), trigger=None, hold=SECOND)], "left alone")
        assert runner.cpu_seconds > 0
    assert told == ["left alone: 0 of 1", "left alone: 1 of 1"]


def test_one_process_starts_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "ProcessPoolExecutor", None)  # to use it would be a TypeError
    with Runner(1) as runner:
        assert runner.each(int, ["1", "2"], "numbers") == [1, 2]
    with Runner(8) as runner:
        assert runner.each(int, ["1"], "one number") == [1]


@pytest.mark.slow  # two processes start: as below
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="asks /proc who runs it")
def test_where_there_are_threads_nothing_is_done_here() -> None:
    with Runner(2) as runner:
        assert runner.each(os.readlink, ["/proc/self"], "alone") == [str(os.getpid())]
        runner.each(os.readlink, ["/proc/self"] * 2, "together")
        assert runner.each(os.readlink, ["/proc/self"], "alone again") != [str(os.getpid())]


@pytest.mark.slow  # as above
@pytest.mark.parametrize("workers", [1, 2])
def test_what_goes_wrong_in_a_process_is_told_here(workers: int) -> None:
    with Runner(workers) as runner, pytest.raises(ValueError, match="'three'"):
        runner.each(int, ["1", "2", "three"], "numbers")


@pytest.mark.slow  # as above
def test_ctrl_c_is_not_for_the_workers() -> None:
    with Runner(2) as runner:
        masks = runner.each(partial(signal.pthread_sigmask, signal.SIG_BLOCK), [()] * 4, "masks")
    assert all(signal.SIGINT in mask for mask in masks)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.slow  # as above
def test_a_killed_process_is_one_sentence_and_no_wait_for_ever() -> None:
    with Runner(2) as runner, pytest.raises(WorkerLost) as lost:
        runner.each(os._exit, [0, 0], "the stall")  # gone without a word
    assert str(lost.value).startswith("a process at work on the stall was ended from outside")
    assert "--processes 1" in str(lost.value)


def test_a_copy_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise ValueError("planted")

    monkeypatch.setattr(runs, "_continue", broken)
    with pytest.raises(InvariantError, match=r"seed 7, after no retries: ValueError: planted"):
        execute_choices(spec(with_ways_out(), seed=7, choices=(("no retries",),)))


def test_a_killed_copy_is_a_lost_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_continue", lambda *_: os._exit(0))
    with pytest.raises(WorkerLost, match=r"that tried no retries \(seed 1\) was ended"):
        execute_choices(spec(with_ways_out(), choices=(("no retries",),)))


def test_an_interrupted_runner_leaves_no_process_behind() -> None:
    with Runner(2) as runner:
        runner.map([spec(store(rate=1.0), trigger=None, hold=SECOND, seed=i) for i in (1, 2)], "x")
        pool = runner._pool
        assert pool is not None
        pids = list(pool._processes)
        runner.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, signal.SIG_DFL)
