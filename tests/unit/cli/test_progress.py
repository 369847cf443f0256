"""What somebody sees who watches: nothing for two seconds, then one line, in the end nothing."""

import io
import time

import pytest

from tidegate.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock.monotonic)
    monkeypatch.setenv("COLUMNS", "40")
    return clock


def screen(written: str) -> str:
    """What is left on the line after all that was written: each `\\r\\x1b[K` wipes it."""
    return written.rpartition("\r\x1b[K")[2]


def test_what_is_done_within_two_seconds_needs_no_progress(clock: Clock) -> None:
    terminal = Terminal()
    with Progress(terminal) as progress:
        progress.show("stall: 0 of 4")
        clock.now += 1.9
        progress.show("stall: 4 of 4")
    assert terminal.getvalue() == ""


def test_after_two_seconds_it_is_one_line_rewritten_in_place(clock: Clock) -> None:
    terminal = Terminal()
    with Progress(terminal) as progress:
        clock.now += 2
        progress.show("stall: 0 of 4")
        assert screen(terminal.getvalue()) == "   2 s  stall: 0 of 4"
        clock.now += 1
        progress.show("stall: 1 of 4")
        assert screen(terminal.getvalue()) == "   3 s  stall: 1 of 4"
    assert screen(terminal.getvalue()) == ""
    assert "\n" not in terminal.getvalue()


def test_a_long_line_is_cut_so_that_it_can_be_wiped(clock: Clock) -> None:
    terminal = Terminal()
    with Progress(terminal) as progress:
        clock.now += 5
        progress.show("a trigger with a name " * 9)
        assert len(screen(terminal.getvalue())) == 39


def test_it_is_wiped_also_when_something_goes_wrong(clock: Clock) -> None:
    terminal = Terminal()

    def work() -> None:
        with Progress(terminal) as progress:
            clock.now += 5
            progress.show("stall: 0 of 4")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert screen(terminal.getvalue()) == ""


def test_in_a_pipe_nothing_is_shown(clock: Clock) -> None:
    pipe = io.StringIO()
    with Progress(pipe) as progress:
        clock.now += 60
        progress.show("stall: 0 of 4")
    assert pipe.getvalue() == ""
