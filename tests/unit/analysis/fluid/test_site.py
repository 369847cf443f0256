"""One call of one caller as a fluid: attempts, timeouts, waits, refusals, in steps of 0.1 s."""

import pytest

from tidegate.analysis.fluid.flow import NEVER, Caller, Packet, Parts, Receiver, Target
from tidegate.analysis.fluid.site import Site
from tidegate.core.outcome import FAILURE, OVERLOADED, SUCCESS, Outcome
from tidegate.settings.policies import Backoff, Breaker, Budget, Limit, RateLimit, Throttle
from tidegate.settings.system import Call, Time
from tidegate.units import MILLISECOND, SECOND

STEP = 0.1


class Callee(Receiver):
    """Answers everything with what the test says, or not at all."""

    def __init__(self) -> None:
        super().__init__(parallel=False)
        self.says: Outcome | None = None
        self.got: list[tuple[int, float, int]] = []
        self.left: list[int] = []
        self.packets: list[Packet] = []

    def arrive(self, now: int, packet: Packet) -> None:
        self.got.append((now, round(packet.open, 9), packet.number))
        self.packets.append(packet)
        if self.says is not None:
            assert packet.batch is not None
            packet.batch.slot.site.settle(now, packet, packet.open, self.says)

    def abandon(self, now: int, packet: Packet) -> None:
        self.left.append(now)


class Door(Target):
    def __init__(self) -> None:
        self.callee = Callee()
        self.clear = False

    def is_clear(self) -> bool:
        return self.clear

    def absorb(self, mass: float) -> None:
        pass

    def spread(self) -> list[tuple[Receiver, float]]:
        return [(self.callee, 1.0)]


class Desk(Caller):
    """One caller with one call, and what came of it."""

    def __init__(self, **said: object) -> None:
        super().__init__(parallel=False)
        self.door = Door()
        call = Call(**{"timeout": SECOND, **said})  # type: ignore[arg-type]
        self.site = Site("a", call, self.door, hosts=1, dt=STEP, answer=0.01)
        self.add(self.site, 1.0)
        self.ended: list[tuple[int, float, bool]] = []

    def finish(self, now: int, parts: Parts, *, ok: bool) -> None:
        self.ended.append((now, round(sum(mass for _, mass in parts), 9), ok))

    def run(self, until: int, *, mass: float = 10.0) -> "Desk":
        for now in range(until):
            self.remember()
            if now == 0:
                self.begin([(Packet(None, 1, mass, 0, NEVER, 1.0), mass)])
                self.flush(now)
            self.site.tick(now)
            self.hear(now)
            self.site.end_step()
        return self

    @property
    def got(self) -> list[tuple[int, float, int]]:
        return self.door.callee.got


def test_an_answer_ends_the_call() -> None:
    desk = Desk(attempts=3)
    desk.door.callee.says = SUCCESS
    desk.run(30)
    assert desk.got == [(0, 10, 1)]
    assert desk.ended == [(0, 10, True)]
    assert desk.site.quick


def test_silence_is_tried_again_at_each_timeout() -> None:
    desk = Desk(attempts=3).run(40)
    assert desk.got == [(0, 10, 1), (10, 10, 2), (20, 10, 3)]
    assert desk.ended == [(30, 10, False)]
    assert desk.door.callee.left == [10, 20, 30]
    assert not desk.site.quick
    assert desk.site.made == 30


def test_a_late_answer_finds_nobody() -> None:
    desk = Desk().run(11)
    packet = desk.door.callee.packets[0]
    desk.site.settle(11, packet, 10, SUCCESS)
    assert desk.ended == [(10, 10, False)]


def test_only_what_has_not_been_answered_is_tried_again() -> None:
    desk = Desk(attempts=2)
    desk.run(5)
    desk.site.settle(5, desk.door.callee.packets[0], 4, SUCCESS)
    for now in range(5, 30):
        desk.site.tick(now)
        desk.site.end_step()
        desk.remember()
        desk.hear(now)
    assert desk.got == [(0, 10, 1), (10, 6, 2)]
    assert sum(mass for _, mass, ok in desk.ended if ok) == 4


def test_what_is_refused_waits_at_least_a_step() -> None:
    desk = Desk(attempts=3)
    desk.door.callee.says = OVERLOADED
    desk.run(10)
    assert desk.got == [(0, 10, 1), (1, 10, 2), (2, 10, 3)]
    assert desk.ended == [(2, 10, False)]


def test_only_the_given_reasons_are_repeated() -> None:
    desk = Desk(attempts=3, retry_on=("timeout",))
    desk.door.callee.says = FAILURE
    assert desk.run(5).ended == [(0, 10, False)]


