"""`tidegate status`: what stands on the screen and in the document."""

import json
from pathlib import Path
from random import Random

import pytest

from tidegate.cli.main import main
from tidegate.core.outcome import FAILURE, SUCCESS, Permit
from tidegate.core.pipeline import Pipeline
from tidegate.runtime.shared import place
from tidegate.runtime.shared.lane import attach
from tidegate.runtime.shared.owner import this_process
from tidegate.runtime.shared.table import Hold, Table
from tidegate.settings import policies
from tidegate.settings.system import Call

CALL = Call(attempts=2, budget=policies.Budget(), limit=policies.Limit(max=5))


NOW, WALL = 10**12, 1_750_000_000.0


class Stopped:
    """The clocks of the command."""

    monotonic_ns = staticmethod(lambda: NOW)
    time = staticmethod(lambda: WALL)


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tidegate.cli.status.time", Stopped)
    monkeypatch.setenv(place.VARIABLE, str(tmp_path / "state"))
    return tmp_path / "state"


def used(name: str, requests: int) -> None:
    """A worker that has made so many requests just now, half of which failed; one is out."""
    pipeline = Pipeline(CALL, Random(1))
    now = NOW
    lane = attach(name, lambda: [pipeline], now)
    assert lane is not None
    for number in range(requests):
        permit = pipeline.admit(now, 0)
        assert isinstance(permit, Permit)
        pipeline.settle(now, permit, FAILURE if number % 2 else SUCCESS)
    assert pipeline.budget is not None
    pipeline.budget.try_retry(now)
    assert isinstance(pipeline.admit(now, 1), Permit)
    lane.look(now)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["status", *arguments]) == 0
    return capsys.readouterr().out


def test_nothing_yet(capsys: pytest.CaptureFixture[str], base: Path) -> None:
    assert printed(capsys) == (
        f"no process of this user has used a guard since the last boot (in {base})\n"
    )
    assert printed(capsys, "--json") == "[]\n"
    assert not base.exists()


def test_all_guards_on_one_screen(capsys: pytest.CaptureFixture[str], base: Path) -> None:
    used("licences", 40)
    used("mail", 0)
    assert printed(capsys) == (
        "licences: closed, 1 process, last call less than 1s ago\n"
        "  requests 40, retries 1 (2.5%), refused 0, can retry 3.0 now\n"
        "  in flight 1, limit 5\n"
        "\n"
        "mail: closed, 1 process, last call less than 1s ago\n"
        "  requests 0, retries 1, refused 0, can retry 0.0 now\n"
        "  in flight 1, limit 5\n"
    )


def test_a_held_guard_says_by_whom_and_why(capsys: pytest.CaptureFixture[str], base: Path) -> None:
    now, wall = NOW, WALL
    Table.open(base, "mail").write_hold(Hold("moved", "ada", now + 10**13, wall, wall + 10_000))
    Table.open(base, "other").write_hold(Hold("moved too", "bob", 0, wall, 0.0))
    lines = printed(capsys).splitlines()
    assert lines[0] == "mail: held, 0 processes"
    assert lines[1].startswith("  held by ada, for another 2.78h: moved")
    assert "  held by bob: moved too" in lines


def test_a_full_table_is_told(capsys: pytest.CaptureFixture[str], base: Path) -> None:
    table = Table.open(base, "mail")
    for number in range(300):
        table.claim(this_process()._replace(namespace=number + 9))
    assert "44 times a process found no room here and went on alone" in printed(capsys)


def test_the_document(capsys: pytest.CaptureFixture[str], base: Path) -> None:
    used("licences", 40)
    (seen,) = json.loads(printed(capsys, "licences", "--json"))
    assert seen == {
        "name": "licences",
        "state": "closed",
        "hold": None,
        "processes": 1,
        "requests": 40,
        "retries": 1,
        "retries_refused": 0,
        "retry_tokens": 3.0,
        "recent_attempts": 0,
        "recent_failed": 0,
        "in_flight": 1,
        "limit": 5,
        "last_seen_s": 0.0,
        "alone": 0,
    }
