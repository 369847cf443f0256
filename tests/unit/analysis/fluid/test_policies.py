"""The fluid twins of the policies, told in steps: the same laws as in `core`, for masses."""

import pytest

from tidegate.analysis.fluid.policies import Bucket, Budget, Circuit, Gate, Throttle, waits
from tidegate.settings import policies as settings
from tidegate.units import MILLISECOND, SECOND

STEP = 0.1  # seconds


def gaps(backoff: settings.Backoff | None, retry: int, *, blur: bool = True) -> object:
    return list(waits(backoff, retry, STEP, blur=blur))


def test_no_backoff_is_no_wait() -> None:
    assert gaps(None, 1) == [(0, 1.0)]


def test_a_jittered_wait_is_two_and_a_plain_one_is_one() -> None:
    full = settings.Backoff(base=4 * SECOND, max=SECOND * 8)
    assert gaps(full, 1) == [(10, 0.5), (30, 0.5)]
    assert gaps(full, 3) == [(20, 0.5), (60, 0.5)]  # doubled, and then at most 8 s
    assert gaps(full, 1, blur=False) == [(20, 1.0)]
    assert gaps(settings.Backoff(base=4 * SECOND, jitter="equal"), 1) == [(25, 0.5), (35, 0.5)]
    assert gaps(settings.Backoff(base=4 * SECOND, jitter="none"), 1) == [(40, 1.0)]


def test_a_decorrelated_wait_goes_by_the_mean_of_those_before() -> None:
    decorrelated = settings.Backoff(base=4 * SECOND, max=20 * SECOND, jitter="decorrelated")
    assert gaps(decorrelated, 1) == [(60, 0.5), (100, 0.5)]  # 4 s to 12 s
    assert gaps(decorrelated, 2) == [(80, 0.5), (160, 0.5)]  # 4 s to 20 s, which 3 x 8 s exceeds
    assert gaps(decorrelated, 9) == [(80, 0.5), (160, 0.5)]


def test_a_wait_below_a_step_is_none() -> None:
    assert gaps(settings.Backoff(base=50 * MILLISECOND), 1) == [(0, 1.0)]


def test_a_budget_saves_a_share_of_a_window() -> None:
    budget = Budget(settings.Budget(ratio=0.1), hosts=1, dt=STEP)
    for _ in range(1000):
        budget.step()
        budget.deposit(10)  # 100 a second: about 1,000 in the window
    assert budget.withdraw(500) == pytest.approx(100, rel=0.02)
    assert budget.withdraw(1) == 0
    budget.deposit(10)
    assert budget.withdraw(5) == pytest.approx(1)


def test_a_rare_caller_keeps_a_token_for_each_host() -> None:
    budget = Budget(settings.Budget(ratio=0.1), hosts=2, dt=STEP)
    for _ in range(30):
        budget.deposit(1)
    assert budget.withdraw(9) == pytest.approx(3)
    assert Budget(settings.Budget(ratio=0), hosts=2, dt=STEP).withdraw(1) == 0


def test_a_throttle_sends_twice_what_is_accepted() -> None:
    throttle = Throttle(settings.Throttle(), hosts=2, dt=STEP)
    assert throttle.take(10) == 10
    for _ in range(3000):
        throttle.step()
        sent = throttle.take(100)  # 1,000 a second, of which 200 are accepted
        throttle.release(20, accepted=True)
        throttle.release(sent - 20, accepted=False)
    assert sent == pytest.approx(40, rel=0.01)
    assert throttle.share == pytest.approx(0.6, rel=0.01)


def test_a_throttle_lets_some_through_at_the_worst_and_waits_for_its_volume() -> None:
    throttle = Throttle(settings.Throttle(), hosts=2, dt=STEP)
    throttle.release(19, accepted=False)
    assert throttle.share == 0
    throttle.release(1, accepted=False)
    assert throttle.share == 0.9


def test_a_bucket_passes_its_rate_and_its_burst_once() -> None:
    bucket = Bucket(settings.RateLimit(rate=50, burst=20), STEP)
    assert bucket.take(100) == 20
    bucket.step()
    assert bucket.take(100) == 5
    bucket.step()
    assert bucket.take(3) == 3


def test_a_bucket_holds_at_least_a_step() -> None:
    assert Bucket(settings.RateLimit(rate=50, burst=1), STEP).take(100) == 5
    assert Bucket(settings.RateLimit(rate=50, burst=20), STEP, share=0.5).take(100) == 10


def test_a_gate_counts_what_is_out() -> None:
    gate = Gate(settings.Limit(max=10), hosts=2, dt=STEP)
    assert gate.take(30) == 20
    assert gate.take(1) == 0
    gate.release(1, 0, 5, trouble=True)
    assert gate.take(9) == 5
    assert gate.limit == 20


def test_a_gate_is_used_several_times_in_a_step() -> None:
    gate = Gate(settings.Limit(max=10), hosts=1, dt=STEP)
    gate.turns = 4
    assert gate.take(100) == 40


def test_an_adaptive_gate_grows_by_one_and_is_cut_once_a_round_trip() -> None:
    gate = Gate(
        settings.Limit(adaptive=settings.Adaptive(start=10, decrease=0.5)), hosts=1, dt=STEP
    )
    gate.take(10)
    gate.release(1, 0, 10, trouble=False)
    assert gate.limit == 11
    gate.take(11)
    gate.release(2, 1, 5, trouble=True)
    assert gate.limit == 5.5
    gate.release(3, 1, 6, trouble=True)  # sent before the cut: it says nothing new
    assert gate.limit == 5.5


