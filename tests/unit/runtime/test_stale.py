"""The last good answer in the place of an error, until it is too old; and one call at a time."""

import threading

import pytest

import tidegate
from tidegate import DeadlineExceeded, Outcome, SettingsError, Verdict
from tidegate.runtime.registry import _forget
from tidegate.runtime.stale import Memory, Stale
from tidegate.testing import instant, refusing, scripted
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
    names = ("started", "ok", "failed", "rejected", "fallback", "shared")
    shown = {name: getattr(seen, name) for name in names} | seen.outcomes
    return {name: number for name, number in shown.items() if number}


def prices(**settings):
    return tidegate.guard("prices", attempts=1, breaker=None, **settings)


# What is remembered.


def test_a_memory_forgets_what_is_too_old_and_what_is_longest_unused():
    memory = Memory(2.0, 2)
    memory.keep(0, "a", 1)
    memory.keep(SECOND, "b", 2)
    assert memory.find(2 * SECOND, "a").value == 1
    assert memory.find(2 * SECOND + 1, "a") is None
    assert len(memory) == 1
    memory.keep(2 * SECOND, "c", 3)
    memory.find(2 * SECOND, "b")
    memory.keep(2 * SECOND, "d", 4)
    assert memory.find(2 * SECOND, "c") is None
    assert memory.find(2 * SECOND, "b").value == 2


@pytest.mark.parametrize("age", [0, -1, float("nan"), True, 4e7])
def test_an_age_that_is_none_is_refused(age):
    with pytest.raises(SettingsError, match="max_age is above 0"):
        prices().stale(age)(len)


@pytest.mark.parametrize("entries", [0, -1, True, 1.5])
def test_a_number_of_entries_that_is_none_is_refused(entries):
    with pytest.raises(SettingsError, match="entries is a whole number"):
        prices().stale(1.0, entries=entries)(len)


def test_a_stream_has_no_last_answer():
    def items():
        yield 1

    with pytest.raises(SettingsError, match="a stream has no last answer"):
        prices().stale(1.0)(items)


# What is answered.


def test_an_error_and_a_refusal_are_answered_by_what_was_last_said(clock):
    guard = prices()
    ask = guard.stale(60.0)(scripted("new", ConnectionError, TimeoutError).call)
    assert ask("eur") == "new"
    clock.advance(10)
    with tidegate.degradation() as seen:
        assert ask("eur") == "new"
    assert (seen.names, seen.age("prices")) == (("prices",), 10.0)
    clock.advance(20)
    with tidegate.degradation() as seen, refusing(guard):
        assert ask("eur") == "new"
    assert seen.age("prices") == 30.0
    assert counts(guard) == {"started": 3, "ok": 1, "fallback": 2, "success": 1, "failure": 1}


def test_it_is_no_cache(clock):
    ask = prices().stale(60.0)(scripted(1, 2, 3).call)
    with tidegate.degradation() as seen:
        assert [ask(), ask(), ask()] == [1, 2, 3]
    assert not seen


def test_what_is_too_old_or_of_other_arguments_is_no_answer(clock):
    guard = prices()
    ask = guard.stale(60.0)(scripted("new", ConnectionError, ConnectionError).call)
    ask("eur", to="usd")
    with pytest.raises(ConnectionError):
        ask("eur", to="gbp")
    clock.advance(61)
    with pytest.raises(ConnectionError):
        ask("eur", to="usd")
    assert counts(guard) == {"started": 3, "ok": 1, "failed": 2, "success": 1, "failure": 2}


def test_a_mistake_of_the_caller_is_not_hidden():
    ask = prices().stale(60.0)(scripted("new", TypeError).call)
    ask()
    with pytest.raises(TypeError):
        ask()


def test_a_key_says_what_answers_are_kept_by():
    ask = prices().stale(60.0, key=lambda query: query["id"])(scripted("new", ConnectionError).call)
    assert ask({"id": 1, "trace": "a"}) == ask({"id": 1, "trace": "b"}) == "new"


def test_arguments_without_a_hash_are_refused_with_what_to_do():
    ask = prices().stale(60.0)(scripted("never").call)
    with pytest.raises(TypeError, match=r"prices: .* give stale\(\) a key"):
        ask({"id": 1})


def test_two_functions_never_share_an_answer():
    stale = prices().stale(60.0)
    assert stale(scripted("a").call)() == "a"
    with pytest.raises(ConnectionError):
        stale(scripted(ConnectionError).call)()


def test_what_is_judged_bad_is_not_kept_and_is_replaced_by_what_is_good():
    def judge(status):
        return Verdict(Outcome.OVERLOADED) if status == 503 else None

    guard = prices().options(judge=judge)
    ask = guard.stale(60.0)(scripted(503, 200, 503).call)
    assert [ask(), ask(), ask()] == [503, 200, 200]


def test_the_guard_s_own_fallback_answers_where_nothing_is_kept():
    guard = prices(fallback=lambda: "nothing")
    ask = guard.stale(60.0)(scripted(ConnectionError, "new", ConnectionError).call)
    with tidegate.degradation() as seen:
        assert [ask(), ask(), ask()] == ["nothing", "new", "new"]
    assert seen.names == ("prices",)
    assert counts(guard)["fallback"] == 2


