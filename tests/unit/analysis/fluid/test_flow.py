"""How requests go through their calls: in order or together, some of them, and what of it fails."""

from typing import cast

import pytest

from tidegate.analysis.fluid.flow import (
    NEVER,
    Batch,
    Caller,
    Join,
    Packet,
    Parts,
    Receiver,
    Target,
    merged,
    scaled,
)
from tidegate.analysis.fluid.site import Site
from tidegate.settings.system import Call
from tidegate.units import SECOND

STEP = 0.1


class Silence(Receiver):
    """Takes everything and says nothing; a test answers for it."""

    def __init__(self) -> None:
        super().__init__(parallel=False)
        self.got: list[Packet] = []

    def arrive(self, now: int, packet: Packet) -> None:
        self.got.append(packet)

    def abandon(self, now: int, packet: Packet) -> None:
        pass


class Door(Target):
    """One receiver behind no balancer."""

    def __init__(self) -> None:
        self.behind = Silence()
        self.absorbed = 0.0
        self.clear = False

    def is_clear(self) -> bool:
        return self.clear

    def absorb(self, mass: float) -> None:
        self.absorbed += mass

    def spread(self) -> list[tuple[Receiver, float]]:
        return [(self.behind, 1.0)]


class Desk(Caller):
    """A caller that notes what ends."""

    def __init__(self, *, parallel: bool = False) -> None:
        super().__init__(parallel=parallel)
        self.ended = {True: 0.0, False: 0.0}

    def finish(self, now: int, parts: Parts, *, ok: bool) -> None:
        self.ended[ok] += sum(mass for _, mass in parts)

    def call(self, name: str, *, quick: bool = False, **said: object) -> Door:
        door = Door()
        call = Call(**{"timeout": SECOND, **said})  # type: ignore[arg-type]
        site = Site(name, call, door, hosts=1, dt=STEP, answer=0.01)
        site.quick = quick
        self.add(site, call.per_request)
        return door

    def start(self, mass: float, now: int = 0) -> None:
        for slot in self.slots:
            slot.site.look()
        self.begin([(request(mass), mass)])
        self.flush(now)

    def answer(self, door: Door, now: int, share: float = 1.0, *, ok: bool = True) -> None:
        for packet in door.behind.got:
            batch = cast("Batch", packet.batch)
            mass = packet.open * share
            packet.open -= mass
            batch.bring(now, mass if ok else 0.0, 0.0 if ok else mass)
        door.behind.got = [packet for packet in door.behind.got if packet.open > 0]
        self.remember()
        self.hear(now)


def request(mass: float, deadline: int = NEVER) -> Packet:
    packet = Packet(None, 1, mass, 0, NEVER, 1.0)
    packet.deadline = deadline
    return packet


def came(door: Door) -> float:
    return sum(packet.open for packet in door.behind.got)


def test_calls_come_one_after_another() -> None:
    desk = Desk()
    first, second = desk.call("a"), desk.call("b")
    desk.start(10)
    assert (came(first), came(second)) == (10, 0)
    desk.answer(first, 1, 0.4)
    assert came(second) == pytest.approx(4)
    desk.answer(second, 2)
    assert desk.ended[True] == pytest.approx(4)
    desk.answer(first, 3)
    desk.answer(second, 4)
    assert desk.ended[True] == pytest.approx(10)


def test_the_first_required_failure_ends_a_request() -> None:
    desk = Desk()
    first, second = desk.call("a"), desk.call("b")
    desk.start(10)
    desk.answer(first, 1, 0.3, ok=False)
    desk.answer(first, 2)
    assert came(second) == pytest.approx(7)
    assert desk.ended[False] == pytest.approx(3)


def test_an_optional_failure_does_not() -> None:
    desk = Desk()
    first, second = desk.call("a", optional=True), desk.call("b")
    desk.start(10)
    desk.answer(first, 1, ok=False)
    assert came(second) == 10


def test_some_requests_make_a_call_and_the_others_go_on() -> None:
    desk = Desk()
    first, second = desk.call("a", per_request=0.3), desk.call("b")
    desk.start(10)
    desk.flush(0)
    assert (came(first), came(second)) == (pytest.approx(3), pytest.approx(7))


def test_two_and_a_half_calls_are_three_in_a_row_the_last_by_chance() -> None:
    desk = Desk()
    door = desk.call("a", per_request=2.5)
    desk.start(10)
    desk.answer(door, 1)
    assert came(door) == 10
    desk.answer(door, 2)
    assert came(door) == 5
    assert desk.ended[True] == 5


