"""`tidegate lab storm` as a person meets it, around a reality that is simulated."""

import json
from pathlib import Path

import pytest

from tidegate.cli.main import main
from tidegate.lab import show
from tidegate.lab.storm import Series, Storm, predicted

pytestmark = pytest.mark.slow  # forty storms are simulated each time

SMALL = """\
tidegate: 1
clients:
  people: {rate: 140/s, calls: {look: {to: shop, timeout: 500ms, attempts: 4}}}
services:
  shop: {workers: 8, time: {constant: 40ms}}
triggers:
  slow: {service: shop, slowdown: 3x, for: 5s}
"""


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    def live(storm: Storm, seed: int, *, guard: bool) -> Series:
        return predicted(storm, seed + 100)

    monkeypatch.setattr(show, "live", live)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


def test_it_prints_the_screen_and_writes_the_page(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["lab", "storm", str(file), "--html", str(page), "--seconds", "6"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("HOLDS")
    assert "shop is 3 times slower for 6s" in printed
    assert f"repeat      tidegate lab storm {file} --seconds 6 --seed 1\n" in printed
    assert printed.endswith(f"picture     {page}\n")
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_without_a_file_it_is_our_own_storm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "storm", "--json", "--seconds", "5", "--seed", "9"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "tidegate.storm/1"
    assert document["source"] == "our own storm"
    assert document["repeat"] == "tidegate lab storm --seconds 5 --seed 9"
    assert document["seeds"][0] == 9
    assert len(document["runs"]) == 4


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no-such.yaml"], "there is no such file"),
        (["{file}", "--html", "{file}"], "would overwrite the input"),
        (["--html", "{file}/deep/page.html"], "there is no folder"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], says: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [argument.replace("{file}", str(file)) for argument in arguments]
    assert main(["lab", "storm", *given]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.count("\n") == 1
    assert says in streams.err
    assert file.read_text() == SMALL


@pytest.mark.parametrize(
    "arguments",
    [["--seconds", "4"], ["--seconds", "601"], ["--seconds", "x"], ["--seed", "-1"], ["drizzle"]],
)
def test_options_have_bounds(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    what = [] if arguments == ["drizzle"] else ["storm"]
    with pytest.raises(SystemExit) as stopped:
        main(["lab", *what, *arguments])
    assert stopped.value.code == 2
    assert "usage: tidegate lab" in capsys.readouterr().err
