"""The whole audit of a folder, as a report."""

from pathlib import Path

import msgspec
import pytest

from tidegate.analysis.source.audit import RULES, audit
from tidegate.errors import InputError

NESTED = {
    "app/__init__.py": "",
    "app/http.py": """\
import requests
from requests.adapters import HTTPAdapter
from urllib3 import Retry

session = requests.Session()
session.mount("https://", HTTPAdapter(max_retries=Retry(2, backoff_factor=1, backoff_jitter=1)))


def fetch(url):
    return session.get(url, timeout=2)
""",
    "app/main.py": """\
import stamina

from app.http import fetch


@stamina.retry(on=OSError, attempts=3)
def load():
    return fetch("https://a.example/")
""",
}


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_retries_are_followed_from_file_to_file(tmp_path: Path) -> None:
    report = audit([tree(tmp_path, NESTED)])
    assert [f.rule for f in report.findings] == ["nested-retries"]
    finding = report.findings[0]
    assert finding.file.endswith("app/main.py")
    assert (finding.line, finding.column) == (6, 2)
    assert finding.attempts == 9
    assert [(s.library, s.attempts) for s in finding.path] == [("stamina", "3"), ("urllib3", "3")]
    assert (report.files, report.lines, report.exit_code) == (3, 18, 1)


def test_a_finding_of_many_files_may_be_allowed_where_it_stands(tmp_path: Path) -> None:
    main = NESTED["app/main.py"].replace(
        "@stamina", "# tidegate: allow nested-retries because the inner one only connects\n@stamina"
    )
    report = audit([tree(tmp_path, NESTED | {"app/main.py": main})])
    assert report.findings == []
    assert [a.reason for a in report.allowed] == ["the inner one only connects"]
    assert report.exit_code == 0


@pytest.mark.parametrize(("fail_on", "code"), [("error", 0), ("warning", 1), ("note", 1)])
def test_from_which_severity_on_it_fails(tmp_path: Path, fail_on: str, code: int) -> None:
    file = tmp_path / "a.py"
    file.write_text("import requests\nrequests.get('u')\n")
    assert audit([file], fail_on=fail_on).exit_code == code  # type: ignore[arg-type]


def test_notes_alone_do_not_fail(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("import openai\nopenai.OpenAI()\n")
    assert audit([file]).exit_code == 0
    assert audit([file], fail_on="note").exit_code == 1


def test_bad_files_cost_only_themselves(tmp_path: Path) -> None:
    deep = "def f():\n    return " + "(" * 80 + "1" + ")" * 80 + "\n"
    tree(tmp_path, {"a.py": "import requests\nrequests.get('u')\n", "b.py": "x ="})
    (tmp_path / "c.py").write_bytes(b"\x00")
    (tmp_path / "d.py").write_text(deep)
    report = audit([tmp_path])
    assert [f.rule for f in report.findings] == ["no-timeout"]
    assert [Path(u.file).name for u in report.unread] == ["b.py", "c.py"]


def test_code_that_is_too_deep_for_us_is_told(tmp_path: Path) -> None:
    tree(tmp_path, {"a.py": "x = 1\n", "b.py": f"for x in range(1{'+1' * 900}):\n    f(x)\n"})
    report = audit([tmp_path])
    assert [u.says for u in report.unread] == ["is nested too deeply"]


def test_code_that_was_made_to_have_no_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.analysis.source.names._WORK_MAX", 10_000)
    doubled = "".join(f"x{i} = x{i + 1} + x{i + 1}\n" for i in range(40))
    code = f"{doubled}for attempt in range(x0):\n    pass\n"
    tree(tmp_path, {"a.py": "x = 1\n", "b.py": code})
    assert [u.says for u in audit([tmp_path]).unread] == ["is nested too deeply"]


def test_nothing_that_can_be_read_is_bad_input(tmp_path: Path) -> None:
    tree(tmp_path, {"a.py": "x ="})
    with pytest.raises(InputError, match=r"a\.py is no Python 3"):
        audit([tmp_path])


def test_a_default_timeout_anywhere_covers_the_standard_library(tmp_path: Path) -> None:
    code = "import requests\nfrom urllib.request import urlopen\nurlopen('u')\nrequests.get('u')\n"
    tree(tmp_path, {"a.py": code})
    assert len(audit([tmp_path]).findings) == 2
    tree(tmp_path, {"b.py": "import socket\nsocket.setdefaulttimeout(9)\n"})
    assert ["requests" in f.says for f in audit([tmp_path]).findings] == [True]


def test_columns_are_counted_in_characters(tmp_path: Path) -> None:
    tree(tmp_path, {"a.py": "import requests\nü = 'äö'; requests.get('u')\n"})
    assert [(f.line, f.column) for f in audit([tmp_path]).findings] == [(2, 11)]


def test_progress_is_told_and_the_order_is_fixed(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    tree(tmp_path, NESTED)
    one = audit([tmp_path], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 3), (1, 3), (2, 3)]
    assert msgspec.json.encode(one) == msgspec.json.encode(audit([tmp_path]))


def test_every_rule_has_a_name_of_its_own_and_whole_sentences() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert all(text.endswith(".") and text.count(".") >= 1 for text in rule[2:])
