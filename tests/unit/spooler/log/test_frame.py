"""Is a frame found among anything, and nothing taken for one that is none?"""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.spooler.log.codec import CLEAR, Codec, DamagedError
from tidegate.spooler.log.frame import (
    HEADER_SIZE,
    MAGIC,
    RECORD_OVERHEAD,
    Damage,
    Frame,
    Place,
    decode,
    encode,
    parse,
    walk,
)
from tidegate.spooler.record import Record

PLACE = Place(log=0x1234_5678_9ABC_DEF0, segment=7)
CODECS = [CLEAR, Codec(zstd=True), Codec(keys=(b"k" * 32,)), Codec(zstd=True, keys=(b"k" * 32,))]

records = st.builds(
    Record, st.binary(max_size=80), st.binary(max_size=8), st.integers(-(2**63), 2**63 - 1)
)


def frames(groups: Sequence[Sequence[Record]], codec: Codec = CLEAR) -> bytes:
    """A file of one frame for each group, numbers from 1."""
    data, first = b"", 1
    for group in groups:
        data += b"".join(encode(group, first, PLACE, len(data), codec))
        first += len(group)
    return data


def look(
    data: bytes, codec: Codec = CLEAR, window: int = 1 << 20
) -> tuple[dict[int, Record], list[Damage]]:
    """The records that are found in a file, by number, and the damage."""
    found: dict[int, Record] = {}
    damage: list[Damage] = []
    for one in walk(lambda size, at: data[at : at + size], 0, len(data), PLACE, window=window):
        if isinstance(one, Damage):
            damage.append(one)
            continue
        try:
            found |= dict(enumerate(decode(one, codec), one.head.first))
        except DamagedError:
            damage.append(Damage(one.head.offset, one.head.end))
    return found, damage


def plain(groups: Sequence[Sequence[Record]]) -> dict[int, Record]:
    return dict(enumerate((record for group in groups for record in group), 1))


GROUPS = [
    [Record(b"alpha", b"k", 5), Record(b"beta" * 5, b"", 6)],
    [Record(b"gamma" * 3, b"key", 7)],
    [Record(b"", b"", 0)] * 3,
    [Record(b"delta" * 2, b"x", 9)],
]


@pytest.mark.parametrize("codec", CODECS)
@given(st.lists(st.lists(records, min_size=1, max_size=6), max_size=6), st.integers(1, 4096))
def test_what_was_written_is_found(codec: Codec, groups: list[list[Record]], window: int) -> None:
    assert look(frames(groups, codec), codec, window) == (plain(groups), [])


def test_a_frame_of_one_record_costs_88_bytes() -> None:
    assert len(frames([[Record(b"x" * 100)]])) == 188
    assert HEADER_SIZE + RECORD_OVERHEAD == 88


def test_a_header_says_what_is_in_the_frame() -> None:
    data = frames(GROUPS)
    head = parse(data)
    assert head is not None
    assert (head.first, head.last, head.oldest, head.newest) == (1, 2, 5, 6)
    second = parse(data, head.end)
    assert second is not None
    assert (second.first, second.offset) == (3, head.end)


def frame_bounds(data: bytes) -> list[tuple[int, int, int, int]]:
    """Start, end, first and last number of each frame."""
    bounds, at = [], 0
    while (head := parse(data, at)) is not None:
        bounds.append((at, head.end, head.first, head.last))
        at = head.end
    assert at == len(data)
    return bounds


def others(data: bytes, start: int, end: int) -> set[int]:
    """The numbers of all frames that have no byte between two offsets."""
    return {
        number
        for low, high, first, last in frame_bounds(data)
        if high <= start or low >= end
        for number in range(first, last + 1)
    }


@pytest.mark.parametrize("codec", CODECS)
def test_one_damaged_byte_costs_its_frame_alone(codec: Codec) -> None:
    data, expected = frames(GROUPS, codec), plain(GROUPS)
    for at in range(len(data)):
        for bit in (0, 3, 7):
            bad = bytearray(data)
            bad[at] ^= 1 << bit
            found, damage = look(bytes(bad), codec)
            assert found == {n: expected[n] for n in others(data, at, at + 1)}, at
            assert len(damage) == 1
            assert damage[0].start <= at < damage[0].end


@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from([b"\0", b"\xff", MAGIC]))
def test_a_damaged_stretch_costs_the_frames_it_touches(
    start: int, length: int, fill: bytes
) -> None:
    data, expected = frames(GROUPS), plain(GROUPS)
    end = min(len(data), start + length)
    bad = (data[:start] + (fill * length)[: max(0, end - start)] + data[end:])[: len(data)]
    found, _ = look(bad)
    assert {n: expected[n] for n in others(data, start, end)}.items() <= found.items()
    assert found.items() <= expected.items()


def test_a_file_that_ends_early_has_the_frames_that_are_whole() -> None:
    data, expected = frames(GROUPS), plain(GROUPS)
    for end in range(len(data)):
        found, damage = look(data[:end])
        assert found == {n: expected[n] for n in others(data, end, len(data))}
        assert len(damage) == (end not in {0, *(high for _, high, _, _ in frame_bounds(data))})


def test_a_frame_inside_a_record_is_not_taken_for_one() -> None:
    """Also when what is around it is damaged: it does not stand where it says that it stands."""
    inner = frames(GROUPS)
    data = frames([[Record(inner)], [Record(b"next")]])
    bad = bytearray(data)
    bad[10] ^= 1
    assert look(bytes(bad))[0] == {2: Record(b"next")}


def test_frames_of_another_log_or_segment_are_not_taken() -> None:
    for other in (PLACE._replace(log=1), PLACE._replace(segment=8)):
        data = b"".join(encode(GROUPS[0], 1, other, 0, CLEAR))
        assert look(data) == ({}, [Damage(0, len(data))])


@given(st.binary(max_size=300), st.integers(0, 2**32))
@example(MAGIC * 100, 0)
def test_anything_at_all_is_read_to_its_end(data: bytes, seed: int) -> None:
    luck = Random(seed)
    mixed = bytearray(frames(GROUPS))
    for _ in range(luck.randint(0, 5)):
        at = luck.randrange(len(mixed))
        mixed[at : at + luck.randint(0, 20)] = data[: luck.randint(0, 60)]
    found, damage = look(bytes(mixed) + data, window=luck.randint(1, 500))
    assert found.items() <= plain(GROUPS).items()
    ends = [0, *(one.end for one in damage)]
    assert ends == sorted(ends)


def test_many_false_beginnings_are_passed_over_in_one_reading() -> None:
    reads = 0

    def read(size: int, at: int) -> bytes:
        nonlocal reads
        reads += 1
        return data[at : at + size]

    data = MAGIC * 50_000
    assert list(walk(read, 0, len(data), PLACE)) == [Damage(0, len(data))]
    assert reads < 30  # most of them of the last few bytes


def test_without_payloads_the_headers_alone_are_read() -> None:
    data = frames([[Record(b"x" * 100_000)]] * 20)
    got = 0

    def read(size: int, at: int) -> bytes:
        nonlocal got
        got += size
        return data[at : at + size]

    found = list(walk(read, 0, len(data), PLACE, payloads=False, window=1000))
    assert [one.head.first for one in found if isinstance(one, Frame)] == list(range(1, 21))
    assert got < 40_000
