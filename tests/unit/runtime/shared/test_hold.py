"""Holding a guard by hand: what is refused, what is written, what is on record."""

import json
import os
import pwd
from pathlib import Path

import pytest
from host_rig import NAME, Process

from tidegate.core.outcome import REJECTIONS, Reason
from tidegate.errors import InputError
from tidegate.runtime.shared import hold as holds
from tidegate.runtime.shared import place
from tidegate.runtime.shared.table import Hold, Table
from tidegate.settings.system import Call
from tidegate.units import DAY, MINUTE, SECOND

NOON = 1_750_000_000.0


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "state"


def hold(
    base: Path, name: str = NAME, *, reason: str = "moved", author: str = "ada", **more
) -> Hold:
    given = {"duration": None, "now": SECOND, "wall": NOON} | more
    return holds.hold(base, name, reason=reason, author=author, **given)


def release(base: Path, name: str = NAME, now: int = SECOND) -> Hold:
    return holds.release(base, name, author="bob", now=now, wall=NOON + 60)


def record(base: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (base / holds.AUDIT).read_text("utf-8").splitlines()]


def test_a_hold_reaches_a_process_and_a_release_too(base: Path) -> None:
    process = Process(base, Call(), 0, 1)
    hold(base)
    process.lane.look(SECOND)
    assert process.pipeline.admit(SECOND, 0) is REJECTIONS[Reason.HELD]
    assert release(base).reason == "moved"
    process.lane.look(2 * SECOND)
    assert process.pipeline.admit(2 * SECOND, 0) is not REJECTIONS[Reason.HELD]


def test_its_end_is_an_instant_and_its_wall_time_is_for_show(base: Path) -> None:
    made = hold(base, duration=10 * MINUTE)
    assert (made.until, made.until_wall) == (SECOND + 10 * MINUTE, NOON + 600)
    assert Table.open(base, NAME).hold() == made


def test_both_are_on_record(base: Path) -> None:
    hold(base, duration=MINUTE, reason="moved «today»")
    release(base)
    assert record(base) == [
        {
            "at": "2025-06-15T15:06:40+00:00",
            "what": "hold",
            "guard": NAME,
            "reason": "moved «today»",
            "author": "ada",
            "until": "2025-06-15T15:07:40+00:00",
            "uid": os.getuid(),
        },
        {
            "at": "2025-06-15T15:07:40+00:00",
            "what": "release",
            "guard": NAME,
            "reason": "moved «today»",
            "author": "bob",
            "until": "2025-06-15T15:07:40+00:00",
            "uid": os.getuid(),
        },
    ]
    assert (base / holds.AUDIT).stat().st_mode & 0o777 == 0o600


def test_the_record_is_bounded(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holds, "_AUDIT_MAX", 400)
    for number in range(30):
        hold(base, reason=f"number {number}")
    sizes = {path.name: path.stat().st_size for path in base.glob("audit*")}
    assert sizes.keys() == {"audit.jsonl", "audit.jsonl.1"}
    assert max(sizes.values()) < 600
    assert record(base)[-1]["reason"] == "number 29"


def test_a_record_that_cannot_be_written_is_said_and_the_hold_stands(base: Path) -> None:
    with place.home(base, create=True):
        pass
    (base / holds.AUDIT).symlink_to(base / "elsewhere")
    with pytest.raises(InputError, match=r"'licences' is held, but .* cannot be written"):
        hold(base)
    assert Table.open(base, NAME).hold() is not None
    assert not (base / "elsewhere").exists()


@pytest.mark.parametrize("text", ["", "two\nlines", "\x1b[2J", "x" * 201])
@pytest.mark.parametrize("what", ["reason", "author"])
def test_words_that_would_break_a_log_are_refused(base: Path, what: str, text: str) -> None:
    with pytest.raises(InputError, match=f"the {what} is 1 to 200 printable characters"):
        hold(base, **{what: text})
    assert not base.exists()


@pytest.mark.parametrize("duration", [0, 366 * DAY])
def test_a_time_that_is_none_is_refused(base: Path, duration: int) -> None:
    with pytest.raises(InputError, match="more than nothing and at most 365d"):
        hold(base, duration=duration)


def test_what_is_not_held_cannot_be_released_and_the_nearest_that_is_is_named(base: Path) -> None:
    with pytest.raises(InputError, match=r"^'licences' is not held$"):
        release(base)
    hold(base)
    Table.open(base, "licence-cache")
    with pytest.raises(InputError, match=r"^'licnces' is not held; did you mean 'licences'\?$"):
        release(base, "licnces")
    with pytest.raises(InputError, match=r"^'licence-cache' is not held; did you mean 'licences'"):
        release(base, "licence-cache")
    release(base)
    with pytest.raises(InputError, match=r"^'licences' is not held$"):
        release(base)


def test_a_hold_that_is_over_cannot_be_released(base: Path) -> None:
    hold(base, duration=MINUTE)
    with pytest.raises(InputError, match="is not held"):
        release(base, now=SECOND + MINUTE)


def test_a_damaged_table_hides_no_other(base: Path) -> None:
    hold(base)
    Table.open(base, "other").close()
    (inner,) = (path for path in base.iterdir() if path.is_dir())
    (inner / "other.guard").write_bytes((inner / "other.guard").read_bytes()[:2048])
    with pytest.raises(InputError, match="did you mean 'licences'"):
        release(base, "licence")


def test_who_is_at_the_keyboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_USER", raising=False)
    assert holds.author() == pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setenv("SUDO_USER", "ada")
    assert holds.author() == "ada"
    monkeypatch.delenv("SUDO_USER")
    monkeypatch.setattr(os, "geteuid", lambda: 2**31 - 9)
    assert holds.author() == f"user {2**31 - 9}"
