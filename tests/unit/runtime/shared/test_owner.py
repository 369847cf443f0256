"""A process is alive while it runs, and not when another has its number."""

import errno
import os
from pathlib import Path

import pytest

from tidegate.runtime.shared.owner import is_alive, this_process


def test_this_process_is_alive_and_a_later_one_of_its_number_is_another() -> None:
    own = this_process()
    assert own.pid == os.getpid()
    assert is_alive(own)
    assert not is_alive(own._replace(started=own.started + 1))


def test_a_process_that_has_ended_is_dead_before_and_after_its_parent_asks() -> None:
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.read(read, 1)
        os._exit(0)
    started = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    child = this_process()._replace(pid=pid, started=started)
    assert is_alive(child)
    os.write(write, b"x")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # ended, not yet buried: a zombie
    assert not is_alive(child)
    os.waitpid(pid, 0)
    assert not is_alive(child)
    os.close(read)
    os.close(write)


def test_who_cannot_be_looked_at_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    own = this_process()
    monkeypatch.setattr("builtins.open", full)
    alive = is_alive(own._replace(started=1))
    monkeypatch.undo()
    assert alive
