"""A stream is tried again before its first item and never after it."""

import inspect
from contextlib import contextmanager

import pytest

import tidegate
from tidegate import DeadlineExceeded
from tidegate.runtime.registry import _forget
from tidegate.settings.policies import Adaptive, Limit
from tidegate.testing import instant, refusing
from tidegate.units import SECOND


@pytest.fixture(autouse=True)
def clock():
    _forget()
    with instant() as still:
        yield still
    _forget()


def counts(guard):
    seen = guard.snapshot()
    assert seen.pending == 0
    assert sum(seen.outcomes.values()) == seen.attempts
    assert not seen.inflight
    names = ("started", "ok", "failed", "rejected", "fallback", "retries")
    shown = {name: getattr(seen, name) for name in names} | seen.outcomes
    return {name: number for name, number in shown.items() if number}


def licences(**settings):
    return tidegate.guard("licences", limit=1, budget=None, **settings)


class Source:
    """A generator function that fails and dawdles by script; `begun` counts its streams."""

    def __init__(self, clock, *streams):
        self.clock, self.streams = clock, iter(streams)
        self.begun = self.closed = 0
        self.left = []  # what remained when each item was made

    def __call__(self):
        self.begun += 1
        try:
            for step in next(self.streams):
                self.left.append(tidegate.remaining())
                if isinstance(step, float):
                    self.clock.advance(step)
                elif isinstance(step, type):
                    raise step
                else:
                    yield step
            return "total"
        finally:
            self.closed += 1


def generator(source):
    def items():
        return (yield from source())

    return items


def test_every_item_in_order_and_the_return_value(clock):
    guard = licences()
    guarded = guard(generator(Source(clock, [1, 2, 3])))
    assert inspect.isgeneratorfunction(guarded)
    stream = guarded()
    assert guard.snapshot().started == 0  # not before the first item is asked for
    assert next(stream) == 1
    assert guard.snapshot().inflight == 1
    assert [*stream] == [2, 3]
    assert counts(guard) == {"started": 1, "ok": 1, "success": 1}
    with pytest.raises(StopIteration) as end:
        next(guard(generator(Source(clock, [])))())
    assert end.value.value == "total"


def test_before_the_first_item_it_is_tried_again(clock):
    guard = licences(attempts=3)
    source = Source(clock, [ConnectionError], [ConnectionError], [1, 2])
    assert [*guard(generator(source))()] == [1, 2]
    assert source.begun == 3
    assert counts(guard) == {"started": 1, "ok": 1, "retries": 2, "success": 1, "failure": 2}


def test_after_the_first_item_nothing_is_repeated_and_no_fallback_answers(clock):
    guard = licences(attempts=3, fallback=lambda: iter([9]))
    source = Source(clock, [1, 2, ConnectionError], [1, 2, 3])
    seen = []
    with pytest.raises(ConnectionError):
        seen.extend(guard(generator(source))())
    stream = guard(generator(Source(clock, [1, ConnectionError])))()
    assert next(stream) == 1
    with pytest.raises(ConnectionError):
        next(stream)
    assert source.begun == 1
    assert counts(guard) == {"started": 2, "failed": 2, "failure": 2}


def test_a_fallback_answers_for_a_stream_that_never_began(clock):
    guard = licences(attempts=1, fallback=lambda: iter([8, 9]))
    assert [*guard(generator(Source(clock, [ConnectionError])))()] == [8, 9]
    with refusing(guard):
        assert [*guard(generator(Source(clock)))()] == [8, 9]
    assert counts(guard) == {"started": 2, "fallback": 2, "failure": 1}


def test_a_refusal_is_raised_by_the_first_item(clock):
    guard = licences()
    stream = guard(generator(Source(clock)))()
    with refusing(guard), pytest.raises(tidegate.Held):
        next(stream)
    assert counts(guard) == {"started": 1, "rejected": 1}


def test_a_consumer_who_stops_early_has_had_what_they_wanted(clock):
    guard = licences()
    source = Source(clock, [1, 2, 3])
    stream = guard(generator(source))()
    assert next(stream) == 1
    stream.close()
    assert source.closed == 1
    assert counts(guard) == {"started": 1, "ok": 1, "success": 1}


def test_a_stream_that_is_forgotten_gives_its_place_back(clock):
    guard = licences()
    for item in guard(generator(Source(clock, [1, 2, 3])))():
        assert item == 1
        break
    assert counts(guard) == {"started": 1, "ok": 1, "success": 1}


