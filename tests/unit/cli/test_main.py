"""The command line as a person meets it: what it prints, where, and its exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from trace_maker import TraceMaker

from tidegate import __version__
from tidegate.analysis.ingest.write import spans_to_otlp
from tidegate.cli.main import main
from tidegate.settings.load import loads

CALM = """\
tidegate: 1
clients:
  users: {rate: 20/s, calls: {web: {timeout: 2s}}}
services:
  web: {workers: 10, time: 50ms, queue: 100}
triggers:
  pause: {service: web, freeze: true, for: 1s}
"""
STORM = """\
tidegate: 1
clients:
  users: {rate: 140/s, calls: {web: {timeout: 500ms, attempts: 4}}}
services:
  web: {workers: 8, time: 40ms}
triggers:
  stall: {service: web, freeze: true, for: 10s}
"""


@pytest.fixture
def calm(tmp_path: Path) -> Path:
    path = tmp_path / "calm.yaml"
    path.write_text(CALM)
    return path


@pytest.fixture
def storm(tmp_path: Path) -> Path:
    path = tmp_path / "storm.yaml"
    path.write_text(STORM)
    return path


def check(path: Path, *more: str) -> int:
    return main(["check", str(path), "--processes", "1", *more])


@pytest.mark.slow  # a calm system is simulated ten times: half a second
def test_a_calm_system_is_stable_and_exits_with_0(
    calm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(calm) == 0
    out, err = capsys.readouterr()
    assert out.startswith("STABLE")
    assert err == ""  # nothing is shown of the progress when nobody watches


@pytest.mark.slow  # a storm is simulated a dozen times: seconds
def test_a_storm_is_a_finding_and_exits_with_1(
    storm: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "storm.html"
    assert check(storm, "--json", "--html", str(page)) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["format"] == "tidegate.check/1"
    assert (report["verdict"], report["exit_code"]) == ("fails", 1)
    assert report["stays"] == ["stall"]
    assert "backoff" in " ".join(cure["cure"] for cure in report["cures"] if not cure["cures"])
    assert any(cure["cures"] and cure["confirmed"] for cure in report["cures"])
    assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.slow  # twice the runs of a calm system
def test_the_same_command_prints_the_same_report(
    calm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []
    for _ in range(2):
        check(calm, "--json")
        report = json.loads(capsys.readouterr().out)
        report.pop("cpu_seconds")
        seen.append(report)
    assert seen[0] == seen[1]


BAD = {
    "an unknown key": ("workers: 10", "workrs: 10", "did you mean 'workers'"),
    "a bare number": ("timeout: 2s", "timeout: 2", "unit"),
    "a wrong unit": ("rate: 20/s", "rate: 20ms", "600/s"),
    "no such service": ("calls: {web:", "calls: {wev:", "'web'"),
    "a zero rate": ("rate: 20/s", "rate: 0/s", "above zero"),
    "not a number": ("time: 50ms", "time: .nan", "duration"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_sentence_and_2(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after, hint = BAD[name]
    path = tmp_path / "bad.yaml"
    path.write_text(CALM.replace(before, after))
    assert check(path) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"tidegate: {path}:")
    assert hint in err


FILES: dict[str, bytes] = {
    "empty.yaml": b"",
    "binary.yaml": bytes(range(256)),
    "bomb.yaml": b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
    "large.yaml": b"# x\n" * 2_600_000,
    "list.yaml": b"- 1\n- 2\n",
    "empty.json": b"",
    "broken.json": b'{"resourceSpans": [{',
    "other.json": b'{"hello": "world"}',
    "binary.json": bytes(range(256)),
    "text.json": b"not json at all",
    "nothing.json": b'{"resourceSpans": []}',
}


@pytest.mark.parametrize("name", FILES)
def test_no_file_ends_in_a_traceback(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name])
    assert check(path) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert str(path) in err


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path / "gone.yaml") == 2
    assert "gone.yaml" in capsys.readouterr().err


def test_a_directory_is_no_system_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_two_system_files_are_one_too_many(
    calm: Path, storm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(calm), str(storm)]) == 2
    assert "expected one system file" in capsys.readouterr().err


def test_write_goes_with_traces(
    calm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(calm, "--write", str(tmp_path / "out.yaml")) == 2
    assert "--write goes with traces" in capsys.readouterr().err
    assert not (tmp_path / "out.yaml").exists()


@pytest.mark.parametrize("arguments", [["--seed", "x"], ["--seed", "-1"], ["--processes", "0"]])
def test_a_bad_option_is_refused(
    arguments: list[str], calm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["check", str(calm), *arguments])
    assert left.value.code == 2
    assert "expected a" in capsys.readouterr().err


def test_nothing_that_is_read_is_overwritten(
    calm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = calm.read_text()
    link, hard = tmp_path / "link.yaml", tmp_path / "hard.yaml"
    link.symlink_to(calm)
    hard.hardlink_to(calm)
    for target in (calm, link, hard, tmp_path / "." / calm.name):
        assert check(calm, "--html", str(target)) == 2
        assert "would overwrite the input" in capsys.readouterr().err
    assert calm.read_text() == text
    traces = tmp_path / "traces.json"
    traces.write_text("{}")
    assert check(traces, "--write", str(traces)) == 2
    assert traces.read_text() == "{}"
    twice = str(tmp_path / "out")
    assert check(traces, "--write", twice, "--html", twice) == 2
    assert "what --write writes" in capsys.readouterr().err


def test_a_page_for_no_folder_is_refused_before_anything_is_run(
    calm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(calm, "--html", str(tmp_path / "no" / "page.html")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "there is no folder" in err


def test_a_name_with_an_escape_sequence_stays_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(tmp_path / "a\nb\x1b[31m.yaml") == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_init_writes_a_file_that_check_reads_and_never_overwrites(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "system.yaml"
    assert main(["init", str(path)]) == 0
    text = path.read_text()
    assert "tidegate check" in capsys.readouterr().out
    assert main(["init", str(path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert path.read_text() == text
    assert main(["init"]) == 0
    assert capsys.readouterr().out == text
    assert yaml.safe_load(text)["tidegate"] == 1


def test_init_into_nowhere_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "no" / "such" / "folder.yaml")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert "$defs" in json.loads(capsys.readouterr().out)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"tidegate {__version__}\n"


def test_a_system_that_cannot_be_written_is_said_before_anything_is_simulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.analysis.check.Check.run", None)  # to run it would be a TypeError
    traces = tmp_path / "traces.json"
    traces.write_text(json.dumps(spans_to_otlp(TraceMaker(loads(CALM).system()).run(1))))
    assert check(traces, "--write", str(tmp_path / "no" / "system.yaml")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tidegate: cannot write")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [traces]


@pytest.mark.slow  # a calm system is simulated ten times: half a second
def test_a_page_that_cannot_be_written_does_not_cost_the_report(
    calm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    page.mkdir()
    assert check(calm, "--html", str(page)) == 2
    out, err = capsys.readouterr()
    assert out.startswith("STABLE")
    assert "charts" not in out
    assert err.startswith("tidegate: cannot write")
    assert err.count("\n") == 1


def test_our_own_bug_is_said_in_a_sentence_and_exits_with_3(
    calm: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> object:
        raise RuntimeError("planted")

    monkeypatch.setattr("tidegate.analysis.check.Check.run", broken)
    assert check(calm) == 3
    err = capsys.readouterr().err
    assert "RuntimeError: planted" in err
    assert err.count("\n") == 1
    monkeypatch.setenv("TIDEGATE_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        check(calm)


def test_a_reader_who_leaves_is_no_error(calm: Path) -> None:
    """`tidegate schema | head -1` ends without a word."""
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [sys.executable, "-m", "tidegate", "schema"], stdout=writer, stderr=subprocess.PIPE
    ) as process:
        os.close(writer)
        _, err = process.communicate()
    assert err == b""
    assert process.returncode == 0