def test_beyond_sixteen_each_stands_for_several() -> None:
    desk = Desk()
    door = desk.call("a", per_request=64.0)
    assert len(desk.slots) == 16
    desk.start(10)
    assert came(door) == 40


def test_a_call_that_nobody_waits_for_holds_nobody_up() -> None:
    desk = Desk()
    log = desk.call("log", optional=True, wait=False)
    desk.start(10)
    assert (came(log), desk.ended[True]) == (10, 10)
    desk.answer(log, 1, ok=False)
    assert desk.ended == {True: 10, False: 0}


def test_together_all_must_be_back() -> None:
    desk = Desk(parallel=True)
    first, second = desk.call("a"), desk.call("b", per_request=0.5)
    desk.start(10)
    assert (came(first), came(second)) == (10, 5)
    desk.answer(first, 1)
    assert desk.ended[True] == pytest.approx(5)  # those who needed only that
    desk.answer(second, 2, 0.5, ok=False)
    assert desk.ended[False] == pytest.approx(2.5)
    desk.answer(second, 3)
    assert desk.ended == {True: pytest.approx(7.5), False: pytest.approx(2.5)}


def test_quick_calls_are_made_together_and_slow_ones_after_them() -> None:
    desk = Desk()
    doors = [desk.call("a", quick=True), desk.call("b", quick=True), desk.call("c")]
    desk.start(10)
    assert [came(door) for door in doors] == [10, 10, 0]
    desk.answer(doors[0], 0)
    assert came(doors[2]) == 0
    desk.answer(doors[1], 0)
    assert came(doors[2]) == 10


def test_a_clear_way_is_passed_by_and_counted() -> None:
    desk = Desk()
    clear, slow = desk.call("a", per_request=0.5), desk.call("b")
    clear.clear = True
    desk.start(10)
    assert (clear.absorbed, came(slow)) == (5, 10)
    slow.clear = True
    desk.start(4)
    assert desk.ended[True] == 4


def test_what_began_and_ended_in_a_step_is_known_to_have_returned() -> None:
    desk = Desk()
    door = desk.call("a")
    desk.start(10, now=5)
    desk.answer(door, 5, 0.5)
    assert desk.returned == pytest.approx(5)
    desk.answer(door, 6)
    assert desk.returned == 0  # that one had begun before


def test_crumbs_wait_for_more_but_not_for_ever() -> None:
    desk = Desk()
    door = desk.call("a")
    desk.start(100)
    desk.answer(door, 1, 0.05)
    assert desk.ended[True] == 0
    desk.answer(door, 2, 0.06)
    assert desk.ended[True] == pytest.approx(10.7)
    desk.answer(door, 3, 0.05)
    for now in range(4, 8):
        desk.remember()
        desk.hear(now)
    assert desk.ended[True] == pytest.approx(10.7 + 89.3 * 0.05)


def test_nothing_is_begun_for_those_whose_deadline_has_passed() -> None:
    desk = Desk()
    desk.told = True
    door = desk.call("a")
    desk.begin([(request(10, deadline=5), 10), (request(3, deadline=9), 3)])
    desk.flush(5)
    assert (came(door), desk.ended[False]) == (3, 10)
    # The batch goes on as long as anybody in it waits.
    assert door.behind.got[0].leaves == 9


def test_a_change_of_calls_per_request() -> None:
    desk = Desk()
    door = Door()
    site = Site("a", Call(timeout=SECOND), door, hosts=1, dt=STEP, answer=0.01)
    desk.add(site, 3.0)
    assert [slot.share for slot in desk.slots] == [1, 0, 0]
    desk.set_calls(site, 2.5)
    assert [slot.share for slot in desk.slots] == [1, 1, 0.5]
    other = Site("b", Call(timeout=SECOND), door, hosts=1, dt=STEP, answer=0.01)
    desk.set_calls(other, 9)  # another's call
    assert [slot.share for slot in desk.slots] == [1, 1, 0.5]


def test_parts_are_merged_packet_by_packet() -> None:
    one, other = request(1), request(1)
    bits = [(one, 1.0), (other, 2.0)] * 4
    assert merged(bits) == [(one, 4.0), (other, 8.0)]
    assert merged(bits[:2]) is not None
    assert scaled([(one, 4.0)], 0.5) == [(one, 2.0)]


def test_a_join_is_the_product_of_its_chances() -> None:
    join = Join([], {0: 1.0, 1: 0.5}, 2)
    join.ok[0] = 0.8
    join.bad[0] = 0.2
    assert join.news() == pytest.approx((0.4, 0.2))
    join.ok[1] = 1.0
    assert join.news() == pytest.approx((0.4, 0))
