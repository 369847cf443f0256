"""The JSON Schema holds for every example. What it refuses is beside the reader's refusals."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tidegate.settings.meanings import MEANINGS
from tidegate.settings.schema import schema
from tidegate.settings.shapes import fields, records
from tidegate.settings.system import System

ROOT = Path(__file__).parents[3]
VALIDATOR = jsonschema.Draft202012Validator(schema())


def test_it_is_a_schema_and_json() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert json.loads(json.dumps(schema())) == schema()


@pytest.mark.parametrize(
    "path",
    [*(ROOT / "examples").rglob("*.yaml"), *(Path(__file__).parent / "data").glob("*.yaml")],
    ids=lambda path: path.name,
)
def test_every_example_holds(path: Path) -> None:
    VALIDATOR.validate(yaml.safe_load(path.read_text("utf-8")))


def test_every_key_is_described_and_no_other_allowed() -> None:
    definitions = schema()["$defs"]
    for kind in records(System):
        found = definitions[kind.__name__]
        assert found["additionalProperties"] is False
        assert list(found["properties"]) == list(fields(kind))
        for key, value in found["properties"].items():
            assert value["description"] == MEANINGS[kind][key].says
        assert found["description"].endswith((".", ":", "`", "?")), found["description"]


def test_defaults_are_written_as_in_a_file() -> None:
    breaker = schema()["$defs"]["Breaker"]["properties"]
    assert (breaker["failures"]["default"], breaker["window"]["default"]) == ("50%", "10s")


def test_blank_is_offered_only_where_it_means_something() -> None:
    definitions = schema()["$defs"]
    blank = {
        f"{name}.{key}"
        for name, record in definitions.items()
        for key, value in record["properties"].items()
        if "unknown" in json.dumps(value)
    }
    assert blank == {
        "Client.rate",
        "Service.workers",
        "Service.time",
        "Service.queue",
        "Service.refusal_cost",
        "Call.timeout",
        "Queue.limit",
        "Time.mean",
    }
