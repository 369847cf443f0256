"""A spool's settings refuse what cannot work, and say it by the key's name."""

import pytest

from tidegate.errors import SettingsError
from tidegate.settings.spool import Bounds, Door, Fleet, Gate, Lane, Pace, Spool, Turns
from tidegate.units import SECOND

LANE = Lane(to="file:out.jsonl")


@pytest.mark.parametrize(
    ("record", "change", "key"),
    [
        (Bounds(), {"bytes": 10}, "bytes"),
        (Bounds(), {"free": 1.0}, "free"),
        (Bounds(), {"age": SECOND}, "age"),
        (Bounds(), {"records": 0}, "records"),
        (Bounds(), {"full": "explode"}, "full"),
        (Bounds(), {"low": 0.0}, "low"),
        (Gate(), {"hold": -1}, "hold"),
        (Gate(), {"look": 1}, "look"),
        (Gate(), {"stale": 6 * SECOND}, "stale"),
        (Gate(), {"calm": 1.0}, "calm"),
        (Gate(), {"errors": 1.5}, "errors"),
        (Gate(), {"brokers": 0}, "brokers"),
        (Pace(), {"speed": "normla"}, "speed"),
        (Pace(), {"cap": 0.0}, "cap"),
        (Pace(), {"start": 0.0}, "start"),
        (Pace(), {"step": 2.0}, "step"),
        (Pace(), {"cut": 1.0}, "cut"),
        (Pace(), {"pause": 1}, "pause"),
        (Turns(), {"leases": 0}, "leases"),
        (Turns(), {"ttl": 1}, "ttl"),
        (Turns(), {"slice": 1}, "slice"),
        (Turns(), {"amount": 1}, "amount"),
        (Turns(), {"lost": "panic"}, "lost"),
        (Turns(), {"through": "slots"}, "members"),
        (Turns(through="slots", members=9), {"slice": 9 * SECOND}, "slice"),
        (Pace(), {"least": 0}, "least"),
        (Turns(), {"members": 0}, "members"),
        (Fleet(rate=1.0), {"collectors": 0}, "collectors"),
        (Fleet(rate=1.0), {"rate": 0.0}, "rate"),
        (Fleet(rate=1.0), {"record": 0}, "record"),
        (Fleet(rate=1.0), {"capacity": 0.0}, "capacity"),
        (Fleet(rate=1.0), {"brokers": 0}, "brokers"),
        (Fleet(rate=1.0), {"outage": 1}, "outage"),
        (Fleet(rate=1.0), {"speed": 0.0}, "speed"),
        (Fleet(rate=1.0), {"sick": 0.0}, "sick"),
        (Fleet(rate=1.0), {"within": 1}, "within"),
        (LANE, {"durable": "maybe"}, "durable"),
        (LANE, {"order": "any"}, "order"),
        (LANE, {"codec": "gzip"}, "codec"),
        (LANE, {"interval": 1}, "interval"),
        (LANE, {"batch": 1}, "batch"),
        (LANE, {"timeout": 1}, "timeout"),
        (LANE, {"share": 1.1}, "share"),
        (Door(), {"body": 1}, "body"),
        (Door(), {"record": 1}, "record"),
        (Door(), {"record": 10**7, "body": 10**6}, "record"),
        (Door(), {"rate": 0.0}, "rate"),
        (Spool(lanes={"events": LANE}), {"lanes": {}}, "lanes"),
    ],
)
def test_what_cannot_work_is_refused_by_name(record, change: dict[str, object], key: str) -> None:
    good = {name: getattr(record, name) for name in record.__struct_fields__}
    with pytest.raises(SettingsError) as refused:
        type(record)(**{**good, **change})
    assert refused.value.path == (key,)


def test_shares_of_the_disk_are_at_most_the_disk() -> None:
    half = Lane(to="file:a", share=0.6)
    with pytest.raises(SettingsError, match="add up to at most 100%"):
        Spool(lanes={"a": half, "b": half})


@pytest.mark.parametrize("name", ["..", "a/b", "", ".hidden", "a b", "a\nb", "ü", "x" * 101])
def test_a_name_that_is_no_folder_and_no_path_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="expected a name of letters") as refused:
        Spool(lanes={name: LANE})
    assert len(str(refused.value)) < 400
    with pytest.raises(SettingsError, match="expected a name of letters"):
        Spool(lanes={"events": LANE}, collector=name)