def test_an_idle_gate_does_not_grow() -> None:
    gate = Gate(settings.Limit(adaptive=settings.Adaptive(start=10)), hosts=1, dt=STEP)
    gate.take(2)
    gate.release(1, 0, 2, trouble=False)
    assert gate.limit == 10


@pytest.mark.parametrize("law", ["gradient", "vegas"])
def test_a_gate_by_latency_follows_the_law_of_each_host(law: str) -> None:
    given = {"gradient": settings.Gradient, "vegas": settings.Vegas}[law](start=10, samples=5)
    gate = Gate(settings.Limit(**{law: given}), hosts=2, dt=STEP)
    assert gate.limit == 20

    def rounds(start: int, steps: int, times: int) -> float:
        for number in range(times):
            now = start + 100 * number
            gate.take(1000)
            gate.release(now, now - steps, gate.limit, trouble=False)
        return gate.limit

    grown = rounds(100, 1, 30)
    assert grown > 40
    slowed = rounds(10_000, 10, 20)
    assert slowed < grown
    gate.take(1000)
    gate.release(20_000, 19_999, gate.limit, trouble=True)
    assert gate.limit < slowed


def test_a_gate_by_latency_hears_once_of_a_round_of_trouble() -> None:
    given = settings.Limit(gradient=settings.Gradient(start=100, samples=5))
    gate = Gate(given, hosts=1, dt=STEP)
    gate.take(100)
    gate.release(9, 3, 50, trouble=True)
    assert gate.limit == 90
    gate.release(10, 3, 50, trouble=True)  # sent before the round began
    assert gate.limit == 90
    gate.turns = 10.0
    gate.release(10, 10, 5, trouble=False)  # within the step, so in a hundredth of a second
    assert gate.limit == 90
    gate.release(10, 10, 5, trouble=False)
    assert gate.limit == 90


def breaker() -> Circuit:
    said = settings.Breaker(
        window=SECOND, volume=10, open_for=SECOND, probes=3, lease=SECOND, ramp=2 * SECOND
    )
    return Circuit(said, hosts=1, dt=STEP)


def opened() -> Circuit:
    circuit = breaker()
    circuit.release(5, 1, 6, ok=True)
    circuit.release(5, 1, 6, ok=False)
    return circuit


def test_a_circuit_opens_at_its_share_and_volume() -> None:
    circuit = breaker()
    circuit.release(1, 1, 9, ok=False)
    assert circuit.state == "closed"  # nine are too few to tell
    circuit.succeed(20)
    circuit.release(1, 1, 2, ok=False)
    assert circuit.state == "closed"
    assert opened().state == "open"
    assert opened().take(6, 10) == 0


def test_a_circuit_forgets() -> None:
    circuit = breaker()
    circuit.release(1, 1, 9, ok=False)
    for now in range(2, 40):
        circuit.step(now)
    circuit.release(40, 40, 5, ok=False)
    assert circuit.state == "closed"


def test_probes_that_succeed_close_it_over_a_ramp() -> None:
    circuit = opened()
    circuit.step(14)
    assert circuit.state == "open"
    circuit.step(15)
    assert circuit.state == "half-open"
    assert (circuit.take(15, 10), circuit.take(15, 10)) == (3, 0)
    circuit.release(16, 4, 100, ok=False)  # sent before: says nothing
    circuit.release(16, 15, 3, ok=True)
    assert circuit.state == "ramping"
    assert circuit.take(16, 10) == pytest.approx(1)
    assert circuit.take(26, 10) == pytest.approx(5.5)
    circuit.step(36)
    assert circuit.take(36, 10) == 10


def test_without_a_ramp_it_closes_at_once() -> None:
    said = settings.Breaker(volume=10, open_for=SECOND, probes=3, ramp=0)
    circuit = Circuit(said, hosts=1, dt=STEP)
    circuit.release(5, 1, 20, ok=False)
    circuit.step(15)
    circuit.take(15, 3)
    circuit.release(16, 15, 3, ok=True)
    assert (circuit.state, circuit.take(16, 10)) == ("closed", 10)


def test_a_ramp_shorter_than_a_step_lets_nothing_negative_through() -> None:
    said = settings.Breaker(volume=10, open_for=SECOND, probes=3, ramp=30 * MILLISECOND)
    circuit = Circuit(said, hosts=1, dt=STEP)
    circuit.release(5, 1, 20, ok=False)
    circuit.step(15)
    circuit.take(15, 3)
    circuit.release(16, 15, 3, ok=True)
    assert circuit.state == "ramping"
    assert circuit.take(16, 10) == pytest.approx(1)


def test_probes_that_fail_or_hang_open_it_again() -> None:
    failing, hanging = opened(), opened()
    for circuit in (failing, hanging):
        circuit.step(15)
        circuit.take(15, 3)
    failing.release(16, 15, 3, ok=False)
    assert failing.state == "open"
    hanging.step(24)
    assert hanging.state == "half-open"
    hanging.step(25)
    assert hanging.state == "open"
