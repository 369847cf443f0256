"""`tidegate check` of source code: what it prints, where, and its exit code."""

import json
from pathlib import Path

import pytest

from tidegate.cli.main import main

BAD = "import requests\nrequests.get('u')\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text(BAD)
    (tmp_path / "src" / "b.py").write_text("x = 1\n")
    return tmp_path


def test_a_finding_exits_with_1_and_nothing_with_0(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(tree / "src")]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("1 warning in 2 files, 3 lines\n")
    assert f"{tree}/src/a.py:2:1: warning: no-timeout\n" in out
    assert err == ""
    assert main(["check", str(tree / "src" / "b.py")]) == 0
    assert capsys.readouterr().out == "NOTHING FOUND in 1 file, 1 line\n"


def test_how_bad_a_finding_must_be(tree: Path) -> None:
    assert main(["check", str(tree / "src"), "--fail-on", "error"]) == 0
    assert main(["check", str(tree / "src"), "--fail-on", "warning"]) == 1


def test_other_forms(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tree / "out.sarif"
    assert main(["check", str(tree / "src"), "--json", "--sarif", str(target)]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["rule"] == "no-timeout"
    assert json.loads(target.read_text())["version"] == "2.1.0"
    main(["check", str(tree / "src"), "--sarif", str(target)])
    assert capsys.readouterr().out.endswith(f"sarif     {target}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["src/gone.py"], "src/gone.py: cannot be read"),
        (["src", "system.yaml"], "found src and system.yaml"),
        (["src", "--html", "x.html"], "--html goes with a system"),
        (["src", "--write", "x.yaml"], "--write goes with a system"),
        (["src", "--fail-on", "vulnerable"], "--fail-on vulnerable goes with a system"),
        (["system.yaml", "--fail-on", "error"], "--fail-on error goes with source code"),
        (["system.yaml", "--sarif", "x"], "--sarif goes with source code"),
        (["src", "--sarif", "src/a.py"], "would overwrite source code"),
        (["src", "--sarif", "gone/x.sarif"], "there is no folder"),
        (["empty"], "empty: no Python files"),
        (["broken.py"], "broken.py is no Python 3"),
    ],
)
def test_bad_input_is_one_sentence(
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tree)
    (tree / "empty").mkdir()
    (tree / "broken.py").write_text("x =")
    (tree / "system.yaml").write_text("tidegate: 1\n")
    assert main(["check", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert (tree / "src" / "a.py").read_text() == BAD


def test_an_unknown_level_is_told_with_those_that_there_are(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", str(tree / "src"), "--fail-on", "bad"])
    assert ended.value.code == 2
    assert "expected one of vulnerable, error, warning, note" in capsys.readouterr().err
