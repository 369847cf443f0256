"""What answers of JetStream mean, as they come over the wire."""

import json
from typing import Any

import pytest

from tidegate.core.health import Partition, View
from tidegate.core.outcome import FAILURE, OVERLOADED
from tidegate.spooler.sinks.nats_answers import Answer, judged, read_answer, seen
from tidegate.spooler.sinks.sink import DELIVERED

MS = 1_000_000


def error(code: int, err_code: int) -> Answer:
    said = {"code": code, "err_code": err_code, "description": "so it is"}
    return read_answer(json.dumps({"error": said, "stream": "E", "seq": 0}).encode())


def group(*replicas: dict[str, Any], leader: str | None = "n1") -> Answer:
    cluster = {"name": "c", "raft_group": "g", "replicas": list(replicas)}
    if leader is not None:
        cluster["leader"] = leader
    config = {"name": "E", "num_replicas": 3, "subjects": ["e"]}
    return read_answer(json.dumps({"config": config, "cluster": cluster}).encode())


def test_an_acknowledgement_is_delivered_also_of_what_came_before() -> None:
    taken = read_answer(b'{"stream":"E","seq":7,"duplicate":true}')
    assert judged(taken.error) is DELIVERED


@pytest.mark.parametrize(
    ("code", "err_code", "outcome", "poison", "starved"),
    [
        (503, 10077, OVERLOADED, False, False),  # maximum messages exceeded
        (503, 10023, OVERLOADED, False, False),  # insufficient resources
        (429, 10167, OVERLOADED, False, False),  # too many requests
        (400, 10054, FAILURE, True, False),  # message size exceeds maximum allowed
        (503, 10008, FAILURE, False, True),  # JetStream system temporarily unavailable
        (409, 10158, FAILURE, False, True),  # duplicate message id is in process
        (400, 10060, FAILURE, False, False),  # expected stream does not match
    ],
)
def test_an_error_is_told_by_its_number(
    code: int, err_code: int, outcome: int, poison: bool, starved: bool
) -> None:
    sent = judged(error(code, err_code).error)
    assert (sent.outcome, sent.poison, sent.starved) == (outcome, poison, starved)
    assert sent.why == f"so it is ({err_code})"


def view(in_sync: int, leader: str | None = "n1", *, brokers: int) -> View:
    return View("h:1", "c", "", brokers, (Partition("E", leader, 3, in_sync),))


def test_a_follower_is_in_step_when_it_was_heard_of_and_is_hardly_behind() -> None:
    well = {"name": "n2", "current": True, "active": 1000 * MS}
    under_way = {"name": "n3", "current": False, "active": 2 * MS, "lag": 40}
    dead = {"name": "n3", "current": True, "active": 3001 * MS}
    gone = {"name": "n3", "current": False, "active": 1, "offline": True}
    behind = {"name": "n3", "current": False, "active": 2 * MS, "lag": 50_000}
    assert seen(group(well, under_way), "h:1", "E", 3) == view(3, brokers=3)
    assert seen(group(well, dead), "h:1", "E", 3) == view(2, brokers=2)
    assert seen(group(well, gone), "h:1", "E", 3) == view(2, brokers=2)
    assert seen(group(well, behind), "h:1", "E", 3) == view(2, brokers=3)


def test_without_a_leader_and_without_a_stream_there_is_none() -> None:
    well = {"name": "n2", "current": True, "active": 1000 * MS}
    assert seen(group(well, well, leader=None), "h:1", "E", 3) == view(2, None, brokers=2)
    missing = View("h:1", partitions=(Partition("e.o", None, 3, 0),))
    assert seen(error(404, 10059), "h:1", "e.o", 3) == missing


def test_a_server_alone_leads_itself() -> None:
    alone = read_answer(b'{"config":{"name":"E","num_replicas":1}}')
    assert seen(alone, "h:1", "E", 1).partitions == (Partition("E", "h:1", 1, 1),)
