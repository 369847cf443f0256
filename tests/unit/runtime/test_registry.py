"""One name is one dependency, wherever in the code it is asked for."""

import subprocess
import sys

import pytest

import tidegate
from tidegate import SettingsError
from tidegate.runtime.registry import _forget
from tidegate.settings.system import Call
from tidegate.testing import instant, scripted
from tidegate.units import SECOND


@pytest.fixture(autouse=True)
def clock():
    _forget()
    with instant() as still:
        yield still
    _forget()


def test_the_same_name_is_the_same_guard_and_another_view_has_the_same_state():
    first = tidegate.guard("licences")
    assert tidegate.guard("licences") is first
    view = tidegate.guard("licences", fallback=lambda: None)
    assert view is not first
    assert view.dependency is first.dependency
    assert tidegate.guard("other").dependency is not first.dependency


def test_settings_are_given_once_and_may_be_repeated_but_not_contradicted():
    guard = tidegate.guard("licences")
    assert guard.settings.timeout == 10 * SECOND
    assert tidegate.guard("licences", timeout=2.0) is guard
    assert guard.settings.timeout == 2 * SECOND
    tidegate.guard("licences", timeout=2.0)
    tidegate.guard("licences")
    with pytest.raises(SettingsError, match="was given other settings elsewhere"):
        tidegate.guard("licences", timeout=3.0)


def test_a_record_will_do_as_well_but_not_both():
    guard = tidegate.guard("licences", Call(timeout=SECOND))
    assert guard.settings.timeout == SECOND
    with pytest.raises(SettingsError, match="a record of settings or keywords, not both"):
        tidegate.guard("licences", Call(), timeout=1.0)


@pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", None, 7])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(SettingsError, match="the name of a guard is"):
        tidegate.guard(name)


FILE = """\
tidegate: 1
clients: {readers: {rate: 5/s, calls: {licences: {to: edge, timeout: 3s}}}}
services: {edge: {}}
"""


def test_a_file_gives_settings_to_guards_before_and_after_it(tmp_path):
    file = tmp_path / "system.yaml"
    file.write_text(FILE)
    before = tidegate.guard("licences")
    before.call(scripted("fine").call)
    assert tidegate.load(file) == ("licences",)
    assert before.settings.timeout == 3 * SECOND
    assert before.snapshot().started == 1  # it keeps its counts
    file.write_text(FILE.replace("3s", "4s").replace("licences", "permits"))
    tidegate.load(file)
    assert tidegate.guard("permits").settings.timeout == 4 * SECOND


def test_code_that_has_said_something_is_not_overruled_by_a_file(tmp_path):
    file = tmp_path / "system.yaml"
    file.write_text(FILE)
    guard = tidegate.guard("licences", timeout=1.0)
    tidegate.load(file)
    assert guard.settings.timeout == SECOND


def test_a_file_that_is_wrong_changes_nothing(tmp_path):
    file = tmp_path / "system.yaml"
    file.write_text(FILE)
    tidegate.load(file)
    file.write_text(FILE.replace("3s", "3 parsecs"))
    with pytest.raises(SettingsError, match=r"system\.yaml:2:"):
        tidegate.load(file)
    assert tidegate.guard("licences").settings.timeout == 3 * SECOND


def test_snapshots_are_of_every_dependency_and_adding_up_is_theirs():
    for name in ("a", "b"):
        tidegate.guard(name).call(scripted("fine").call)
    seen = tidegate.snapshots()
    assert [*seen] == ["a", "b"]
    assert all(s.started == s.ok == 1 for s in seen.values())


def trip(name):
    guard = tidegate.guard(name, attempts=1)
    stub = scripted(*[ConnectionError] * 20)
    for _ in range(20):
        with pytest.raises(ConnectionError):
            guard.call(stub.call)


def test_a_listener_hears_of_every_dependency_until_it_ends():
    heard = []
    end = tidegate.listen(lambda name, change: heard.append((name, change.after)))
    trip("a")
    trip("b")
    end()
    end()  # a second time does nothing
    trip("c")
    assert heard == [("a", "open"), ("b", "open")]


FORKED = """
import os, tidegate
from tidegate.runtime import registry

guard = tidegate.guard("a", attempts=1)
for _ in range(20):
    try:
        guard.call(lambda: 1 / 0)
    except ZeroDivisionError:
        pass
assert guard.snapshot().state == "open"
with registry._lock, guard.dependency.lock:  # held by somebody at the very moment
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert tidegate.snapshots()["a"].started == 0
            assert guard.call(lambda: "fine") == "fine"
            code = 0
        finally:
            os._exit(code)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert code == 0, code
assert guard.snapshot().started == 20
"""


def test_after_a_fork_nothing_of_the_parent_s_calls_or_locks_is_the_child_s():
    # In a process without threads: Python warns of a fork beside them.
    command = [sys.executable, "-W", "error", "-c", FORKED]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
