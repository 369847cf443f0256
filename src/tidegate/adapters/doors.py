"""Which guard is asked for a request, and on which terms?

One guard for each origin, unless the user says otherwise: what one origin does says nothing about
another. Guards are kept for good, and whoever fetches what strangers link to meets origins without
end, so their number is bounded; all beyond it share one guard, which has no breaker and no limit,
since they share nothing else.

A guard stands ready on several terms, made once and not for each request: all its attempts; again
only after a refusal; one attempt, for a body that can be sent only once; one attempt that takes as
long as it takes.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeAlias, final

from tidegate.errors import SettingsError
from tidegate.runtime import registry
from tidegate.runtime.guard import Classifier, Guard

__all__ = ["ORIGINS_MAX", "OTHERS", "Door", "Doors", "Send", "Source", "Terms"]

Source: TypeAlias = Guard | Callable[[str], Guard] | None
"""One guard for all requests, a function from an origin to its guard, or None: one per origin."""

ORIGINS_MAX: Final = 256
OTHERS: Final = "all other origins"

_NAME_MAX: Final = 200  # as the registry has it; a host name may be longer

Send: TypeAlias = Callable[..., Any]
"""One attempt of an adapter, called with what has `request`, the client's own."""


class Terms(Enum):
    """What may be done again."""

    REPEAT = "repeat"
    UNLESS_DONE = "unless done"
    ONCE = "once"
    STREAM = "stream"  # once, and for as long as its user likes


_OPTIONS: Final[dict[Terms, dict[str, Any]]] = {
    Terms.REPEAT: {"idempotent": True},
    Terms.UNLESS_DONE: {"idempotent": False},
    Terms.ONCE: {"attempts": 1},
    Terms.STREAM: {"attempts": 1, "timeout": None},
}


@final
class Door:
    """A guard, and the adapter's attempt behind it on each of the terms."""

    __slots__ = ("_classify", "_send", "_views", "guard")

    def __init__(
        self,
        guard: Guard,
        send: Send,
        classify: Classifier | None = None,
    ) -> None:
        self.guard: Final = guard
        self._send: Final = send
        self._classify: Final = classify
        self._views: Final[dict[Terms, tuple[Guard, Send]]] = {}

    def on(self, terms: Terms) -> tuple[Guard, Send]:
        """The guard on these terms, and the attempt behind it."""
        found = self._views.get(terms)
        if found is None:
            guard = self.guard
            view = guard.options(
                classify=_first(guard._classify, self._classify),
                fallback=_of_request(guard.fallback),
                **_OPTIONS[terms],
            )
            found = self._views[terms] = view, view(self._send)
        return found


@final
class Doors:
    """The doors of one adapter, by origin."""

    __slots__ = ("_by_guard", "_by_origin", "_classify", "_others", "_send", "_source")

    def __init__(
        self,
        source: Source,
        send: Send,
        classify: Classifier | None = None,
    ) -> None:
        if source is not None and not callable(source):
            raise SettingsError(
                f"expected a guard, a function from an origin to a guard, or None, not {source!r}"
            )
        self._source: Final = source
        self._send: Final = send
        self._classify: Final = classify
        self._others: Guard | None = None
        self._by_guard: Final[dict[Guard, Door]] = {}
        self._by_origin: Final[dict[str, Door]] = {}

    def of(self, origin: str) -> Door:
        """The door to an origin."""
        if isinstance(self._source, Guard):
            return self.to(self._source)
        door = self._by_origin.get(origin)
        if door is not None:
            return door
        if len(self._by_origin) >= ORIGINS_MAX or len(origin) > _NAME_MAX:
            if self._others is None:
                self._others = _others()
            return self.to(self._others)
        guard = registry.guard(origin) if self._source is None else self._source(origin)
        door = self._by_origin[origin] = self.to(guard)
        return door

    def to(self, guard: Guard | str) -> Door:
        """The door of one guard, or of the guard with that name."""
        if isinstance(guard, str):
            guard = registry.guard(guard)
        if not isinstance(guard, Guard):
            raise SettingsError(f"expected a guard or the name of one, not {guard!r}")
        door = self._by_guard.get(guard)
        if door is None:
            door = Door(guard, self._send, self._classify)
            if len(self._by_guard) < 2 * ORIGINS_MAX:
                self._by_guard[guard] = door
        return door


def _others() -> Guard:
    try:
        return registry.guard(OTHERS, breaker=None, limit=None)
    except SettingsError:  # the user has given it settings of their own
        return registry.guard(OTHERS)


def _first(asked: Classifier | None, then: Classifier | None) -> Classifier | None:
    """A classifier that asks the user's before ours."""
    if asked is None or then is None:
        return asked or then

    def both(error: BaseException) -> Any:
        said = asked(error)
        return then(error) if said is None else said

    return both


def _of_request(fallback: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """The user's fallback, which is called with the client's request."""
    if fallback is None:
        return None
    return lambda exchange: fallback(exchange.request)
