"""Does our own source code pass the audit that we offer for others?"""

from pathlib import Path

from tidegate.analysis.source.audit import audit

ROOT = Path(__file__).parents[2]


def test_our_own_retries_and_timeouts_are_in_order() -> None:
    report = audit([ROOT / "src"], fail_on="note")
    assert [f"{f.file}:{f.line}: {f.rule}: {f.says}" for f in report.findings] == []
    assert report.unread == []


def test_a_planted_fault_is_seen(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("import requests\nrequests.get('https://a.example/')\n")
    assert audit([tmp_path]).exit_code == 1
