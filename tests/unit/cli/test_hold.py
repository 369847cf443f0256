"""`tidegate hold`, `release` and `status`, as a person meets them."""

import json
import re
import sys
import time
from pathlib import Path
from random import Random

import pytest

from tidegate.cli.main import main
from tidegate.core.outcome import REJECTIONS, Permit, Reason
from tidegate.core.pipeline import Pipeline
from tidegate.runtime.shared import place
from tidegate.runtime.shared.lane import Lane, attach
from tidegate.runtime.shared.store import Command, StoreAwayError
from tidegate.runtime.shared.table import Table
from tidegate.settings import policies
from tidegate.settings.system import Call

CALL = Call(attempts=2, budget=policies.Budget(), limit=policies.Limit(max=5))


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(place.VARIABLE, str(tmp_path / "state"))
    monkeypatch.setenv("SUDO_USER", "ada")
    return tmp_path / "state"


def worker(name: str = "licences") -> tuple[Pipeline, Lane]:
    pipeline = Pipeline(CALL, Random(1))
    lane = attach(name, lambda: [pipeline], time.monotonic_ns())
    assert lane is not None
    return pipeline, lane


def out(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert (captured.err == "") == (code == 0)
    return captured.out if code == 0 else captured.err


def hold(*more: str) -> tuple[str, ...]:
    return ("hold", "licences", "--reason", "being moved", *more)


def test_hold_and_release(capsys: pytest.CaptureFixture[str]) -> None:
    pipeline, lane = worker()
    assert out(capsys, 0, *hold()) == (
        "licences is held until it is released; 1 process has it and obeys at its next call\n"
    )
    lane.look(time.monotonic_ns())
    assert pipeline.admit(time.monotonic_ns(), 0) is REJECTIONS[Reason.HELD]
    said = out(capsys, 0, "release", "licences")
    assert re.fullmatch(
        r"licences is released after \S+; held by ada: being moved\n"
        r"calls come back by probes first, then as a ramp, if it has a breaker\n",
        said,
    )
    lane.look(time.monotonic_ns())
    assert isinstance(pipeline.admit(time.monotonic_ns(), 0), Permit)


def test_a_hold_for_a_while_says_until_when(capsys: pytest.CaptureFixture[str]) -> None:
    worker()
    said = out(capsys, 0, *hold("--for", "10min", "--author", "bob"))
    assert re.match(r"licences is held until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+ \(10min\); ", said)
    (seen,) = json.loads(out(capsys, 0, "status", "--json"))
    assert seen["hold"]["until"] - seen["hold"]["since"] == pytest.approx(600)
    assert seen["hold"]["author"] == "bob"


def test_a_hold_of_what_nobody_has_used_is_kept_and_it_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    worker("licence")
    assert out(capsys, 0, *hold()) == (
        "licences is held until it is released; no process has it now, and whichever starts to use"
        " it will obey\nno process of this host has used a guard of this name; did you mean"
        " 'licence'?\n"
    )
    pipeline, _ = worker()
    assert pipeline.admit(time.monotonic_ns(), 0) is REJECTIONS[Reason.HELD]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (hold("--for", "soon"), "--for: expected a duration with its unit, as 250ms, 10s"),
        (hold("--for", "0s"), "a guard is held for more than nothing and at most 365d"),
        (("hold", "a\nb", "--reason", "x"), "1 to 200 printable characters, not 'a\\nb'"),
        (("hold", "a", "--reason", ""), "the reason is 1 to 200 printable characters"),
        (("release", "licences"), "'licences' is not held"),
        (("status", "licnces"), "no process of this host has used a guard named 'licnces'"),
    ],
)
def test_bad_input_is_one_sentence_and_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    told = out(capsys, 2, *arguments)
    assert told.startswith("tidegate: ")
    assert said in told
    assert told.count("\n") == 1


# Other hosts.


class Others:
    """The server between hosts."""

    def __init__(self) -> None:
        self.told: list[tuple[Command, int | None]] = []
        self.away = False

    def send(self, name: str, command: Command, duration: int | None) -> None:
        assert name == "licences"
        if self.away:
            raise StoreAwayError("no route to host")
        self.told.append((command, duration))

    def last(self, name: str) -> Command | None:
        if self.away:
            raise StoreAwayError("no route to host")
        return self.told[-1][0] if self.told else None


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Others:
    server = Others()
    monkeypatch.setenv("TIDEGATE_VALKEY", "valkey://:secret@example.com")
    monkeypatch.setattr("tidegate.runtime.shared.store.open_store", lambda _: server)
    return server


def test_other_hosts_are_told_of_both(capsys: pytest.CaptureFixture[str], others: Others) -> None:
    assert out(capsys, 0, *hold("--for", "10min")).endswith("\nother hosts are told\n")
    assert out(capsys, 0, "release", "licences").endswith("\nother hosts are told\n")
    (first, duration), (second, forever) = others.told
    assert (first.held, first.reason, first.author) == (True, "being moved", "ada")
    assert (second.held, second.reason, second.author) == (False, "being moved", "ada")
    assert (duration, forever) == (600 * 10**9, None)
    assert first.number != second.number


def test_the_thread_of_this_host_does_not_repeat_the_command(base: Path, others: Others) -> None:
    assert main(hold()) == 0
    assert Table.open(base, "licences").command == others.told[0][0].number


def test_what_is_held_on_other_hosts_only_can_be_released_from_here(
    capsys: pytest.CaptureFixture[str], others: Others
) -> None:
    others.told.append((Command(5, True, "moved", "bob", 1.0), None))
    said = out(capsys, 0, "release", "licences")
    assert said == "licences is not held on this host\nother hosts are told\n"
    assert not others.told[-1][0].held
    assert "'licences' is not held" in out(capsys, 2, "release", "licences")


def test_when_others_cannot_be_told_it_says_what_was_done(
    capsys: pytest.CaptureFixture[str], others: Others
) -> None:
    others.away = True
    for arguments, done in ((hold(), "held"), (("release", "licences"), "released")):
        assert main(arguments) == 2
        assert capsys.readouterr().err == (
            f"tidegate: licences is {done} on this host, and other hosts could not be told:"
            " no route to host\n"
        )


def test_an_address_that_is_none_holds_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, base: Path
) -> None:
    monkeypatch.setenv("TIDEGATE_VALKEY", "valkey://:secret@example.com")
    monkeypatch.setitem(sys.modules, "valkey", None)
    assert "pip install 'tidegate[valkey]'" in out(capsys, 2, *hold())
    assert not base.exists()


def test_where_nothing_is_shared_nothing_is_held(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(place.VARIABLE, "off")
    assert "TIDEGATE_STATE_DIR is off" in out(capsys, 2, *hold())
    assert "TIDEGATE_STATE_DIR is off" in out(capsys, 2, "status")


def test_a_directory_of_others_is_not_used(capsys: pytest.CaptureFixture[str], base: Path) -> None:
    base.mkdir()
    base.chmod(0o777)
    for arguments in (hold(), ("release", "licences"), ("status",)):
        assert "others may write there" in out(capsys, 2, *arguments)
