"""A Kafka sink without the package for it: `spool run` said "a bug of ours", exit code 3."""

import sys
from pathlib import Path

import pytest

from tidegate.cli.main import main

FILE = """\
tidegate: 1
spool: {listen: "127.0.0.1:0", lanes: {events: {to: "kafka://127.0.0.1:1/events"}}}
"""


def test_it_is_bad_input_and_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    monkeypatch.delitem(sys.modules, "tidegate.spooler.sinks.kafka", raising=False)
    file = tmp_path / "spool.yaml"
    file.write_text(FILE)
    assert main(["spool", "run", str(file)]) == 2
    assert "pip install 'tidegate[kafka]'" in capsys.readouterr().err
