"""Does any of a million damaged files break the reader of the log, or give a record that was not?

    python benchmarks/fuzz_log.py [INPUTS [SEED]]

Each input is a small segment, damaged in one to five ways: bits, runs of zeros or of noise, bytes
lost, bytes put in, pieces of other segments and whole frames in other places. The reader must come
to its end, with nothing but records that were written, under their own numbers. One in fifty is
also the only file of a log that is opened, read and gone on with.
"""

import sys
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from simulated_files import SimulatedFiles, _File

from tidegate.spooler.log.codec import CLEAR, Codec, DamagedError
from tidegate.spooler.log.frame import MAGIC, RECORDS, Frame, Place, decode, encode, walk
from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions
from tidegate.spooler.record import Record

PLACE = Place(7, 1)
LANE = Path("/lane")
CODECS = (CLEAR, CLEAR, CLEAR, Codec(zstd=True), Codec(zstd=True, keys=(b"k" * 32,)))


def segment(luck: Random, codec: Codec) -> tuple[bytes, dict[int, Record]]:
    """The bytes of a segment, and what is in it."""
    data, written = b"", dict[int, Record]()
    for _ in range(luck.randint(1, 5)):
        records = [
            Record(luck.randbytes(luck.randint(0, 60)), b"key"[: luck.randint(0, 3)], n)
            for n in range(luck.randint(1, 4))
        ]
        first = len(written) + 1
        data += b"".join(encode(records, first, PLACE, len(data), codec))
        written |= dict(enumerate(records, first))
    return data, written


def damage(data: bytes, luck: Random) -> bytes:
    bad = bytearray(data)
    for _ in range(luck.randint(1, 5)):
        at, to = sorted((luck.randrange(len(bad) + 1), luck.randrange(len(bad) + 1)))
        match luck.randrange(8):
            case 0 | 1:
                if bad:
                    bad[luck.randrange(len(bad))] ^= 1 << luck.randrange(8)
            case 2:
                bad[at:to] = bytes(to - at)
            case 3:
                bad[at : at + 8] = luck.randbytes(len(bad[at : at + 8]))
            case 4:
                del bad[at:to]
            case 5:
                bad[at:at] = luck.choice((MAGIC, MAGIC * 9, luck.randbytes(5), data[at:to]))
            case 6:
                bad[at:at] = data
            case _:
                del bad[at:]
    return bytes(bad)


def read(data: bytes, codec: Codec, written: dict[int, Record], window: int) -> int:
    """How many records were found."""
    count = 0
    for found in walk(lambda size, at: data[at : at + size], 0, len(data), PLACE, window=window):
        if isinstance(found, Frame) and found.head.kind == RECORDS:
            try:
                records = decode(found, codec)
            except DamagedError:
                continue
            for number, record in enumerate(records, found.head.first):
                assert written[number] == record
                count += 1
    return count


def opened(data: bytes, codec: Codec, written: dict[int, Record]) -> None:
    files = SimulatedFiles()
    files.files[LANE / "0000000001.seg"] = _File(data)
    log = Log.open(LANE, LogOptions(codec=codec), files)
    number = log.append([Record(b"new")])
    log.sync()
    at = 0
    while (batch := log.read(at)) is not None:
        for n, record in enumerate(batch.records, batch.first):
            assert record == (Record(b"new") if n == number else written[n])
        at = batch.last
    assert at == number
    log.close()


def main() -> None:
    inputs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    luck = Random(seed)
    began, found, all_of_them = time.perf_counter(), 0, 0
    for n in range(inputs):
        codec = luck.choice(CODECS)
        data, written = segment(luck, codec)
        bad = damage(data, luck)
        found += read(bad, codec, written, luck.choice((64, 300, 1 << 20)))
        all_of_them += len(written)
        if n % 50 == 0:
            opened(bad, codec, written)
    took = time.perf_counter() - began
    print(
        f"{inputs:,} damaged segments, {inputs // 50:,} of them as a log, seed {seed}: no failure,"
        f" {found / all_of_them:.0%} of the records found, none of them wrong; {took:.0f} s"
    )


if __name__ == "__main__":
    main()
