"""Any sequence of calls that are hedged: what always holds, and what they are without hedges."""

from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate.core.execution import ATTEMPT, COMPLETE, LISTEN, REJECT, WAIT, Execution, Step
from tidegate.core.hedge import Race
from tidegate.core.outcome import IGNORED, SUCCESS, Outcome
from tidegate.core.pipeline import Pipeline
from tidegate.settings.policies import Backoff, Breaker, Budget, Hedge, Limit
from tidegate.settings.system import Call
from tidegate.units import MILLISECOND, SECOND

MS = MILLISECOND
SETTINGS = st.builds(
    Call,
    attempts=st.integers(1, 3),
    timeout=st.none() | st.just(300 * MS),
    deadline=st.none() | st.just(500 * MS),
    backoff=st.none() | st.builds(Backoff, base=st.sampled_from([0, 50 * MS])),
    retry_on=st.sampled_from([("timeout", "failure", "overloaded"), ("timeout",), ()]),
    budget=st.none() | st.builds(Budget, ratio=st.sampled_from([0.0, 0.5, 3.0])),
    breaker=st.none() | st.builds(Breaker, volume=st.integers(1, 5), open_for=st.just(300 * MS)),
    limit=st.none() | st.builds(Limit, max=st.integers(1, 5)),
    hedge=st.builds(Hedge, after=st.just(100 * MS), max=st.integers(1, 3)),
)


class RaceMachine(RuleBasedStateMachine):
    """Several calls at a time; `out` is kept here as well, by call and leg."""

    @initialize(settings=SETTINGS)
    def begin(self, settings: Call) -> None:
        self.settings = settings
        self.pipeline = Pipeline(settings, Random(7))
        self.now = 0
        self.calls: list[Race] = []
        self.out: list[set[int]] = []
        self.waiting: list[Race] = []
        self.sent = self.first = 0

    def took(self, call: Race, step: Step) -> None:
        index = self.calls.index(call)
        if step is ATTEMPT:
            self.out[index].add(call.sent)
            self.sent += 1
        elif step is WAIT:
            assert not self.out[index]
            self.waiting.append(call)
        elif step is LISTEN:
            assert self.out[index]
        else:
            assert step in {COMPLETE, REJECT}
            self.out[index].clear()
        assert call.out == len(self.out[index])
        assert call._check()

    @rule(step=st.integers(0, 400 * MS))
    def wait(self, step: int) -> None:
        self.now += step

    @rule(depth=st.integers(0, 1))
    def call(self, depth: int) -> None:
        race = Race(self.pipeline, None, depth)
        self.calls.append(race)
        self.out.append(set())
        step = race.start(self.now)
        self.first += step is ATTEMPT
        self.took(race, step)

    @rule(data=st.data())
    def hedge(self, data: st.DataObject) -> None:
        due = [call for call in self.calls if call.hedge_at is not None]
        if due:
            call = data.draw(st.sampled_from(due))
            assert call.hedge_at is not None
            self.now = max(self.now, call.hedge_at)
            self.took(call, call.hedge(self.now))

    @rule(data=st.data(), outcome=st.sampled_from(Outcome))
    def end(self, data: st.DataObject, outcome: Outcome) -> None:
        legs = [(index, leg) for index, out in enumerate(self.out) for leg in out]
        if legs:
            index, leg = data.draw(st.sampled_from(sorted(legs)))
            call = self.calls[index]
            self.out[index].discard(leg)
            step = call.settle(self.now, leg, outcome)
            if outcome in {SUCCESS, IGNORED}:
                assert step is COMPLETE
            self.took(call, step)

    @rule(data=st.data())
    def wake(self, data: st.DataObject) -> None:
        if self.waiting:
            call = data.draw(st.sampled_from(self.waiting))
            self.waiting.remove(call)
            self.now = max(self.now, call.execution.until)
            self.took(call, call.wake(self.now))

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        busy = [call for call in self.calls if call.out]
        if busy:
            call = data.draw(st.sampled_from(busy))
            self.took(call, call.cancel(self.now))

    @invariant()
    def the_limit_counts_each_leg_that_is_out(self) -> None:
        if hasattr(self, "pipeline") and self.pipeline.limiter is not None:
            assert self.pipeline.limiter.inflight == sum(map(len, self.out))

    @invariant()
    def every_attempt_but_the_first_of_a_call_took_a_token(self) -> None:
        if hasattr(self, "pipeline"):
            assert self.pipeline.budget is not None
            assert self.sent - self.first <= self.pipeline.budget.snapshot(self.now).retried


TestRaceMachine = pytest.mark.slow(RaceMachine.TestCase)  # a hundred runs of fifty steps


class QuickRaceMachine(RuleBasedStateMachine):
    """Where every answer comes before a hedge is due, a race is an execution, step by step."""

    @initialize(settings=SETTINGS)
    def begin(self, settings: Call) -> None:
        # The race has a budget in any case; its twin is given the same.
        pipelines = [Pipeline(settings, Random(7)) for _ in range(2)]
        self.race, self.twin = Race(pipelines[0]), Execution(pipelines[1])
        self.now = SECOND
        self.step = self.both(self.race.start(self.now), self.twin.start(self.now))

    def both(self, step: Step, twin: Step) -> Step:
        assert step is twin
        execution = self.race.execution
        for name in ("number", "outcome", "stopped_by", "until", "rejection", "deadline"):
            assert getattr(execution, name) == getattr(self.twin, name)
        if step is ATTEMPT:
            assert self.race.timeout == self.twin.timeout
        return step

    @rule(
        took=st.integers(0, 99 * MS),
        outcome=st.sampled_from(Outcome),
        asked=st.sampled_from([0, 0, SECOND, 30 * SECOND]),
    )
    def goes_on(self, took: int, outcome: Outcome, asked: int) -> None:
        self.now += took
        if self.step is ATTEMPT:
            self.step = self.both(
                self.race.settle(self.now, self.race.sent, outcome, asked),
                self.twin.settle(self.now, outcome, asked),
            )
        elif self.step is WAIT:
            self.now = max(self.now, self.twin.until)
            self.step = self.both(self.race.wake(self.now), self.twin.wake(self.now))
        else:
            self.race = Race(self.race.execution.pipeline)
            self.twin = Execution(self.twin.pipeline)
            self.step = self.both(self.race.start(self.now), self.twin.start(self.now))


TestQuickRaceMachine = pytest.mark.slow(QuickRaceMachine.TestCase)
