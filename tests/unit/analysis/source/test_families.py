"""Which exceptions are caught by which handler, as far as names tell."""

import ast

import pytest
from source_code import source

from tidegate.analysis.source.families import (
    connects_only,
    families,
    is_broad,
    is_remote,
    meet,
    types,
)

SCOPE = source("import requests, json\nBOTH = (requests.Timeout, KeyError)\n").scope


def named(text: str) -> tuple[str, ...]:
    return types(ast.parse(text, mode="eval").body, SCOPE)


def test_a_tuple_is_taken_apart_and_a_bare_except_is_everything() -> None:
    assert named("BOTH") == ("requests.Timeout", "KeyError")
    assert named("mine") == ("?.mine",)
    assert named("f(x)") == ("?",)
    assert types(None, SCOPE) == ("BaseException",)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("ValueError", "local"),
        ("json.JSONDecodeError", "local"),
        ("app.UpdateConflict", "local"),
        ("?.Empty", "local"),
        ("requests.ConnectionError", "requests"),
        ("botocore.exceptions.ClientError", "aws"),
        ("google.api_core.exceptions.ServiceUnavailable", "google"),
        ("app.Broken", "?"),
        ("Exception", "*"),
        ("BaseException", "*"),
    ],
)
def test_families(name: str, family: str) -> None:
    assert families((name,)) == {family}


def test_a_builtin_catches_the_errors_that_are_subclasses_of_it() -> None:
    assert meet(("OSError",), families(("requests.Timeout",)))
    assert not meet(("OSError",), families(("httpx.ReadTimeout",)))
    assert not meet(("ConnectionError",), families(("requests.ConnectionError",)))


def test_what_is_unknown_on_both_sides_does_not_meet() -> None:
    assert not meet(("app.Broken",), frozenset(("?",)))
    assert not meet(("ValueError",), frozenset(("local",)))
    assert meet(("Exception",), frozenset(("?",)))


def test_broad_remote_and_before_sending() -> None:
    assert is_broad(("KeyError", "Exception"))
    assert not is_broad(("KeyError",))
    assert is_remote(("grpc.RpcError",))
    assert not is_remote(("KeyError", "Exception", "app.Broken"))
    assert connects_only(("httpx.ConnectError", "httpx.PoolTimeout"))
    assert not connects_only(("httpx.ConnectError", "httpx.ReadTimeout"))
    assert not connects_only(())
