"""What can be chosen of a log, and what of it follows from the settings of its lane?"""

from pathlib import Path
from typing import Final, NamedTuple

from tidegate.settings import spool as settings
from tidegate.spooler.log.codec import CLEAR, Codec, read_keys
from tidegate.units import HOUR, Duration

__all__ = ["DEFAULT", "LogOptions", "options_of"]

_MIB: Final = 1 << 20
_SEGMENTS_IN_BOUNDS: Final = 16


class LogOptions(NamedTuple):
    """How a log writes.

    `durable` is when what was appended counts: `always` when it is on disk (nothing is read before
    that, so nothing is delivered whose number could be given out again), else at once; with
    `never` the log syncs nothing but its cursor. A segment is ended at `segment` bytes (Kafka has
    1 GB, Fluent Bit 2 MB, Vector 128 MB) or after `age`, so that what is too old can go. A `frame`
    is what one damaged byte costs. `aside` bounds what is kept of records that nobody takes and of
    files that could not be read.
    """

    durable: settings.Durable = "always"
    codec: Codec = CLEAR
    segment: int = 64 * _MIB
    frame: int = 256 * 1024
    age: Duration = HOUR
    aside: int = 64 * _MIB


DEFAULT: Final = LogOptions()


def options_of(lane: settings.Lane, base: Path) -> LogOptions:
    """The options of a lane's log. Paths in its settings begin at `base`.

    Space comes back by whole segments, so a lane with narrow bounds has smaller ones.
    """
    keys = read_keys(base / lane.key_file) if lane.key_file is not None else ()
    segment = DEFAULT.segment
    if lane.bounds.bytes is not None:
        segment = min(segment, max(_MIB, lane.bounds.bytes // _SEGMENTS_IN_BOUNDS))
    return LogOptions(
        durable=lane.durable, codec=Codec(zstd=lane.codec == "zstd", keys=keys), segment=segment
    )
