"""Each rule of retries on code that breaks it by a little, and on code that nearly does."""

import pytest
from source_code import broken, hits

HEAD = """
import requests, httpx, tenacity, time, backoff, openai, aiohttp_retry, asyncio, stamina
from urllib3 import Retry
STOP = tenacity.stop_after_attempt(3)
WAIT = tenacity.wait_random(0, 1)
"""


@pytest.mark.parametrize(
    ("decorator", "rules"),
    [
        ("tenacity.retry(stop=STOP, wait=WAIT)", []),
        ("tenacity.retry", ["unlimited-retries"]),
        ("tenacity.retry(wait=WAIT)", ["unlimited-retries"]),
        ("tenacity.retry(stop=STOP)", ["retry-at-once"]),
        ("tenacity.retry(stop=tenacity.stop_after_attempt(2))", []),
        ("tenacity.retry(stop=tenacity.stop_after_attempt(1), wait=tenacity.wait_fixed(1))", []),
        ("tenacity.retry(stop=STOP, wait=tenacity.wait_fixed(1))", ["retry-no-jitter"]),
        ("tenacity.retry(retry=tenacity.retry_if_result(g), stop=STOP)", []),
        ("tenacity.retry(retry=tenacity.retry_if_exception_type(UpdateConflict), stop=STOP)", []),
        ("tenacity.retry(**kw)", []),
    ],
)
def test_stops_and_waits(decorator: str, rules: list[str]) -> None:
    assert broken(f"{HEAD}\n@{decorator}\ndef f(): ...") == rules


def post(arguments: str = "url, timeout=1", decorator: str = "stop=STOP, wait=WAIT") -> str:
    return f"{HEAD}\n@tenacity.retry({decorator})\ndef f(url, key):\n    requests.post({arguments})"


@pytest.mark.parametrize(
    ("code", "rules"),
    [
        (post(), ["effect-retried"]),
        (post("url, timeout=1, headers={'Idempotency-Key': key}"), []),
        (post("'https://a.example/search', timeout=1"), []),
        (post("token_url, timeout=1"), []),
        (post().replace("requests.post(", "requests.put("), []),
        (post().replace("requests.post(", "requests.request('PATCH', "), ["effect-retried"]),
        (post().replace("requests.post(", "requests.request(verb, "), []),
        (post().replace("def f", "def search"), []),
        (
            post(
                decorator="stop=STOP, wait=WAIT, retry=tenacity.retry_if_exception_type("
                "requests.ConnectTimeout)"
            ),
            [],
        ),
        (
            post(decorator="stop=STOP, wait=WAIT, retry=tenacity.retry_if_exception(g)"),
            [],
        ),
        (f"{HEAD}\nRetry(3, backoff_factor=1, backoff_jitter=1)", []),
        (
            f"{HEAD}\nRetry(3, backoff_factor=1, backoff_jitter=1, allowed_methods=None)",
            ["effect-retried"],
        ),
        (f"{HEAD}\naiohttp_retry.JitterRetry()", ["effect-retried"]),
        (f"{HEAD}\naiohttp_retry.JitterRetry(methods={{'GET'}})", []),
    ],
)
def test_effects(code: str, rules: list[str]) -> None:
    assert broken(code) == rules


LOOP = """
def f():
    for attempt in range(3):
        try:
            r = requests.get("u", timeout=1)
            if r.status_code == 429:
                raise Busy
            return r
        except (requests.RequestException, Busy):
            time.sleep({wait})
    raise Busy
"""


def test_refusals() -> None:
    assert broken(HEAD + LOOP.format(wait=1)) == ["retry-after-ignored", "retry-no-jitter"]
    assert broken(HEAD + LOOP.format(wait="r.headers['Retry-After']")) == []
    assert broken(HEAD + LOOP.format(wait="later(r)")) == []
    assert broken(HEAD + LOOP.format(wait=1).replace("429", "500")) == ["retry-no-jitter"]
    kept = "Retry(3, backoff_factor=1, backoff_jitter=1, status_forcelist=[429]{})"
    assert broken(HEAD + kept.format("")) == []
    ignored = kept.format(", respect_retry_after_header=False")
    assert broken(HEAD + ignored) == ["retry-after-ignored"]
    named = "@backoff.on_exception({}, openai.RateLimitError, max_tries=3)\ndef f(): ..."
    assert broken(HEAD + named.format("backoff.expo")) == ["retry-after-ignored"]
    assert broken(HEAD + named.format("backoff.runtime")) == []


@pytest.mark.parametrize(
    ("kind", "caught", "rules"),
    [
        ("async def", "BaseException", ["cancellation-retried"]),
        ("async def", "", ["cancellation-retried"]),
        ("async def", "Exception", []),
        ("def", "BaseException", []),
    ],
)
def test_cancellation_in_a_loop(kind: str, caught: str, rules: list[str]) -> None:
    code = f"""
{kind} f(g):
    for attempt in range(3):
        try:
            return g()
        except {caught}:
            asyncio.sleep(g(attempt))
    raise OSError
"""
    assert broken(HEAD + code) == rules


def test_a_retry_of_a_generator_says_what_it_does() -> None:
    code = "@stamina.retry(on=OSError, attempts=3)\ndef f():\n    yield 1"
    assert ["twice" in hit.says for hit in hits(HEAD + code)] == [True]
    code = "@tenacity.retry\ndef f():\n    yield from g()"
    assert [hit.rule.name for hit in hits(HEAD + code)] == ["generator-retried"]
    code = "@tenacity.retry(stop=STOP, wait=WAIT)\ndef f():\n    def g():\n        yield\n"
    assert broken(HEAD + code) == []


@pytest.mark.parametrize(
    ("decorator", "body", "rules"),
    [
        ("app.task(bind=True, max_retries=None)", "raise self.retry()", ["unlimited-retries"]),
        ("celery.shared_task(bind=True, max_retries=None)", "self.retry()", ["unlimited-retries"]),
        ("app.task(bind=True, max_retries=3)", "raise self.retry()", []),
        ("app.task(bind=True)", "raise self.retry()", []),
        ("app.task(max_retries=None)", "other.retry()", []),
        ("app.route(max_retries=None)", "self.retry()", []),
    ],
)
def test_tasks_that_ask_for_a_retry(decorator: str, body: str, rules: list[str]) -> None:
    code = f"import celery\nfrom proj import app\n@{decorator}\ndef f(self):\n    {body}\n"
    assert broken(code) == rules


def test_who_polls_may_do_it_at_steady_intervals() -> None:
    code = "@tenacity.retry(stop=STOP, wait=tenacity.wait_fixed(1))\ndef {}(): ..."
    assert broken(HEAD + code.format("wait_for_port")) == []
    assert broken(HEAD + code.format("_poll_state")) == []
    assert broken(HEAD + code.format("await_it")) == ["retry-no-jitter"]


def test_no_jitter_in_a_loop_is_a_note() -> None:
    found = hits(HEAD + LOOP.format(wait=1).replace("429", "500"))
    assert [hit.severity for hit in found] == ["note"]
