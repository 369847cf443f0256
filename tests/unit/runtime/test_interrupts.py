"""A Ctrl-C may come anywhere in a call: no place is lost, and every call that began has ended.

CPython lets a signal in after a call of something that is written in C, on entry to a function and
at a jump back, and nowhere else. A trace function raises at each such point in turn, in our own
code, so that the test interrupts everywhere and is the same in every run.
"""

import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tidegate
from tidegate import guard
from tidegate.core.leaves import Leaves
from tidegate.runtime.attempt import Attempt
from tidegate.runtime.context import AMBIENT, NOTHING, ambient
from tidegate.runtime.guard import Guard
from tidegate.runtime.registry import _forget
from tidegate.settings.policies import Breaker, Limit
from tidegate.testing import instant

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="3.13 traces the instructions of some functions only"
)

OURS = tuple(str(Path(tidegate.__file__).parent / part) for part in ("core", "runtime"))
ENTRY_OR_LOOP = ("RESUME", "JUMP_BACKWARD", "POP_JUMP_BACKWARD")
POINTS_MAX = 400  # more than any call here has: a loop that ends


@pytest.fixture(autouse=True)
def clock() -> Iterator[Any]:
    _forget()
    with instant() as still:
        yield still
    _forget()


class Interrupter:
    """Raises at the point number `at`, once."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.seen = 0
        self.where: object = None
        self.before: dict[FrameType, str] = {}  # what each frame has just done
        self.called: set[FrameType] = set()  # whose latest instruction has called Python code

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        caller = frame.f_back
        if not frame.f_code.co_filename.startswith(OURS):
            return None  # what is called may as well be in C, as the clock of a machine is
        # A class is called in C, and that calls its `__init__`.
        if event == "call" and caller is not None and frame.f_code.co_name != "__init__":
            self.called.add(caller)
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.step(frame)
        return self

    def step(self, frame: FrameType) -> None:
        done = self.before.get(frame, "")
        entered = not done or done.startswith(ENTRY_OR_LOOP)  # of the first one hears nothing
        if not done and frame.f_code is Attempt.__exit__.__code__:
            entered = False  # what comes before its first line no `with` block is safe from
        in_c = done == "CALL_FUNCTION_EX" or (done[:4] == "CALL" and frame not in self.called)
        self.before[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        self.called.discard(frame)
        if entered or in_c:
            self.seen += 1
            if self.seen == self.at:
                self.where = (frame.f_code.co_name, frame.f_lineno)
                raise KeyboardInterrupt


@contextmanager
def interrupted(at: int) -> Iterator[Interrupter]:
    interrupter, before = Interrupter(at), sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # else Python 3.12 begins with the second trace only
    sys.settrace(interrupter)
    try:
        yield interrupter
    finally:
        sys.settrace(before)


def ends_well() -> None:
    pass


def fails() -> None:
    raise ConnectionError


def awaited(function: Callable[[], None]) -> Callable[[], None]:
    """`function` as a coroutine function, called by hand: a loop keeps a Ctrl-C to itself."""

    async def asynchronous() -> None:
        function()

    return asynchronous  # type: ignore[return-value]


def run(guarded: Callable[[], Any]) -> None:
    coroutine = guarded()
    if coroutine is not None:
        with suppress(StopIteration):
            coroutine.send(None)


def in_a_block(own: Guard, function: Callable[[], None]) -> Callable[[], None]:
    def block() -> None:
        with own.attempt():
            function()

    return block


def by_the_book(own: Guard, function: Callable[[], None]) -> Callable[[], None]:
    return own.options(deadline=5.0)(function)


def in_a_block_with_a_deadline(own: Guard, function: Callable[[], None]) -> Callable[[], None]:
    return in_a_block(own.options(deadline=5.0), function)


def on_leave(own: Guard, guarded: Callable[[], Any]) -> None:
    own.call(ends_well)
    assert own.dependency.leaves.left


def asking(own: Guard, guarded: Callable[[], Any]) -> None:
    assert not own.dependency.leaves.left


def shut(own: Guard, guarded: Callable[[], Any]) -> None:
    for _ in range(2):
        with pytest.raises((ConnectionError, tidegate.CircuitOpen)):
            own.call(fails)


def in_alert(own: Guard, guarded: Callable[[], Any]) -> None:
    with pytest.raises(ConnectionError):
        own.call(fails)
    on_leave(own, guarded)


@pytest.mark.slow  # some hundred interrupted calls under a trace function
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("attempts", [1, 2])
@pytest.mark.parametrize(
    "kind", [Guard.__call__, by_the_book, in_a_block, in_a_block_with_a_deadline, None]
)
@pytest.mark.parametrize("function", [ends_well, fails])
@pytest.mark.parametrize("prepare", [on_leave, asking, in_alert, shut])
def test_an_interrupted_call_keeps_no_place_and_is_counted(
    attempts: int,
    kind: Callable[..., Callable[[], None]] | None,
    function: Callable[[], None],
    prepare: Callable[..., None],
) -> None:
    volume = 1 if prepare is shut else 100
    for at in range(1, POINTS_MAX):
        _forget()
        AMBIENT.set(NOTHING)  # one that fails shall not make the next ones fail
        own = guard(
            "d",
            timeout=None,
            limit=Limit(max=50),
            breaker=Breaker(volume=volume),
            attempts=attempts,
            backoff=None,
        )
        guarded = own(awaited(function)) if kind is None else kind(own, function)
        prepare(own, guarded)
        before = own.snapshot()
        assert before.pending == 0
        if prepare in {on_leave, in_alert}:
            own.call(ends_well)  # the look took back what there was
        expected = (KeyboardInterrupt, ConnectionError, tidegate.Rejected)
        with suppress(*expected), interrupted(at) as interrupter:
            run(guarded)
        seen = own.snapshot()
        assert (seen.inflight, seen.pending) == (0, 0), interrupter.where
        if kind is not None:  # a task has a context of its own, which goes with it
            assert ambient() is NOTHING, interrupter.where
        if interrupter.seen < at:
            assert at > 3
            return
    raise AssertionError("it has no end")


def test_stock_is_not_lost_when_taking_it_is_interrupted() -> None:
    for at in range(1, POINTS_MAX):
        _forget()
        own = guard("d", timeout=None, limit=Limit(max=50))
        own.call(ends_well)
        own.call(ends_well)
        leaves: Leaves = own.dependency.leaves
        assert leaves.ended
        with suppress(KeyboardInterrupt), interrupted(at) as interrupter:
            own.dependency.take_stock()
        own.dependency.take_stock()
        seen = own.snapshot()
        assert (seen.started, seen.ok, seen.inflight) == (2, 2, 0), f"point {at}"
        if interrupter.seen < at:
            return
    raise AssertionError("it has no end")
