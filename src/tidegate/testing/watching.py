"""What did the guards do while a test ran, and how does it make one refuse?"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, final

from tidegate.core.outcome import Transition
from tidegate.runtime import registry
from tidegate.runtime.dependency import GuardSnapshot
from tidegate.runtime.guard import Guard

__all__ = ["Captured", "Change", "capture", "refusing"]

_CHANGES_MAX: Final = 10_000  # a test that makes more has a loop in it


class Change(NamedTuple):
    """One change of state: of which dependency, and what."""

    dependency: str
    transition: Transition


@final
class Captured:
    """The changes of state in a block, oldest first, at most 10,000 of them."""

    def __init__(self) -> None:
        self.changes: Final[list[Change]] = []

    def states(self, dependency: str) -> list[str]:
        """The states that this dependency went to, in order: `["open", "half-open", "closed"]`."""
        return [change.transition.after for change in self.changes if change[0] == dependency]

    def snapshot(self, dependency: str) -> GuardSnapshot:
        """What it has seen up to now. Raises KeyError if nobody has made a guard of that name."""
        return registry.snapshots()[dependency]

    def _note(self, dependency: str, transition: Transition) -> None:
        if len(self.changes) < _CHANGES_MAX:
            self.changes.append(Change(dependency, transition))


@contextmanager
def capture() -> Iterator[Captured]:
    """A block whose changes of state are noted, of every dependency."""
    captured = Captured()
    end = registry.listen(captured._note)
    try:
        yield captured
    finally:
        end()


@contextmanager
def refusing(guard: Guard) -> Iterator[None]:
    """A block in which this dependency is never called: every call raises `Held`, an open circuit.

    So a test sees what the code around it does without its dependency.
    """
    _hold(guard, held=True)
    try:
        yield
    finally:
        _hold(guard, held=False)


def _hold(guard: Guard, *, held: bool) -> None:
    dependency = guard.dependency
    with dependency.lock:
        dependency.take_stock()
        for pipeline in {dependency.pipeline, *(view.pipeline for view in _views(guard))}:
            if held:
                pipeline.hold()
            else:
                pipeline.free()


def _views(guard: Guard) -> list[Guard]:
    return [view for view in guard.dependency.views if isinstance(view, Guard)]
