"""`tidegate hold`, `release` and `status`, as a person meets them."""

import json
import re
import time
from pathlib import Path
from random import Random

import pytest

from tidegate.cli.main import main
from tidegate.core.outcome import REJECTIONS, Permit, Reason
from tidegate.core.pipeline import Pipeline
from tidegate.runtime.shared import place
from tidegate.runtime.shared.lane import Lane, attach
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
        r"licences is released after \S+; it was held by ada: being moved\n"
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
