"""Does a log keep its promises when its process is killed while it writes, over and over?"""

import subprocess
import sys
from pathlib import Path
from random import Random

import log_victim
import pytest
from log_victim import text
from log_witness import all_of, numbers

from tidegate.spooler.log.log import Log
from tidegate.spooler.log.options import LogOptions

OPTIONS = LogOptions(segment=50_000, frame=3000)


def until_killed(directory: Path, life: int, lines: int) -> list[str]:
    """What one life said before it was killed, after about so many lines."""
    command = [sys.executable, log_victim.__file__, str(directory), str(life)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        said += process.stdout.readlines()
    assert said[0], "it did not live"
    return [line for line in said if line.endswith("\n")]  # the last may be cut


def kill_over_and_over(directory: Path, times: int) -> int:
    """Look after each kill; how many records were acknowledged in all."""
    luck = Random(times)
    promised: dict[int, bytes] = {}
    delivered: set[int] = set()
    for life in range(times):
        for line in until_killed(directory, life, luck.randint(1, 400)):
            what, first, *rest = line.split()
            if what == "a":
                count, base = int(rest[0]), int(rest[1])
                for n in range(count):
                    assert int(first) + n not in promised, "a number was given out twice"
                    promised[int(first) + n] = text(life, base + n)
            else:
                delivered |= set(range(int(first), int(rest[0]) + 1))
        log = Log.open(directory, OPTIONS)
        found = all_of(log, max_bytes=100_000)
        due = promised.keys() - delivered
        assert due <= numbers(log.pending)
        assert due <= found.keys()
        for number, record in found.items():
            assert record.value == promised.get(number, record.value)
            life_of, of, _ = record.value.split(b":")
            assert record.value == text(int(life_of), int(of))
        assert log.usage().damaged == 0
        log.close()
        del log
    return len(promised)


@pytest.mark.slow  # processes
def test_a_log_that_is_killed_twenty_times_keeps_what_it_promised(tmp_path: Path) -> None:
    assert kill_over_and_over(tmp_path / "lane", 20) > 1000


@pytest.mark.golden
def test_a_log_that_is_killed_two_hundred_times_keeps_what_it_promised(tmp_path: Path) -> None:
    assert kill_over_and_over(tmp_path / "lane", 200) > 10_000
