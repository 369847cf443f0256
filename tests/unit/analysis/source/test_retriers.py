"""What a retry of each library comes to: attempts, wait and exceptions."""

import pytest
from source_code import source

from tidegate.analysis.source.model import UNLIMITED, Layer, Wait

IMPORTS = """
import backoff, stamina, retrying, dramatiq, celery
from retry import retry as again
from retry.api import retry_call
from google.api_core import retry as google
from proj.celery import app
MAX = 4
"""


def layer(decorator: str) -> Layer:
    placed = source(f"{IMPORTS}\n@{decorator}\ndef f(): ...").placed
    assert len(placed) == 1
    return placed[0].layer


@pytest.mark.parametrize(
    ("decorator", "attempts", "wait"),
    [
        ("backoff.on_exception(backoff.expo, KeyError)", UNLIMITED, Wait.JITTER),
        ("backoff.on_exception(backoff.expo, KeyError, max_tries=3)", 3, Wait.JITTER),
        ("backoff.on_exception(backoff.expo, KeyError, max_tries=MAX)", 4, Wait.JITTER),
        ("backoff.on_exception(backoff.expo, KeyError, max_tries=n())", None, Wait.JITTER),
        ("backoff.on_exception(backoff.expo, KeyError, max_tries=None)", UNLIMITED, Wait.JITTER),
        ("backoff.on_exception(backoff.expo, KeyError, max_time=9)", None, Wait.JITTER),
        ("backoff.on_exception(backoff.expo, KeyError, jitter=None, **k)", None, Wait.FIXED),
        ("backoff.on_predicate(backoff.constant)", None, Wait.JITTER),
        ("stamina.retry(on=OSError)", 10, Wait.JITTER),
        ("stamina.retry(on=OSError, attempts=2, wait_jitter=0)", 2, Wait.FIXED),
        ("stamina.retry(on=OSError, attempts=None)", None, Wait.JITTER),
        ("stamina.retry(on=OSError, attempts=None, timeout=None)", UNLIMITED, Wait.JITTER),
        ("stamina.retry(**k)", None, Wait.JITTER),
        ("retrying.retry", UNLIMITED, Wait.NONE),
        ("retrying.retry()", UNLIMITED, Wait.NONE),
        ("retrying.retry(stop_max_attempt_number=3, wait_fixed=9)", 3, Wait.FIXED),
        ("retrying.retry(stop_max_delay=9000, wait_random_max=9)", None, Wait.JITTER),
        ("retrying.retry(stop_func=g, wait_func=h)", None, Wait.UNKNOWN),
        ("retrying.retry(**k)", None, Wait.UNKNOWN),
        ("again()", UNLIMITED, Wait.NONE),
        ("again", UNLIMITED, Wait.NONE),
        ("again(OSError, 3, 1)", 3, Wait.FIXED),
        ("again(OSError, tries=-1, delay=1, jitter=(1, 3))", UNLIMITED, Wait.UNKNOWN),
        ("again(OSError, tries=3, delay=1, jitter=2)", 3, Wait.JITTER),
        ("again(**k)", None, Wait.UNKNOWN),
        ("google.Retry()", None, Wait.JITTER),
        ("google.Retry(timeout=None)", UNLIMITED, Wait.JITTER),
        ("google.AsyncRetry(deadline=30)", None, Wait.JITTER),
        ("dramatiq.actor", 21, Wait.JITTER),
        ("dramatiq.actor(max_retries=3)", 4, Wait.JITTER),
        ("dramatiq.actor(max_retries=None)", UNLIMITED, Wait.JITTER),
        ("dramatiq.actor(retry_when=g)", None, Wait.JITTER),
        ("app.task(autoretry_for=(OSError,))", 4, Wait.FIXED),
        ("app.task(autoretry_for=(OSError,), retry_backoff=True)", 4, Wait.JITTER),
        ("app.task(autoretry_for=(OSError,), retry_backoff=2, retry_jitter=False)", 4, Wait.FIXED),
        ("app.task(autoretry_for=(OSError,), max_retries=None)", UNLIMITED, Wait.FIXED),
        ("app.task(autoretry_for=(OSError,), max_retries=9)", 10, Wait.FIXED),
        ("app.task(autoretry_for=(OSError,), retry_kwargs={'max_retries': 2})", 3, Wait.FIXED),
        ("app.task(autoretry_for=(OSError,), retry_kwargs=k)", None, Wait.FIXED),
        ("celery.shared_task(autoretry_for=(OSError,), retry_backoff=b)", 4, Wait.UNKNOWN),
    ],
)
def test_attempts_and_waits(decorator: str, attempts: float | None, wait: Wait) -> None:
    found = layer(decorator)
    assert (found.attempts, found.wait) == (attempts, wait)


@pytest.mark.parametrize(
    ("decorator", "bound"),
    [
        ("backoff.on_exception(backoff.expo, KeyError, max_time=9)", "as many as fit into 9 s"),
        ("retrying.retry(stop_max_delay=9000)", "as many as fit into 9 s"),
        ("google.Retry()", "as many as fit into 120 s"),
        ("stamina.retry(on=OSError, attempts=None)", "as many as fit into 45 s"),
        ("again(tries=settings.TRIES)", "settings.TRIES"),
        ("backoff.on_exception", "a number not shown"),
        ("stamina.retry", "a number not shown"),
        ("google.Retry", "as many as fit into 120 s"),
    ],
)
def test_a_bound_that_is_no_number_is_told(decorator: str, bound: str) -> None:
    assert layer(decorator).bound == bound


@pytest.mark.parametrize(
    ("decorator", "catches"),
    [
        ("backoff.on_exception(backoff.expo, (KeyError, OSError))", ("KeyError", "OSError")),
        ("backoff.on_predicate(backoff.expo)", ()),
        ("stamina.retry(on=lambda e: True)", None),
        ("retrying.retry()", ("Exception",)),
        ("retrying.retry(retry_on_exception=(OSError,))", ("OSError",)),
        ("retrying.retry(retry_on_exception=lambda e: isinstance(e, OSError))", ("OSError",)),
        ("retrying.retry(retry_on_exception=g)", None),
        ("again(OSError)", ("OSError",)),
        ("again()", ("Exception",)),
        ("google.Retry(predicate=g)", None),
    ],
)
def test_what_is_repeated_on(decorator: str, catches: tuple[str, ...] | None) -> None:
    assert layer(decorator).catches == catches


@pytest.mark.parametrize("decorator", ["app.task", "app.task()", "app.route()", "other.retry()"])
def test_other_decorators_are_no_retry(decorator: str) -> None:
    assert source(f"{IMPORTS}\n@{decorator}\ndef f(): ...").placed == []


def test_a_retry_may_have_a_name_and_may_be_called() -> None:
    code = f"{IMPORTS}\nmine = again(tries=3)\n@mine\ndef f(): ...\n"
    placed = source(code).placed
    assert [(p.layer.attempts, p.layer.named, p.free) for p in placed] == [
        (3, True, False),
        (3, False, True),
    ]
    placed = source(f"{IMPORTS}\nretry_call(load, None, None, OSError, 3, 1)").placed
    assert [(p.layer.attempts, p.layer.wait) for p in placed] == [(3, Wait.FIXED)]


def test_a_block_hands_out_attempts() -> None:
    code = (
        f"{IMPORTS}\nfor attempt in stamina.retry_context(on=OSError, attempts=2):\n"
        "    with attempt:\n        load()\n"
    )
    placed = source(code).placed
    assert [p.layer.attempts for p in placed] == [2]
    assert len(placed[0].calls) == 1