def test_a_slow_consumer_is_nobody_s_fault_and_a_slow_item_is(clock):
    guard = licences(timeout=2.0)
    for _ in guard(generator(Source(clock, [1, 1.5, 2, 1.5, 3])))():
        clock.advance(60)
    assert counts(guard) == {"started": 1, "ok": 1, "success": 1}
    assert [*guard(generator(Source(clock, [1, 2.5, 2])))()] == [1, 2]
    assert [*guard(generator(Source(clock, [2.5, 1])))()] == [1]
    assert [*guard(generator(Source(clock, [2.5])))()] == []
    assert counts(guard) == {"started": 4, "ok": 4, "success": 1, "timeout": 3}


def test_a_limit_that_finds_itself_goes_by_the_first_item(clock):
    limit = Limit(adaptive=Adaptive(start=10, latency=SECOND))
    guard = tidegate.guard("licences", limit=limit)
    for _ in guard(generator(Source(clock, [0.5, 1, 2])))():
        clock.advance(60)
    assert guard.snapshot().limit == 10
    assert [*guard(generator(Source(clock, [1.5, 1])))()] == [1]
    assert guard.snapshot().limit == 7


def test_first_item_and_idle_have_limits_of_their_own(clock):
    guard = licences(timeout=2.0)
    source = Source(clock, [4.0, 1, 0.5, 2], [1, 1.5, 2])
    stream = guard.stream(first_item=5.0, idle=1.0)(generator(source))
    assert [*stream()] == [1, 2]
    assert counts(guard) == {"started": 1, "ok": 1, "success": 1}
    assert [*stream()] == [1, 2]
    assert counts(guard)["timeout"] == 1
    assert source.left[:3] == [5.0, 1.0, 1.0]


def test_a_plain_function_that_gives_an_iterator_is_a_stream_if_one_says_so():
    guard = licences()
    assert [*guard.stream()(lambda: [1, 2])()] == [1, 2]
    assert counts(guard) == {"started": 1, "ok": 1, "success": 1}


def test_what_is_around_the_consumer_is_never_the_stream_s(clock):
    guard = licences(timeout=2.0)
    source = Source(clock, [1, 2])
    with tidegate.deadline(9.0):
        for _ in guard(generator(source))():
            assert tidegate.remaining() == 9.0
    assert source.left == [2.0, 2.0]


def test_nothing_is_handed_on_when_the_deadline_has_passed(clock):
    guard = licences()
    source = Source(clock, [1, 2])
    with tidegate.deadline(5.0):
        stream = guard(generator(source))()
        assert next(stream) == 1
    clock.advance(5.0)
    with pytest.raises(DeadlineExceeded):
        next(stream)
    assert source.closed == 1
    assert counts(guard) == {"started": 1, "failed": 1, "timeout": 1}


def test_what_is_sent_and_thrown_in_reaches_the_source():
    guard = licences()

    @guard
    def echo():
        said = yield "ready"
        while True:
            try:
                said = yield said
            except KeyError:
                said = "caught"

    stream = echo()
    assert [next(stream), stream.send(1), stream.throw(KeyError), stream.send(2)] == [
        "ready", 1, "caught", 2,
    ]  # fmt: skip
    stream.close()
    assert counts(guard) == {"started": 1, "ok": 1, "success": 1}


def failing_block(block):
    with block():
        raise KeyError("the consumer's own")


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_an_error_of_the_consumer_says_nothing_against_the_dependency(mode):
    guard = licences().options(mode=mode)

    @contextmanager
    @guard
    def session():
        yield "open"

    with pytest.raises(KeyError):
        failing_block(session)
    with session() as state:
        assert state == "open"
    assert counts(guard) == {"started": 2, "ok": 2, "success": 2}


def test_observed_it_is_never_in_the_way(clock):
    guard = licences().options(mode="observe")
    with refusing(guard):
        assert [*guard(generator(Source(clock, [1, 60.0, 2])))()] == [1, 2]
    stream = guard(generator(Source(clock, [1, ConnectionError])))()
    assert next(stream) == 1
    with pytest.raises(ConnectionError):
        next(stream)
    left = guard(generator(Source(clock, [1, 2])))()
    assert next(left) == 1
    left.close()
    assert counts(guard) == {"started": 3, "ok": 2, "failed": 1, "success": 2, "failure": 1}
    assert guard.snapshot().would_refuse == {"held": 1}


def test_an_interrupt_between_two_attempts_ends_the_call(clock, monkeypatch):
    guard = licences(attempts=2, backoff=10.0)
    source = Source(clock, [ConnectionError], [1])

    def interrupted(self, wait):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(clock), "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(guard(generator(source))())
    assert source.begun == 1
    assert guard.snapshot().pending == 0
