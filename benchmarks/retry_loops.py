"""How much do popular retry loops send to a dependency that is down, and what becomes of a stream?

One command: it makes `.venv-guards` (as `overhead.py` does) and asks there, one library after the
other; nothing sleeps, and all that is shown is counted. Attempts are those of one request: by each
library's own defaults, with three tries of 1,000 requests, and with three tries in three tries.

    python benchmarks/retry_loops.py
"""

import itertools
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from overhead import ENVIRONMENT, prepare

ATTEMPTS_MAX = 100  # a loop that makes more is taken to have no end

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class TooMany(BaseException):
    """Ends a loop that would never end."""


def loops() -> list[tuple[str, Callable[[], Decorator], Callable[[], Decorator]]]:
    """Each library by default, and with three tries; a fresh decorator each time."""
    import backoff
    import nopanic
    import pyresilience
    import stamina
    import tenacity

    import tidegate

    number = itertools.count()

    def ours(**settings: Any) -> Any:
        return tidegate.guard(f"asked {next(number)}", breaker=None, **settings)

    three = pyresilience.RetryConfig(max_attempts=3, delay=0.001)
    on = backoff.on_exception
    return [
        ("tidegate", ours, lambda: ours(attempts=3)),
        ("tenacity", tenacity.retry, lambda: tenacity.retry(stop=tenacity.stop_after_attempt(3))),
        (
            "stamina",
            lambda: stamina.retry(on=OSError),
            lambda: stamina.retry(on=OSError, attempts=3),
        ),
        (
            "backoff",
            lambda: on(backoff.expo, OSError),
            lambda: on(backoff.expo, OSError, max_tries=3),
        ),
        (
            "pyresilience",
            lambda: pyresilience.resilient(retry=pyresilience.RetryConfig()),
            lambda: pyresilience.resilient(retry=three),
        ),
        ("nopanic", nopanic.retry, lambda: nopanic.retry(3, budget=nopanic.RetryBudget())),
    ]


def sent_by(decorators: list[Decorator], requests: int) -> str:
    """What so many requests to a dependency that is down come to, each."""
    sent = 0

    def call() -> None:
        nonlocal sent
        sent += 1
        if sent > ATTEMPTS_MAX * requests:
            raise TooMany
        raise ConnectionError

    guarded: Callable[..., Any] = call
    for decorate in decorators:
        guarded = decorate(guarded)
    with mock.patch.object(time, "sleep"):
        for _ in range(requests):
            try:
                guarded()
            except TooMany:
                return f"over {ATTEMPTS_MAX}"
            except Exception:  # noqa: BLE001 - whatever a library makes of it
                continue
    return f"{sent / requests:.2f}"


def stream(decorate: Decorator) -> str:
    """The items of a generator that breaks after two of them, the first time; `!` is an error."""
    times = 0

    def items() -> Iterator[str]:
        nonlocal times
        times += 1
        yield from "ab"
        if times == 1:
            raise ConnectionError
        yield "c"

    given: list[str] = []
    with mock.patch.object(time, "sleep"):
        try:
            given.extend(decorate(items)())
        except Exception:  # noqa: BLE001 - also what a library makes of it
            given.append("!")
    return "".join(given)


def main() -> None:
    if Path(sys.prefix).resolve() != ENVIRONMENT.resolve():
        prepare()
        state = {"TIDEGATE_STATE_DIR": "off", "PATH": "/usr/bin:/bin"}
        command = [str(ENVIRONMENT / "bin/python"), __file__]
        sys.exit(subprocess.run(command, env=state, check=False).returncode)
    logging.disable()
    print(f"CPython {sys.version.split()[0]}; attempts a request, and a stream that breaks")
    print(f"{'':14}{'by default':>12}{'3 tries':>10}{'3 in 3 tries':>14}  stream")
    for name, default, three in loops():
        one, many = sent_by([default()], 1), sent_by([three()], 1_000)
        nested = sent_by([three(), three()], 1_000)
        print(f"{name:14}{one:>12}{many:>10}{nested:>14}  {stream(three())}", flush=True)


if __name__ == "__main__":
    main()