def test_observed_nothing_is_answered_for_it():
    guard = prices().options(mode="observe")
    ask = guard.stale(60.0)(scripted("new", ConnectionError).call)
    assert ask() == "new"
    with pytest.raises(ConnectionError):
        ask()


# One call at a time.


class Crowd:
    """Threads that ask the same while a first call is out; it ends when all of them wait for it.

    `sent` is how many calls were made, `answers` what each thread got, `degraded` who was told so.
    """

    def __init__(self, guard, monkeypatch, *steps):
        self.sent = 0
        self.answers, self.degraded = {}, set()
        self.is_out, self.may_end = threading.Event(), threading.Event()
        self._steps, self._joined = iter(steps), threading.Semaphore(0)
        self.ask = guard.stale(60.0)(self.dependency)
        join = Stale.join

        def counted(stale, *args):
            flight = join(stale, *args)
            self._joined.release()
            return flight

        monkeypatch.setattr(Stale, "join", counted)

    def dependency(self):
        self.sent += 1
        step = next(self._steps)
        if self.sent == 1:
            self.is_out.set()
            self.may_end.wait()
        if isinstance(step, BaseException):
            raise step
        return step

    def come(self, name, deadline=60.0):
        try:
            with tidegate.degradation() as seen, tidegate.deadline(deadline):
                self.answers[name] = self.ask()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.answers[name] = error
        if seen:
            self.degraded.add(name)

    def gather(self, *names, **options):
        """The first of them asks, the others come while it is out."""
        threads = [threading.Thread(target=self.come, args=(n,), kwargs=options) for n in names]
        threads[0].start()
        self.is_out.wait()
        for thread in threads[1:]:
            thread.start()
        for _ in threads:
            self._joined.acquire()
        self.may_end.set()
        for thread in threads:
            thread.join()


def test_whoever_asks_the_same_waits_for_the_answer(monkeypatch):
    guard = prices()
    crowd = Crowd(guard, monkeypatch, "new")
    crowd.gather("a", "b", "c")
    assert crowd.sent == 1
    assert crowd.answers == dict.fromkeys("abc", "new")
    assert not crowd.degraded
    assert counts(guard) == {"started": 3, "ok": 3, "shared": 2, "success": 1}


def test_whoever_asks_the_same_shares_the_error(monkeypatch):
    guard = prices()
    crowd = Crowd(guard, monkeypatch, ConnectionError("down"))
    crowd.gather("a", "b", "c")
    assert {str(error) for error in crowd.answers.values()} == {"down"}
    assert counts(guard) == {"started": 3, "failed": 3, "shared": 2, "failure": 1}


def test_whoever_asks_the_same_shares_the_stale_answer_and_is_told(monkeypatch, clock):
    guard = prices()
    crowd = Crowd(guard, monkeypatch, "first", ConnectionError())
    crowd.may_end.set()
    crowd.come("before")
    crowd._joined.acquire()
    crowd.is_out.clear()
    crowd.may_end.clear()
    crowd.sent = 0
    clock.advance(5)
    crowd.gather("a", "b", "c")
    assert crowd.answers == dict.fromkeys(["before", "a", "b", "c"], "first")
    assert crowd.degraded == {"a", "b", "c"}
    assert counts(guard)["fallback"] == 3


def test_a_call_that_was_interrupted_speaks_for_nobody_else(monkeypatch):
    guard = prices()
    crowd = Crowd(guard, monkeypatch, KeyboardInterrupt(), "new", "new")
    crowd.gather("a", "b", "c")
    assert isinstance(crowd.answers.pop("a"), KeyboardInterrupt)
    assert crowd.answers == {"b": "new", "c": "new"}


def test_a_call_that_hangs_is_waited_for_no_longer_than_an_attempt_may_take(clock):
    stale = Stale(prices(timeout=2.0), Memory(60.0, 10))
    first, second, third = (stale.asked((), {}) for _ in range(3))
    hanging = stale.join(first, object)
    clock.advance(1.5)
    assert stale.join(second, object) is hanging
    assert stale.wait(hanging) == 0.5
    clock.advance(0.5)
    assert stale.wait(hanging) == 0
    taken_over = stale.join(second, object)
    assert taken_over.asked is second
    stale.land(hanging)  # at last; it must not end the other
    assert stale.join(third, object) is taken_over


def test_whoever_has_no_time_left_takes_what_is_kept_or_gives_up(clock):
    guard = prices(timeout=10.0)
    stale = Stale(guard, Memory(60.0, 10))
    stale.memory.keep(0, ("known",), "old")
    with tidegate.deadline(1.0):
        asked = stale.asked(("known",), {})
        assert stale.wait(stale.join(stale.asked((), {}), object)) == 1.0
        clock.advance(1.0)
        assert stale.is_too_late()
        with tidegate.degradation() as seen:
            assert stale.give_up(asked) == "old"
        assert seen.age("prices") == 1.0
        with pytest.raises(DeadlineExceeded):
            stale.give_up(stale.asked((), {}))
    assert not stale.is_too_late()
    assert counts(guard) == {"started": 2, "rejected": 1, "fallback": 1, "shared": 2}
