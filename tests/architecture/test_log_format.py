"""Does the page on the log's format say where the bytes are, and does its script read them?"""

import re
import subprocess
import sys
from pathlib import Path

from tidegate.spooler.log import cursor, frame, segment
from tidegate.spooler.log.log import Log
from tidegate.spooler.record import Record

PAGE = (Path(__file__).parents[2] / "docs/spool/format.md").read_text("utf-8")


def table(title: str) -> list[tuple[int, int]]:
    """Offset and length of each field in the table under a heading."""
    part = PAGE.split(f"{title}\n", 1)[1].split("\n#", 1)[0]
    rows = re.findall(r"^\| ([\d,]+) \| (\d+)(?: each)? \|", part, re.MULTILINE)
    return [(int(offset.replace(",", "")), int(size)) for offset, size in rows]


def gaps(fields: list[tuple[int, int]], size: int) -> list[int]:
    """Offsets at which a field does not follow on the one before, to the end."""
    ends = [0, *(offset + length for offset, length in fields)]
    begins = [*(offset for offset, _ in fields), size]
    return [end for end, begin in zip(ends, begins, strict=True) if end != begin]


def test_the_fields_of_headers_and_footers_fill_them() -> None:
    assert gaps(table("### The header of a frame"), frame.HEADER_SIZE) == []
    assert gaps(table("### The footer"), segment.FOOTER_SIZE) == []


def test_the_fields_of_the_cursor_stand_where_they_are_written() -> None:
    *fields, ranges, crc = table("## The cursor")
    assert gaps(fields, ranges[0]) == []
    assert ranges == (cursor._HEAD.size, 16)
    assert crc == (cursor.SLOT_SIZE - 4, 4)
    assert f"the first five are {', '.join(cursor.CAUSES)}" in PAGE


def test_a_field_that_is_left_out_is_seen() -> None:
    assert gaps([(0, 4), (5, 3)], 8) == [4]
    assert gaps([(0, 4)], 8) == [4]


def test_the_script_of_the_page_reads_a_log_alone(tmp_path: Path) -> None:
    log = Log.open(tmp_path)
    log.append([Record(b"alpha", b"key"), Record(b"beta")])
    log.append([Record(b"gamma")])
    log.close()
    script = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[-1]
    [file] = tmp_path.glob("*.seg")
    run = subprocess.run(
        [sys.executable, "-I", "-c", script, str(file)], capture_output=True, text=True, check=True
    )
    assert run.stdout == "1 b'alpha'\n2 b'beta'\n3 b'gamma'\n"
