"""A plain function that is guarded: what is different from a coroutine function."""

import inspect
import threading
from functools import partial

import pytest

import tidegate
from tidegate import DeadlineExceeded, LimitExceeded
from tidegate.runtime.registry import _forget
from tidegate.testing import after, instant, scripted


@pytest.fixture(autouse=True)
def clock():
    _forget()
    with instant() as still:
        yield still
    _forget()


def test_the_function_is_what_it_was():
    guard = tidegate.guard("d")

    @guard
    def price(of: str, *, to: str = "eur") -> str:
        """What it costs."""
        return f"{of} in {to}"

    assert price("tea", to="usd") == "tea in usd"
    assert (price.__name__, price.__doc__) == ("price", "What it costs.")
    assert inspect.signature(price) == inspect.signature(price.__wrapped__)
    assert not inspect.iscoroutinefunction(price)


def test_methods_partials_and_callable_objects_are_functions():
    guard = tidegate.guard("d")

    class Shop:
        rate = 2

        @guard
        def price(self, of):
            return self.rate * of

        def __call__(self, of):
            return self.rate * of

    assert Shop().price(3) == 6
    assert guard.call(Shop(), 4) == 8
    assert guard.call(partial(Shop().price, 5)) == 10
    assert guard.call(len, "four") == 4


def test_a_late_answer_counts_against_the_dependency_and_is_used_if_somebody_still_waits(clock):
    guard = tidegate.guard("d", timeout=2.0, attempts=3)
    assert guard.call(scripted(after(2.5, "late")).call) == "late"
    seen = guard.snapshot()
    assert (seen.ok, seen.outcomes["timeout"], seen.attempts) == (1, 1, 1)


@pytest.mark.parametrize("own", [True, False])
def test_a_late_answer_is_not_used_when_nobody_waits_any_more(clock, own):
    guard = tidegate.guard("d", timeout=2.0, **({"deadline": 1.0} if own else {}))
    stub = scripted(after(1.5, "late"))
    with tidegate.deadline(9.0 if own else 1.0), pytest.raises(DeadlineExceeded) as late:
        guard.call(stub.call)
    assert late.value.sent
    seen = guard.snapshot()
    assert (seen.failed, seen.outcomes["timeout"], seen.pending) == (1, 1, 0)


def test_an_attempt_inherits_its_own_end_and_is_deeper_with_each_retry(clock):
    guard = tidegate.guard("d", timeout=2.0, attempts=2, backoff=None, budget=None, deadline=9.0)
    seen = []

    @guard
    def attempt():
        seen.append((tidegate.remaining(), tidegate.runtime.context.ambient().depth))
        if len(seen) < 2:
            raise ConnectionError

    with tidegate.deadline(60.0):
        attempt()
        assert tidegate.remaining() == 60.0
    assert seen == [(2.0, 0), (2.0, 1)]


def test_an_interrupt_of_a_wait_ends_the_call(clock, monkeypatch):
    guard = tidegate.guard("d", attempts=2)

    def interrupted(self, wait):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(clock), "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        guard.call(scripted(ConnectionError).call)
    seen = guard.snapshot()
    assert (seen.failed, seen.attempts, seen.pending) == (1, 1, 0)


def test_no_more_threads_are_let_in_than_the_limit_and_every_call_is_counted():
    guard = tidegate.guard("d", limit=4)
    inside = threading.Barrier(5)  # the four that are let in, and whoever opens

    @guard
    def work():
        inside.wait()
        inside.wait()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    inside.wait()  # all four are in
    for _ in range(10):
        with pytest.raises(LimitExceeded):
            work()
    inside.wait()
    for thread in threads:
        thread.join()
    seen = guard.snapshot()
    assert (seen.started, seen.ok, seen.rejected, seen.inflight) == (14, 4, 10, 0)
