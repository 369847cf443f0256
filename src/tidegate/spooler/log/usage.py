"""How much does a log hold, and how long has the oldest of it been there?"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from tidegate.core.bounds import Cause
from tidegate.spooler.log.segment import Segment

__all__ = ["Loss", "Usage", "estimate"]


class Loss(NamedTuple):
    """Records that were dropped, the bytes of disk that this has freed, and why."""

    records: int
    bytes: int
    cause: Cause


class Usage(NamedTuple):
    """What a log holds.

    `backlog` counts records that are not delivered; the bytes of them and the time of the oldest
    are estimated within a segment as if its records were alike. `lost` counts records since the
    log was begun, by `Cause`.
    """

    bytes: int  # on disk, of all segments
    segments: int
    backlog_records: int
    backlog_bytes: int
    oldest: int | None  # nanoseconds since 1970; None if nothing waits
    lost: dict[str, int]
    damaged: int  # stretches of bytes that were not what was written
    suspects: int  # files whose sync has failed
    aside: int  # bytes of quarantine
    trouble: str  # of the disk, with the cursor, in words; empty if there is none


def estimate(segments: Sequence[Segment], first: int, last: int) -> tuple[int, int]:
    """Bytes on disk of the records from `first` to `last`, and the time of the first.

    As if the records of a segment were alike.
    """
    size, time = 0.0, None
    at = bisect_left(segments, first, key=lambda segment: segment.last)
    for segment in segments[at:]:
        if segment.first > last:
            break
        if not segment.frames:
            continue
        numbers = segment.last - segment.first + 1
        low, high = max(first, segment.first), min(last, segment.last)
        size += segment.end * (high - low + 1) / numbers
        if time is None:
            span = segment.newest - segment.oldest
            time = segment.oldest + span * (low - segment.first) // numbers
    return round(size), time if time is not None else 0
