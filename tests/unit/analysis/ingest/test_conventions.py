"""Attributes of every age say the same: whom, what, how it ended."""

from typing import Any

import pytest

from tidegate.analysis.ingest.conventions import (
    ending_of,
    host_name,
    kind_of,
    name_of,
    peer_of,
    resend_of,
    sampled_share,
)
from tidegate.analysis.ingest.span import NO_RESEND, Ending, Kind


@pytest.mark.parametrize("written", [3, 3.0, "3", "client", "CLIENT", "SPAN_KIND_CLIENT", "Client"])
def test_a_kind_in_every_spelling(written: Any) -> None:
    assert kind_of(written) is Kind.CLIENT


@pytest.mark.parametrize("written", [None, "", "x", 6, -1, True, "SPAN_KIND_UNSPECIFIED", [], "²"])
def test_no_kind(written: Any) -> None:
    assert kind_of(written) is Kind.UNKNOWN


@pytest.mark.parametrize(
    ("tags", "failed", "ending"),
    [
        ({}, False, Ending.OK),
        ({}, True, Ending.BROKEN),
        ({"http.response.status_code": 200}, False, Ending.OK),
        ({"http.status_code": "404"}, True, Ending.OK),
        ({"http.response.status_code": 200}, True, Ending.FAILED),
        ({"http.response.status_code": 500}, False, Ending.FAILED),
        ({"http.response.status_code": 503}, True, Ending.OVERLOADED),
        ({"http.status_code": 429}, True, Ending.OVERLOADED),
        ({"http.status_code": 504}, True, Ending.TIMEOUT),
        ({"http.status_code": 0}, True, Ending.BROKEN),
        ({"http.response.status_code": 500, "http.status_code": 200}, True, Ending.FAILED),
        ({"error.type": "503"}, True, Ending.OVERLOADED),
        ({"error.type": "java.net.SocketTimeoutException"}, True, Ending.TIMEOUT),
        ({"error": True, "exception.type": "asyncio.TimeoutError"}, True, Ending.TIMEOUT),
        ({"error.type": "context canceled"}, True, Ending.CANCELLED),
        ({"error.type": "ConnectionRefused"}, True, Ending.BROKEN),
        ({"rpc.grpc.status_code": 0}, False, Ending.OK),
        ({"rpc.grpc.status_code": 4}, True, Ending.TIMEOUT),
        ({"rpc.grpc.status_code": "14"}, True, Ending.OVERLOADED),
        ({"rpc.response.status_code": "UNAVAILABLE"}, True, Ending.OVERLOADED),
        ({"grpc.status_code": "DEADLINE_EXCEEDED"}, True, Ending.TIMEOUT),
        ({"rpc.grpc.status_code": 5}, True, Ending.OK),
        ({"rpc.grpc.status_code": 13}, True, Ending.FAILED),
        ({"rpc.grpc.status_code": "what"}, True, Ending.BROKEN),
    ],
)
def test_how_a_client_span_ended(tags: Any, failed: bool, ending: Ending) -> None:
    assert ending_of(Kind.CLIENT, tags, failed=failed) is ending


def test_the_status_message_may_say_that_it_was_a_timeout() -> None:
    says = "upstream request timed out"
    assert ending_of(Kind.CLIENT, {}, failed=True, says=says) is Ending.TIMEOUT


def test_a_server_that_failed_did_answer() -> None:
    assert ending_of(Kind.SERVER, {}, failed=True) is Ending.FAILED


@pytest.mark.parametrize(
    ("tags", "peer"),
    [
        ({}, ""),
        ({"peer.service": "auth", "server.address": "a.example"}, "auth"),
        ({"server.address": "auth.prod.svc.cluster.local"}, "auth.prod.svc.cluster.local"),
        ({"net.peer.name": "auth:8080"}, "auth"),
        ({"server.address": "10.0.0.7", "db.system": "postgresql"}, "postgresql"),
        ({"server.address": "localhost", "db.system": "redis", "db.namespace": "0"}, "redis-0"),
        ({"db.system.name": "mysql", "db.name": "orders"}, "mysql-orders"),
        ({"messaging.system": "kafka", "messaging.destination.name": "orders"}, "orders"),
        ({"rpc.service": "shop.Cart"}, "shop.Cart"),
        ({"server.address": "10.0.0.7:5432"}, "10.0.0.7:5432"),
        ({"peer.service": True, "http.host": "api.example:443"}, "api.example"),
    ],
)
def test_whom_a_client_called(tags: Any, peer: str) -> None:
    assert peer_of(tags) == peer


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("api.example.", "api.example"),
        ("user@api:80", "api"),
        ("127.0.0.1:80", ""),
        ("::1", ""),
        ("[2001:db8::1]", ""),
        ("localhost", ""),
    ],
)
def test_a_host_has_a_name_or_is_an_address(host: str, name: str) -> None:
    assert host_name(host) == name


def test_an_operation_is_its_route_and_else_its_span_s_name() -> None:
    assert name_of("HTTP GET", {"http.route": "/a/{id}", "http.method": "GET"}) == "GET /a/{id}"
    assert name_of("GET /a/1", {"http.method": "GET"}) == "GET /a/1"
    assert name_of("", {"rpc.service": "Cart", "rpc.method": "Add"}) == "Cart/Add"


@pytest.mark.parametrize(
    "key", ["http.request.resend_count", "http.resend_count", "http.retry_count"]
)
def test_resends_are_counted_under_all_their_names(key: str) -> None:
    assert resend_of({key: "2"}) == 2
    assert resend_of({key: -5}) == NO_RESEND
    assert resend_of({key: "x"}) == NO_RESEND
    assert resend_of({}) == NO_RESEND


@pytest.mark.parametrize(
    ("tags", "state", "share"),
    [
        ({}, "", None),
        ({"sampler.type": "probabilistic", "sampler.param": 0.01}, "", 0.01),
        ({"sampler.type": "probabilistic", "sampler.param": "0.5"}, "", 0.5),
        ({"sampler.type": "probabilistic", "sampler.param": "x"}, "", None),
        ({"sampler.type": "probabilistic", "sampler.param": 0}, "", None),
        ({"sampler.type": "const", "sampler.param": True}, "", None),
        ({}, "ot=th:c", 0.25),
        ({}, "vendor=1,ot=rv:ab;th:8", 0.5),
        ({}, "ot=th:0", 1.0),
        ({}, "other=th:8", None),
    ],
)
def test_the_share_of_traces_that_the_sender_kept(tags: Any, state: str, share: Any) -> None:
    assert sampled_share(tags, state) == share