def test_backoff_after_a_timeout() -> None:
    backoff = Backoff(base=400 * MILLISECOND, factor=2.0, jitter="none")
    desk = Desk(attempts=3, backoff=backoff).run(60)
    assert desk.got == [(0, 10, 1), (14, 10, 2), (32, 10, 3)]


def test_jitter_parts_the_retries() -> None:
    desk = Desk(attempts=2, backoff=Backoff(base=4 * SECOND)).run(60)
    assert desk.got == [(0, 10, 1), (20, 5, 2), (40, 5, 2)]


def test_with_many_attempts_it_does_not() -> None:
    desk = Desk(attempts=5, backoff=Backoff(base=4 * SECOND, factor=1.0)).run(70)
    assert desk.got == [(0, 10, 1), (30, 10, 2), (60, 10, 3)]


def test_a_budget_pays_for_some_and_the_rest_has_failed() -> None:
    desk = Desk(attempts=2, budget=Budget(ratio=0.3)).run(30)
    assert desk.got[1][:2] == (10, pytest.approx(3, rel=0.15))
    assert desk.ended[0][0] == 10
    assert sum(mass for _, mass, _ in desk.ended) == pytest.approx(10)


def test_nothing_starts_after_the_deadline_and_the_last_wait_is_cut() -> None:
    desk = Desk(attempts=9, deadline=1500 * MILLISECOND).run(40)
    assert desk.got == [(0, 10, 1), (10, 10, 2)]
    assert desk.ended == [(15, 10, False)]


def test_what_remains_is_passed_on() -> None:
    desk = Desk(attempts=2, propagate=True).run(15)
    assert [packet.deadline for packet in desk.door.callee.packets] == [10, 20]
    assert Desk().run(1).door.callee.packets[0].deadline == NEVER


def test_the_network_takes_its_time_both_ways() -> None:
    desk = Desk(network=Time(constant=100 * MILLISECOND)).run(5)
    assert desk.got == [(2, 10, 1)]
    far = Desk()
    far.site.set_latency(300 * MILLISECOND)
    assert far.run(5).got == [(3, 10, 1)]


def test_a_rate_limit_and_a_limit_of_its_own_end_the_call_unsent() -> None:
    limited = Desk(attempts=3, rate_limit=RateLimit(rate=40, burst=1)).run(3)
    assert limited.got == [(0, 4, 1)]
    assert limited.ended[0] == (0, 6, False)
    gated = Desk(attempts=3, limit=Limit(max=1)).run(3)  # used ten times in a step of 0.1 s
    assert gated.got == [(0, 10, 1)]


def test_an_open_breaker_ends_the_call_unsent() -> None:
    desk = Desk(attempts=4, breaker=Breaker(volume=5, window=SECOND))
    desk.door.callee.says = FAILURE
    desk.run(5)
    assert desk.got == [(0, 10, 1)]  # ten failures open it, and the retry is not let out
    assert desk.ended == [(1, 10, False)]


def test_a_throttle_keeps_back_what_would_be_refused() -> None:
    desk = Desk(attempts=4, throttle=Throttle(volume=1, most=0.5))
    desk.door.callee.says = OVERLOADED
    desk.run(3)
    # Ten are refused. Of their retries half is kept back, which ends those calls; and so on.
    assert desk.got == [(0, 10, 1), (1, 5, 2), (2, 2.5, 3)]
    assert desk.ended == [(1, 5, False), (2, 2.5, False)]
    desk.door.clear = True
    desk.site.look()
    assert not desk.site.clear


def test_an_error_is_an_accept_and_so_is_what_passes_by() -> None:
    desk = Desk(attempts=2, throttle=Throttle(volume=1))
    desk.door.callee.says = FAILURE
    desk.run(3)
    assert desk.got == [(0, 10, 1), (1, 10, 2)]
    desk.door.clear = True
    desk.site.look()
    assert desk.site.clear
    desk.site.absorb(5, 5)
    desk.site.look()
    assert desk.site.clear


def test_whether_the_way_is_clear() -> None:
    desk = Desk()
    desk.site.look()
    assert not desk.site.clear
    desk.door.clear = True
    desk.site.look()
    assert desk.site.clear
    desk.site.set_latency(SECOND)
    desk.site.look()
    assert not desk.site.clear
    for said in ({"limit": Limit(max=9)}, {"rate_limit": RateLimit(rate=9)}):
        guarded = Desk(**said)
        guarded.door.clear = True
        guarded.site.look()
        assert not guarded.site.clear


def test_what_passes_by_feeds_the_budget() -> None:
    desk = Desk(attempts=2, budget=Budget(ratio=0.5))
    desk.site.pass_by([(Packet(None, 1, 8.0, 0, NEVER, 1.0), 8.0)], 1.0)
    assert desk.site.made == 8
    desk.run(30, mass=2.0)
    assert desk.got[1][1] == 2  # of the five tokens saved
