"""What tenacity's strategies come to, and that tenacity itself agrees."""

import asyncio
import contextlib

import pytest
import tenacity
from source_code import source

from tidegate.analysis.source.model import UNLIMITED, Layer, Wait


def layer(arguments: str) -> Layer:
    placed = source(
        f"from tenacity import *\nimport tenacity\n@tenacity.retry{arguments}\ndef f(): ..."
    )
    return placed.placed[0].layer


T = "tenacity."


@pytest.mark.parametrize(
    ("arguments", "attempts"),
    [
        ("", UNLIMITED),
        ("()", UNLIMITED),
        (f"(stop={T}stop_never)", UNLIMITED),
        (f"(stop={T}stop_after_attempt(3))", 3),
        (f"(stop={T}stop_after_attempt(n))", None),
        (f"(stop={T}stop_after_delay(9))", None),
        (f"(stop={T}stop_after_attempt(5) | {T}stop_after_attempt(3))", 3),
        (f"(stop={T}stop_after_delay(9) | {T}stop_after_attempt(3))", 3),
        (f"(stop={T}stop_after_delay(9) | {T}stop_never)", None),
        (f"(stop={T}stop_any({T}stop_never, {T}stop_after_attempt(2)))", 2),
        ("(stop=mine)", None),
        ("(**kw)", None),
    ],
)
def test_stops(arguments: str, attempts: float | None) -> None:
    assert layer(arguments).attempts == attempts


@pytest.mark.parametrize(
    ("wait", "found"),
    [
        (f"{T}wait_none()", Wait.NONE),
        (f"{T}wait_fixed(0)", Wait.NONE),
        (f"{T}wait_fixed(2)", Wait.FIXED),
        (f"{T}wait_exponential(max=9)", Wait.FIXED),
        (f"{T}wait_random(0, 2)", Wait.JITTER),
        (f"{T}wait_random_exponential()", Wait.JITTER),
        (f"{T}wait_exponential_jitter()", Wait.JITTER),
        (f"{T}wait_fixed(2) + {T}wait_random(0, 2)", Wait.JITTER),
        (f"{T}wait_chain({T}wait_fixed(1), {T}wait_fixed(2))", Wait.FIXED),
        (f"{T}wait_chain(*waits)", Wait.UNKNOWN),
        ("mine", Wait.UNKNOWN),
    ],
)
def test_waits(wait: str, found: Wait) -> None:
    assert layer(f"(wait={wait})").wait is found


@pytest.mark.parametrize(
    ("retry", "catches"),
    [
        (f"{T}retry_if_exception_type()", ("Exception",)),
        (f"{T}retry_if_exception_type((KeyError, OSError))", ("KeyError", "OSError")),
        (f"{T}retry_if_not_exception_type(KeyError)", ("BaseException",)),
        (f"{T}retry_if_result(f)", ()),
        (f"{T}retry_if_exception(f)", None),
        (f"{T}retry_if_exception_type(KeyError) | {T}retry_if_result(f)", ("KeyError",)),
        (f"{T}retry_if_exception_type(KeyError) | mine", None),
        (f"{T}retry_any({T}retry_if_exception_type(KeyError))", ("KeyError",)),
        (
            f"{T}retry_if_exception_type(OSError) & {T}retry_if_not_exception_type(KeyError)",
            ("OSError",),
        ),
        (
            f"{T}retry_if_not_exception_type(KeyError) & {T}retry_if_exception_type(OSError)",
            ("OSError",),
        ),
        (f"{T}retry_if_exception_type(A) & {T}retry_if_exception_type(B)", None),
    ],
)
def test_retries(retry: str, catches: tuple[str, ...] | None) -> None:
    assert layer(f"(retry={retry})").catches == catches


def test_what_leaves_at_the_end() -> None:
    assert layer("()").raises == "tenacity.RetryError"
    assert layer("(reraise=True)").raises is None
    assert layer("()").leaks
    assert not layer("(retry_error_callback=f)").leaks


def test_tenacity_has_the_defaults_that_are_told_of_it() -> None:
    retrying = tenacity.Retrying()
    assert retrying.stop is tenacity.stop_never
    assert isinstance(retrying.wait, tenacity.wait_none)
    assert retrying.reraise is False


def test_tenacity_repeats_a_cancellation_unless_told_which_exceptions() -> None:
    seen = {"named": 0, "all but": 0}

    async def twice(name: str, retry: tenacity.retry_base) -> None:
        async for attempt in tenacity.AsyncRetrying(
            retry=retry, stop=tenacity.stop_after_attempt(2)
        ):
            with attempt:
                seen[name] += 1
                raise asyncio.CancelledError

    async def both() -> None:
        for name, retry in (
            ("named", tenacity.retry_if_exception_type(OSError)),
            ("all but", tenacity.retry_if_not_exception_type(KeyError)),
        ):
            with contextlib.suppress(asyncio.CancelledError, tenacity.RetryError):
                await twice(name, retry)

    asyncio.run(both())
    assert seen == {"named": 1, "all but": 2}
