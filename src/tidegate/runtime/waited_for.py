"""Has `asyncio.wait_for` given this task up, or a user?

Before Python 3.12 `wait_for` runs what it waits for in a task of its own and cancels it when the
time is over, exactly as it does when it is cancelled itself. But then it waits for that task to end
and has hung a callback on it, which leads to the task that waits. If nobody has asked that one to
cancel, it was the time. From 3.12 on `wait_for` is an `asyncio.timeout`, and nothing is to be done.

It reads what CPython 3.11 keeps behind an underscore; where that is not there the answer is no, and
a timeout counts as a user's leave: nothing, instead of slow.
"""

import asyncio
import functools
from typing import Any

__all__ = ["timed_out"]


def timed_out(task: "asyncio.Task[Any]") -> bool:
    """Whether a `wait_for` around this task, which is being cancelled, has run out of time."""
    for callback, _ in getattr(task, "_callbacks", None) or ():
        if isinstance(callback, functools.partial) and len(callback.args) == 1:
            waiter = callback.args[0]
            for wakeup, _ in getattr(waiter, "_callbacks", None) or ():
                waiting = getattr(wakeup, "__self__", None)
                if isinstance(waiting, asyncio.Task):
                    return not waiting.cancelling()
    return False
