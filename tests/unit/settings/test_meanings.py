"""Every key is explained once, its example reads, and the page in the docs says the same."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tidegate.settings.decode import Decoder
from tidegate.settings.load import loads
from tidegate.settings.meanings import MEANINGS
from tidegate.settings.policies import Settings
from tidegate.settings.shapes import fields, records
from tidegate.settings.system import System
from tidegate.settings.yaml_nodes import Keys, read_text

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "system-file.md").read_text("utf-8")
MARKETPLACE = Path(__file__).parent / "data" / "marketplace.yaml"
KEYS = [(kind, key) for kind in records(System) for key in fields(kind)]


def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tables", DOCS / "system_file_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_key_has_its_meaning_and_no_other() -> None:
    assert {kind: list(keys) for kind, keys in MEANINGS.items()} == {
        kind: list(fields(kind)) for kind in records(System)
    }


@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_its_example_reads(kind: type[Settings], key: str) -> None:
    root = read_text(f"{key}: {MEANINGS[kind][key].example}", "example").node
    assert isinstance(root, Keys)
    decoder = Decoder("example")
    decoder.value(fields(kind)[key].shape, root.entries[key], (key,), None)
    assert decoder.unknowns == []


@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_the_page_has_the_key(kind: type[Settings], key: str) -> None:
    table = PAGE.partition(f"<!-- keys: {kind.__name__} -->")[2].partition("<!-- end -->")[0]
    assert f"| `{key}` | {MEANINGS[kind][key].says}" in table


def test_the_tables_are_those_of_the_records() -> None:
    fresh = tables().rewritten(PAGE)
    assert fresh == PAGE, "run docs/system_file_tables.py"


def test_the_page_opens_with_the_marketplace_and_its_blocks_read() -> None:
    first, *others = re.findall(r"(?s)```yaml\n(.*?)```", PAGE)
    assert first == MARKETPLACE.read_text("utf-8")
    assert others
    for block in others:
        lines = [f"  {line}" for line in block.splitlines()]
        for line in lines:  # each is a key of a client, a service or a call
            assert any(reads(line, kind) for kind in MEANINGS), line


def reads(line: str, kind: type[Settings]) -> bool:
    root = read_text(line, "page").node
    assert isinstance(root, Keys)
    (key,) = root.entries
    if key not in fields(kind):
        return False
    decoder = Decoder("page")
    decoder.value(fields(kind)[key].shape, root.entries[key], (key,), None)
    return len(decoder.unknowns) == 1


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("services: {s: {queue: 100}}", "services: {s: {queue: {limit: 100}}}"),
        ("services: {s: {time: 5ms}}", "services: {s: {time: {mean: 5ms}}}"),
    ],
)
def test_the_shorthands_of_the_page_are_true(written: str, meant: str) -> None:
    clients = "clients: {u: {rate: 1/s, calls: {s: {}}}}\n"
    assert loads(clients + written).system() == loads(clients + meant).system()
