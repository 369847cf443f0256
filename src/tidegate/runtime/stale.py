"""What is answered while a dependency cannot: what it last said, if that is not too old.

The rule is RFC 5861's `stale-if-error`, for any function: each good answer is kept by its
arguments, and used in the place of an error or a refusal until it is `max_age` old. It is never
used while the dependency answers, so this is no cache.

One call with the same arguments is out at a time. Whoever comes meanwhile waits for its answer
instead of asking the same: the moment a popular answer is missed is the moment in which everybody
asks for it. One that hangs is not waited for longer than an attempt may take, then the next one
asks itself; and one that was cancelled, or had less time than others have, speaks for nobody else.

The twin for coroutine functions is `aio_stale`.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar, Token
from functools import wraps
from types import TracebackType
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, final

from tidegate.core.outcome import SUCCESS
from tidegate.errors import DeadlineExceeded, Rejected, SettingsError
from tidegate.runtime.context import AMBIENT
from tidegate.runtime.degraded import note
from tidegate.runtime.dependency import Dependency
from tidegate.runtime.guard import Guard
from tidegate.units import SECOND, Duration, Instant

__all__ = ["Asked", "Entry", "Flight", "Memory", "Stale", "guarded", "under_way"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

_PATIENCE: Final = 10 * SECOND  # as long as an attempt may take by default

_AGE_MAX: Final = 31_536_000.0  # a year: what is older is kept on purpose, and not in memory

_NOTHING: Final[Any] = object()


class Entry(NamedTuple):
    """A good answer and the instant at which it was given."""

    value: Any
    at: Instant


@final
class Memory:
    """The last good answers, `entries` of them at most: the one that is longest unused goes.

    `max_age` is in seconds. Raises SettingsError for an age or a number that is none.
    """

    __slots__ = ("_entries", "_known", "_lock", "_max_age")

    def __init__(self, max_age: float, entries: int) -> None:
        number = isinstance(max_age, int | float) and not isinstance(max_age, bool)
        if not number or not 0 < max_age <= _AGE_MAX:  # also refuses NaN
            raise SettingsError(
                f"max_age is above 0 and at most a year of seconds, not {max_age!r}"
            )
        if isinstance(entries, bool) or not isinstance(entries, int) or entries < 1:
            raise SettingsError(f"entries is a whole number, at least 1, not {entries!r}")
        self._max_age: Final = round(max_age * SECOND)
        self._entries: Final = entries
        self._known: Final[OrderedDict[Hashable, Entry]] = OrderedDict()
        self._lock: Final = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def find(self, now: Instant, key: Hashable) -> Entry | None:
        """What was last answered, unless it is too old by now; then it is forgotten."""
        with self._lock:
            entry = self._known.get(key)
            if entry is None:
                return None
            if now - entry.at > self._max_age:
                del self._known[key]
                return None
            self._known.move_to_end(key)
            return entry

    def keep(self, now: Instant, key: Hashable, value: Any) -> None:
        """It has just been answered so."""
        with self._lock:
            self._known[key] = Entry(value, now)
            self._known.move_to_end(key)
            if len(self._known) > self._entries:
                self._known.popitem(last=False)


@final
class Asked:
    """What a call under way is about, for the function that keeps and for the one that answers."""

    __slots__ = ("age", "entry", "helped", "key")

    def __init__(self, key: Hashable, entry: Entry | None) -> None:
        self.key: Final = key
        self.entry: Final = entry
        self.helped = False  # a fallback has answered
        self.age: float | None = None  # with a value so many seconds old


_ASKED: Final[ContextVar[Asked]] = ContextVar("tidegate_stale")


@final
class Flight:
    """A call that others may wait for. `landed` is the driver's own way to wait, made for the first
    who does: nearly always nobody comes.
    """

    __slots__ = ("asked", "error", "landed", "since", "value")

    def __init__(self, since: Instant, asked: Asked) -> None:
        self.since: Final = since
        self.asked: Final = asked
        self.landed: Any = None
        self.value: Any = _NOTHING
        self.error: BaseException | None = None

    @property
    def speaks_for_others(self) -> bool:
        """Whether its end is what another would have met with."""
        if self.error is None:
            return self.value is not _NOTHING
        return isinstance(self.error, Exception) and not isinstance(self.error, DeadlineExceeded)


@final
class Stale:
    """What the two drivers of one function share."""

    __slots__ = ("_key", "_lock", "_out", "dependency", "guard", "memory", "with_entry", "without")

    def __init__(
        self, guard: Guard, memory: Memory, key: Callable[..., Hashable] | None = None
    ) -> None:
        self.guard: Final = guard
        self.dependency: Final[Dependency] = guard.dependency
        self.memory: Final = memory
        self._key: Final = key
        self._lock: Final = threading.Lock()
        self._out: Final[dict[Hashable, Flight]] = {}  # as many as there are callers at a time
        # The guard for a call with a stale answer at hand, and the one for a call without.
        self.with_entry: Final = guard.options(fallback=self._answer)
        self.without: Final = guard if guard.fallback is None else guard.options(fallback=self._own)

    # Of one call.

    def asked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Asked:
        """What it is about. Raises TypeError for arguments of which no key can be made."""
        if self._key is not None:
            key = self._key(*args, **kwargs)
        else:
            key = (args, tuple(sorted(kwargs.items()))) if kwargs else args
        try:
            return Asked(key, self.memory.find(self.dependency.now(), key))
        except TypeError as error:
            raise TypeError(
                f"{self.dependency.name}: answers are kept by their arguments, and these have no"
                f" hash; give stale() a key ({error})"
            ) from None

    def keep(self, value: Any) -> None:
        """The function has answered: remember it, if it is good."""
        verdict = self.guard.verdict_on(value)
        if verdict is None or verdict.outcome is SUCCESS:
            self.memory.keep(self.dependency.now(), _ASKED.get().key, value)

    def _answer(self, *_: Any, **__: Any) -> Any:
        asked = _ASKED.get()
        assert asked.entry is not None
        asked.helped = True
        asked.age = self._age(asked.entry)
        note(self.dependency.name, asked.age)
        return asked.entry.value

    def _own(self, *args: Any, **kwargs: Any) -> Any:
        _ASKED.get().helped = True
        assert self.guard.fallback is not None
        return self.guard.fallback(*args, **kwargs)

    def _age(self, entry: Entry) -> float:
        return max(0, self.dependency.now() - entry.at) / SECOND

    # Of those who ask the same.

    def join(self, asked: Asked, landing: Callable[[], Any], where: Any = None) -> Flight:
        """The call to wait for; one with this very `asked` is new, and whoever asks makes it.

        `where` keeps apart those who cannot wait for each other: event loops.
        """
        now, key = self.dependency.now(), (where, asked.key)
        with self._lock:
            flight = self._out.get(key)
            if flight is None or now - flight.since >= self._patience():
                flight = self._out[key] = Flight(now, asked)
            elif flight.landed is None:
                flight.landed = landing()
            return flight

    def alone(self, asked: Asked) -> Flight:
        """A call that nobody joins."""
        return Flight(self.dependency.now(), asked)

    def land(self, flight: Flight, where: Any = None) -> Any:
        """It is over, and nobody joins it any more; what those wait for who have, or None."""
        key = (where, flight.asked.key)
        with self._lock:
            if self._out.get(key) is flight:  # else another has taken over from one that hung
                del self._out[key]
            return flight.landed

    def wait(self, flight: Flight) -> float:
        """For how many seconds from now it is worth to wait for it."""
        end = flight.since + self._patience()
        deadline = AMBIENT.get().deadline
        return max(0, min(end, deadline or end) - self.dependency.now()) / SECOND

    def _patience(self) -> Duration:
        timeout = self.guard.pipeline.timeout
        return _PATIENCE if timeout is None else timeout

    def share(self, flight: Flight) -> Any:
        """The end of another's call, as one's own."""
        error, asked = flight.error, flight.asked
        if error is not None:
            self.dependency.count_shared("rejected" if isinstance(error, Rejected) else "failed")
            try:
                raise error
            finally:
                del error, flight  # else it would hold its own traceback, and that this frame
        if asked.helped:
            note(self.dependency.name, asked.age)
        self.dependency.count_shared("fallback" if asked.helped else "ok")
        return flight.value

    def is_too_late(self) -> bool:
        """Whether whoever has waited has no time left to ask."""
        deadline = AMBIENT.get().deadline
        return deadline is not None and self.dependency.now() >= deadline

    def give_up(self, asked: Asked) -> Any:
        """The answer of whoever has no time left: a stale one, or DeadlineExceeded."""
        if asked.entry is None:
            self.dependency.count_shared("rejected")
            raise DeadlineExceeded(self.dependency.name, sent=False)
        note(self.dependency.name, self._age(asked.entry))
        self.dependency.count_shared("fallback")
        return asked.entry.value


@final
class under_way:  # noqa: N801 - used like a function, as contextlib's managers are
    """A block that makes a call for all who wait for it; `landing` is what to do at its end."""

    __slots__ = ("_before", "_flight", "_landing")

    def __init__(self, flight: Flight, landing: Callable[[], None] | None = None) -> None:
        self._flight: Flight | None = flight
        self._landing: Final = landing
        self._before: Token[Asked] | None = None

    def __enter__(self) -> Flight:
        assert self._flight is not None
        self._before = _ASKED.set(self._flight.asked)
        return self._flight

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._flight is not None
        assert self._before is not None
        _ASKED.reset(self._before)
        self._flight.error = error
        self._flight = None
        if self._landing is not None:
            self._landing()


def guarded(stale: Stale, function: Callable[_P, _T]) -> Callable[_P, _T]:
    """A plain `function` under its guard, with its last good answers at hand."""

    @wraps(function)
    def kept(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        value = function(*args, **kwargs)
        stale.keep(value)
        return value

    with_entry, without = stale.with_entry(kept), stale.without(kept)

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        asked = stale.asked(args, kwargs)
        answer = without if asked.entry is None else with_entry
        if stale.guard.mode != "enforce":  # every call for itself, as if there were no guard
            with under_way(stale.alone(asked)):
                return answer(*args, **kwargs)
        while True:
            flight = stale.join(asked, threading.Event)
            if flight.asked is asked:
                return _lead(stale, flight, answer, args, kwargs)  # type: ignore[no-any-return]
            if flight.landed.wait(stale.wait(flight)):
                if flight.speaks_for_others:
                    return stale.share(flight)  # type: ignore[no-any-return]
            elif stale.is_too_late():
                return stale.give_up(asked)  # type: ignore[no-any-return]

    return call


def _lead(
    stale: Stale,
    flight: Flight,
    answer: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Make the call for everybody who waits for it."""

    def landing() -> None:
        landed = stale.land(flight)
        if landed is not None:
            landed.set()

    with under_way(flight, landing):
        flight.value = answer(*args, **kwargs)
    return flight.value
