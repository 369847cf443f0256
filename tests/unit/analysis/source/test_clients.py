"""Which clients repeat by themselves, and which calls go to a far side."""

import pytest
from source_code import source

from tidegate.analysis.source.clients import Remote, remote
from tidegate.analysis.source.model import UNLIMITED, Layer, Wait

IMPORTS = """
import openai, anthropic, boto3, httpx, aiohttp_retry, urllib3, requests, httpx_retries
from botocore.config import Config
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry
"""


def client(made: str, call: str = "x.get('u')") -> Layer | None:
    found = source(f"{IMPORTS}\nx = {made}\n{call}\n").calls
    return next((c.client for c in found if c.client is not None), None)


@pytest.mark.parametrize(
    ("made", "attempts"),
    [
        ("openai.OpenAI()", 3),
        ("openai.OpenAI(max_retries=0)", None),
        ("openai.OpenAI(max_retries=5)", 6),
        ("anthropic.AsyncAnthropic()", 3),
        ("anthropic.Anthropic(**kw)", None),
        ("boto3.client('s3')", 3),
        ("boto3.client('s3', config=Config(retries={'max_attempts': 4}))", 5),
        ("boto3.client('s3', config=Config(retries={'total_max_attempts': 4}))", 4),
        ("boto3.client('s3', config=Config(retries={'total_max_attempts': 1}))", None),
        ("boto3.client('s3', config=Config())", 3),
        ("boto3.client('s3', config=given)", None),
        ("boto3.session.Session().client('s3')", 3),
        ("urllib3.PoolManager()", 4),
        ("urllib3.PoolManager(retries=Retry(2))", 3),
        ("urllib3.PoolManager(retries=False)", None),
        ("aiohttp_retry.RetryClient()", 3),
        ("aiohttp_retry.RetryClient(retry_options=aiohttp_retry.JitterRetry(5))", 5),
        ("httpx.Client(transport=httpx_retries.RetryTransport())", 11),
        (
            "httpx.Client(transport=httpx_retries.RetryTransport(retry=httpx_retries.Retry(2)))",
            3,
        ),
        ("httpx.Client(transport=httpx.HTTPTransport())", None),
        ("httpx.Client()", None),
        ("requests.Session()", None),
    ],
)
def test_a_client_s_own_attempts(made: str, attempts: int | None) -> None:
    found = client(made)
    assert (found.attempts if found is not None else None) == attempts


def test_what_is_mounted_on_a_session_is_its_own() -> None:
    mount = "x.mount('https://', HTTPAdapter(max_retries={}))\nx.get('u')"
    found = client("requests.Session()", mount.format("3"))
    assert found is not None
    assert (found.attempts, found.wait) == (4, Wait.NONE)
    found = client("requests.Session()", mount.format("Retry(2, backoff_factor=1)"))
    assert found is not None
    assert (found.attempts, found.wait) == (3, Wait.FIXED)
    assert client("requests.Session()", "x.mount('https://', Mine())\nx.get('u')") is None


def settings(made: str) -> Layer:
    placed = source(f"{IMPORTS}\nx = {made}\n").placed
    assert len(placed) == 1
    return placed[0].layer


@pytest.mark.parametrize(
    ("made", "attempts", "wait", "hears"),
    [
        ("Retry()", 11, Wait.NONE, True),
        ("Retry(total=None)", UNLIMITED, Wait.NONE, True),
        ("Retry(total=None, connect=2)", None, Wait.NONE, True),
        ("Retry(3, backoff_factor=1, backoff_jitter=1)", 4, Wait.JITTER, True),
        ("Retry(3, backoff_factor=1, respect_retry_after_header=False)", 4, Wait.FIXED, False),
        ("Retry(**kw)", None, Wait.UNKNOWN, None),
        ("httpx_retries.Retry()", 11, Wait.NONE, True),
        ("httpx_retries.Retry(2, backoff_factor=0.5)", 3, Wait.JITTER, True),
        ("httpx_retries.Retry(2, backoff_factor=0.5, backoff_jitter=0)", 3, Wait.FIXED, True),
        ("aiohttp_retry.ExponentialRetry()", 3, Wait.FIXED, False),
        ("aiohttp_retry.ListRetry([1, 2])", None, Wait.FIXED, False),
        ("aiohttp_retry.JitterRetry(5, evaluate_response_callback=f)", 5, Wait.JITTER, None),
    ],
)
def test_settings_of_transports(
    made: str, attempts: float | None, wait: Wait, hears: bool | None
) -> None:
    found = settings(made)
    assert (found.attempts, found.wait, found.hears) == (attempts, wait, hears)


@pytest.mark.parametrize(
    ("made", "methods"),
    [
        ("Retry(3)", ()),
        ("Retry(3, allowed_methods=None)", ("DELETE", "GET", "PATCH", "POST", "PUT")),
        ("Retry(3, allowed_methods=['get', 'post'])", ("GET", "POST")),
        ("Retry(3, method_whitelist=frozenset(['GET']))", ("GET",)),
        ("Retry(3, allowed_methods=mine)", None),
        ("Retry(3, **kw)", None),
        ("aiohttp_retry.JitterRetry()", ("DELETE", "GET", "PATCH", "POST", "PUT")),
        ("aiohttp_retry.JitterRetry(methods={'GET'})", ("GET",)),
    ],
)
def test_verbs(made: str, methods: tuple[str, ...] | None) -> None:
    assert settings(made).methods == methods


@pytest.mark.parametrize("made", ["Retry(0)", "Retry(total=False)", "HTTPAdapter(max_retries=0)"])
def test_no_retries_are_no_layer(made: str) -> None:
    assert source(f"{IMPORTS}\nx = {made}\n").placed == []


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("requests.post", Remote("requests", "POST")),
        ("requests.Session().get", Remote("requests", "GET")),
        ("requests.Session().mount", None),
        ("httpx.AsyncClient().stream", Remote("httpx", "STREAM")),
        ("openai.OpenAI().responses.create", Remote("openai")),
        ("openai.OpenAI().close", None),
        ("boto3.client().get_object", Remote("aws")),
        ("urllib.request.urlopen", Remote("os")),
        ("app.fetch", None),
        ("requests.codes", None),
        ("other.Client().get", None),
    ],
)
def test_calls_that_go_to_a_far_side(target: str, found: Remote | None) -> None:
    assert remote(target) == found
