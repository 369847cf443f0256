"""The document is stable, rounded, and what its schema and its page say it is."""

import json as standard
import math
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from msgspec.structs import replace
from sample_reports import SAMPLES, marketplace, stable

from tidegate import findings
from tidegate.errors import InvariantError
from tidegate.report import json

# A validator in Python takes a second over a megabyte.
EVERY = [pytest.param(n, marks=pytest.mark.slow if n == "big" else ()) for n in SAMPLES]
DOCS = Path(__file__).parents[3] / "docs"


def document(name: str = "marketplace") -> Any:
    return standard.loads(json.render(SAMPLES[name]()))


@pytest.mark.parametrize("name", EVERY)
def test_every_document_obeys_the_schema(name: str) -> None:
    jsonschema.Draft202012Validator(json.schema()).validate(document(name))


@pytest.mark.parametrize("name", EVERY)
def test_it_can_be_read_back_and_written_again(name: str) -> None:
    text = json.render(SAMPLES[name]())
    again = msgspec.json.decode(text, type=findings.CheckReport)
    assert json.render(again) == text
    assert text.endswith("}\n")
    assert text.count("\n") == 1


def test_fields_stand_in_the_order_of_the_record() -> None:
    assert tuple(document()) == findings.CheckReport.__struct_fields__
    assert document()["format"] == "tidegate.check/1"


def test_triggers_of_a_cure_stand_in_a_fixed_order() -> None:
    cure = marketplace().cures[0]
    outcomes = list(cure.by_trigger.items())
    turned = replace(cure, by_trigger=dict(reversed(outcomes)))
    first, second = (json.render(replace(stable(), cures=[c])) for c in (cure, turned))
    assert first == second


def test_figures_have_six_digits() -> None:
    report = replace(stable(), cpu_seconds=1234.56789, harm_ratio=1 / 3)
    read = standard.loads(json.render(report))
    assert (read["cpu_seconds"], read["harm_ratio"]) == (1234.57, 0.333333)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_figure_is_a_bug_of_ours_and_is_named(value: float) -> None:
    service = replace(stable().services[0], load=value)
    with pytest.raises(InvariantError, match=r"report\.services\[0\]\.load"):
        json.render(replace(stable(), services=[service]))


def test_a_file_name_that_is_no_utf_8_is_spelled_out() -> None:
    read = standard.loads(json.render(replace(stable(), source="name\udce9.yaml")))
    assert read["source"] == r"name\udce9.yaml"


def test_the_schema_refuses_another_version_and_another_verdict() -> None:
    check = jsonschema.Draft202012Validator(json.schema())
    for change in ({"format": "tidegate.check/2"}, {"verdict": "fine"}, {"seeds": None}):
        assert not check.is_valid(document("stable") | change)


def test_the_schema_in_the_docs_is_today_s() -> None:
    written = (DOCS / "check-report.schema.json").read_text("utf-8")
    assert written == json.schema_text(), "run: .venv/bin/python docs/report_schema.py"


def records() -> dict[str, type[msgspec.Struct]]:
    every = (getattr(findings, name) for name in findings.__all__)
    return {record.__name__: record for record in every}


def documented() -> dict[str, list[str]]:
    """The fields that `docs/report.md` describes, by the heading they stand under."""
    sections = re.split(r"^## ", (DOCS / "report.md").read_text("utf-8"), flags=re.MULTILINE)
    return {
        section.split("\n")[0]: re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
        for section in sections
        if section.split("\n")[0] in records()
    }


def test_the_page_describes_every_field_of_every_record_in_order() -> None:
    assert documented() == {
        name: list(record.__struct_fields__) for name, record in records().items()
    }
