"""Which request has been here before, and which only looks like it."""

from tidegate.spooler.door.keeper import Accepted
from tidegate.spooler.door.repeats import REPEATS_MAX, Kept, Repeats, mark

THIS = mark("application/json", b"", b"{}")
KEPT = Kept(1, Accepted(7, "disk"))


def test_the_same_request_has_the_same_answer() -> None:
    repeats = Repeats()
    assert repeats.find("events", "a", THIS) is None
    repeats.remember("events", "a", THIS, KEPT)
    assert repeats.find("events", "a", THIS) == KEPT


def test_another_lane_name_kind_key_or_body_is_another_request() -> None:
    repeats = Repeats()
    repeats.remember("events", "a", THIS, KEPT)
    assert repeats.find("clicks", "a", THIS) is None
    assert repeats.find("events", "b", THIS) is None
    for other in (
        mark("application/x-ndjson", b"", b"{}"),
        mark("application/json", b"{", b"}"),
        mark("application/json", b"k", b"{}"),
        mark("application/json", b"", b"{} "),
    ):
        assert repeats.find("events", "a", other) is None


def test_a_name_that_is_used_again_means_the_last() -> None:
    repeats = Repeats()
    other = mark("application/json", b"", b"[]")
    repeats.remember("events", "a", THIS, KEPT)
    repeats.remember("events", "a", other, Kept(1, Accepted(8, "disk")))
    assert repeats.find("events", "a", THIS) is None
    assert repeats.find("events", "a", other) == Kept(1, Accepted(8, "disk"))


def test_no_name_and_a_very_long_one_are_not_remembered() -> None:
    repeats = Repeats()
    for name in ("", "x" * 257):
        repeats.remember("events", name, THIS, KEPT)
        assert repeats.find("events", name, THIS) is None


def test_it_remembers_the_last_of_them() -> None:
    repeats = Repeats()
    for number in range(REPEATS_MAX + 1):
        repeats.remember("events", str(number), THIS, KEPT)
    assert repeats.find("events", "0", THIS) is None
    assert repeats.find("events", "1", THIS) == KEPT
