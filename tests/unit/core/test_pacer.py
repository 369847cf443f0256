"""A budget: up by a step each second, down by one cut in a pause, and never kept over a gate."""

import pytest

from tidegate.core.pacer import Pacer
from tidegate.settings import spool as settings
from tidegate.units import MILLISECOND, SECOND

MS = MILLISECOND
LIVE = 1_000_000.0
BASE = 5 * MS


def pacer(speed: settings.Speed = "normal", cap: float = 1.0) -> Pacer:
    pacer = Pacer(settings.Pace(speed=speed, cap=cap))
    pacer.on_live(LIVE)
    return pacer


def windows(pacer: Pacer, start: int, count: int, latency: int = BASE, **of: bool) -> int:
    for second in range(start, start + count):
        pacer.on_window(second * SECOND, latency, BASE, 0, **of)
    return start + count


def test_it_begins_at_a_share_of_the_live_rate_and_grows_by_a_share_each_second() -> None:
    it = pacer()
    assert it.rate() == pytest.approx(0.01 * LIVE)
    windows(it, 0, 10)
    assert it.rate() == pytest.approx(0.21 * LIVE)


def test_it_never_passes_its_cap_and_follows_the_live_rate_down() -> None:
    it = pacer(cap=0.5)
    windows(it, 0, 100)
    assert it.rate() == 0.5 * LIVE
    assert it.is_at_cap()
    it.on_live(LIVE / 2)
    assert it.rate() == 0.25 * LIVE


def test_a_slow_sink_cuts_it_once_in_a_pause() -> None:
    it = pacer()
    second = windows(it, 0, 40)
    before = it.rate()
    windows(it, second, 5, latency=61 * MS)
    assert it.rate() == pytest.approx(0.85 * before)
    it.on_window((second + 5) * SECOND, 61 * MS, BASE, 0)
    assert it.rate() == pytest.approx(0.85**2 * before)
    assert it.snapshot().cuts == 2


@pytest.mark.parametrize(("speed", "times"), [("gentle", 6), ("normal", 12), ("fast", 20)])
def test_how_slow_is_too_slow_is_its_speed(speed: settings.Speed, times: int) -> None:
    it = pacer(speed=speed)
    it.on_window(0, times * BASE, BASE, 0)
    assert not it.has_cut
    it.on_window(SECOND, times * BASE + 1, BASE, 0)
    assert it.has_cut


def test_errors_cut_deeper() -> None:
    it = pacer()
    second = windows(it, 0, 40)
    before = it.rate()
    it.on_window(second * SECOND, BASE, BASE, 1)
    assert it.rate() == pytest.approx(0.6 * before)


def test_it_never_falls_below_its_start() -> None:
    it = pacer()
    for pause in range(20):
        it.on_window(pause * 5 * SECOND, BASE, BASE, 1)
    assert it.rate() == 0.01 * LIVE


@pytest.mark.parametrize(("latency", "used"), [(BASE, False), (None, True)])
def test_it_does_not_grow_on_what_nobody_has_tried(latency: int | None, used: bool) -> None:
    it = pacer()
    for second in range(100):
        it.on_window(second * SECOND, latency, BASE, 0, used=used)
    assert it.rate() == 0.01 * LIVE


def test_a_long_silence_earns_no_growth() -> None:
    it = pacer()
    it.on_window(0, BASE, BASE, 0)
    it.on_window(3600 * SECOND, BASE, BASE, 0)
    assert it.rate() == pytest.approx((0.01 + 0.02 + 0.04) * LIVE)


def test_a_gate_that_closes_leaves_nothing_of_it() -> None:
    it = pacer()
    windows(it, 0, 40)
    it.reset()
    assert it.rate() == 0.01 * LIVE
    assert not it.has_cut


def test_who_takes_over_goes_on_from_the_last_word_within_its_own_bounds() -> None:
    it = pacer()
    it.adopt(0.7 * LIVE)
    assert it.rate() == 0.7 * LIVE
    it.adopt(7 * LIVE)
    assert it.rate() == LIVE
    it.adopt(1.0)
    assert it.rate() == 0.01 * LIVE


def test_without_live_records_what_was_left_behind_leaves_all_the_same() -> None:
    it = Pacer(settings.Pace())
    windows(it, 0, 100)
    assert it.rate() == 100_000
    it.on_live(0.0)
    assert it.rate() == 100_000


def test_no_baseline_no_slowness() -> None:
    it = pacer()
    it.on_window(0, SECOND, None, 0)
    assert not it.has_cut
