"""`replicas: 1 of 3` was refused: a trigger could not say how many of how many it hits."""

import jsonschema
import pytest
import yaml

from tidegate.analysis.assumed import in_words
from tidegate.errors import SettingsError
from tidegate.settings.dump import dump
from tidegate.settings.load import loads
from tidegate.settings.schema import schema
from tidegate.settings.system import System

TEXT = """\
tidegate: 1
clients: {u: {rate: 1/s, calls: {shop: {}}}}
services: {shop: {replicas: 3, workers: 5, time: 10ms}}
triggers: {one gone: {service: shop, replicas: 1 of 3, freeze: true, for: 10s}}
"""


def read(written: str) -> System:
    return loads(TEXT.replace("1 of 3", written)).system()


def test_both_numbers_are_read_shown_and_written_back() -> None:
    system = read("1 of 3")
    trigger = system.triggers["one gone"]
    assert (trigger.replicas, trigger.of) == (1, 3)
    assert in_words(trigger) == "shop (1 of its 3 replicas) frozen for 10s"
    assert "replicas: 1 of 3," in dump(system)
    assert loads(dump(system)).system() == system == read("1, of: 3")


def test_one_number_alone_is_read_as_before() -> None:
    trigger = read("1").triggers["one gone"]
    assert (trigger.replicas, trigger.of) == (1, None)
    assert in_words(trigger) == "shop (1 of its replicas) frozen for 10s"


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("1 of 4", "triggers.one gone.replicas: it says 1 of 4, but shop has 3 replicas"),
        ("4 of 3", "triggers.one gone.replicas: expected at most the 3 that there are, found '4"),
        ("0 of 3", "triggers.one gone.replicas: expected a whole number from 1 to 10000"),
        ("1 of three", "triggers.one gone.of: expected a whole number"),
        ("1 of 3, of: 3", "triggers.one gone.of: expected replicas to say it all"),
    ],
)
def test_what_does_not_fit_is_one_sentence_at_its_place(written: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(written)
    assert str(refused.value).startswith("<string>:4:")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_of_how_many_alone_is_refused() -> None:
    with pytest.raises(SettingsError, match="expected replicas beside it"):
        loads(TEXT.replace("replicas: 1 of 3", "of: 3")).system()


def test_an_editor_takes_what_the_reader_takes() -> None:
    validator = jsonschema.Draft202012Validator(schema())
    for written in ("1 of 3", "1", "2"):
        validator.validate(yaml.safe_load(TEXT.replace("1 of 3", written)))
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(yaml.safe_load(TEXT.replace("1 of 3", "1 from 3")))
