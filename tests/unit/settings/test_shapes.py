"""The records, as the reader, the writer, the schema and the docs see them."""

from tidegate.settings.policies import Budget, Limit, Queue
from tidegate.settings.shapes import (
    Block,
    Choice,
    Flag,
    Named,
    Number,
    Version,
    Word,
    fields,
    records,
)
from tidegate.settings.system import Call, Client, Service, System, Trigger
from tidegate.units import SECOND


def test_each_annotation_has_its_shape() -> None:
    call, service = fields(Call), fields(Service)
    assert call["to"].shape == Word()
    assert call["optional"].shape == Flag()
    assert call["timeout"].shape == Number("duration")
    assert call["per_request"].shape == Number("per_request")
    assert call["retry_on"].shape == Choice(("timeout", "failure", "overloaded"), many=True)
    assert call["budget"].shape == Block(Budget)
    assert service["calls"].shape == Named(Call)
    assert service["balance"].shape == Choice(
        ("round_robin", "random", "least_loaded", "shared_queue")
    )
    assert fields(System)["tidegate"].shape == Version()


def test_defaults_and_what_must_be_given() -> None:
    assert fields(Client)["calls"].required
    assert not fields(Service)["calls"].required
    assert fields(Service)["calls"].default == {}
    assert fields(Service)["queue"].default == Queue()
    assert fields(Budget)["window"].default == 10 * SECOND


def test_a_key_that_python_cannot_spell_keeps_its_name_in_the_file() -> None:
    assert fields(Trigger)["for"].name == "for_"


def test_every_record_below_the_system_is_found_once() -> None:
    found = list(records(System))
    assert len(found) == len(set(found))
    assert {System, Client, Service, Call, Queue, Limit, Trigger} <= set(found)
