"""What does a user hold in their hands to protect the calls to one dependency?

One `Guard` for sync and async functions, blocks, streams and HTTP clients, made once and shared.
It is a view on the `Dependency` of its name, which has the state: `options` gives another view on
the same state for calls that need other terms, so a budget is never spent twice.
"""

from collections.abc import Awaitable, Callable, Coroutine, Hashable
from contextvars import Token
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    final,
    overload,
)

import msgspec

from tidegate.core.outcome import SUCCESS, Outcome
from tidegate.core.pipeline import Pipeline
from tidegate.errors import SettingsError
from tidegate.runtime.classify import classify
from tidegate.runtime.context import AMBIENT, NOTHING, Ambient, back_to
from tidegate.runtime.degraded import noting
from tidegate.runtime.dependency import Dependency, GuardSnapshot, Listener
from tidegate.runtime.keywords import KEYWORDS, override
from tidegate.settings.rules import one_of, refuse
from tidegate.settings.system import Call
from tidegate.units import Duration

if TYPE_CHECKING:
    from tidegate.runtime.attempt import Attempt

__all__ = ["Classifier", "Expected", "Guard", "Judge", "Mode", "Verdict"]

Mode = Literal["enforce", "observe", "off"]

_MODES: Final = ("enforce", "observe", "off")
_NEVER: Final = 1 << 62
_CO_ASYNC_GENERATOR: Final = 0x200
_STREAMS: Final = 0x20 | _CO_ASYNC_GENERATOR
_CO_COROUTINE: Final = 0x80 | 0x100  # `async def`, and generators that types.coroutine has marked

# What one call may have otherwise than the rest: all that is not a policy with a state of its own.
_PER_CALL: Final = frozenset(
    {"attempts", "timeout", "deadline", "backoff", "retry_on", "idempotent", "propagate"}
)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Verdict(NamedTuple):
    """What a result says: an outcome, and how long the far side wants to be left alone."""

    outcome: Outcome
    retry_after: Duration = 0


Classifier = Callable[[BaseException], Outcome | None]
Judge = Callable[[Any], Verdict | None]
Expected = type[BaseException] | tuple[type[BaseException], ...]


@final
class Guard:
    """The guard of one dependency; `tidegate.guard` makes it.

    - `@licences` before a function, plain or `async`, guards each of its calls, and before a
      generator function each of its streams;
    - `licences.call(function, ...)` guards one, `await licences.acall(function, ...)` one that
      is to be awaited;
    - `with licences.attempt() as attempt` guards a block, once;
    - `licences.options(...)` is the same guard on other terms.

    `expected` are exceptions that are answers (a not-found). `classify` may say of an exception
    how the attempt ended, None for what it does not know; `judge` does so for a result that is
    returned. `fallback` is called with the same arguments when the call fails or is refused.
    """

    __slots__ = (
        "__weakref__",
        "_classify",
        "_expected",
        "_fallback",
        "_overrides",
        "dependency",
        "fallback",
        "first",
        "flat",
        "judge",
        "line",
        "mode",
        "payer",
        "pipeline",
        "whole",
    )

    def __init__(
        self,
        dependency: Dependency,
        *,
        mode: Mode = "enforce",
        fallback: Callable[..., Any] | None = None,
        expected: Expected = (),
        classify: Classifier | None = None,
        judge: Judge | None = None,
        overrides: dict[str, Any] | None = None,
    ) -> None:
        one_of("mode", mode, _MODES)
        for key, given in (("fallback", fallback), ("classify", classify), ("judge", judge)):
            if given is not None and not callable(given):
                raise refuse(key, "a function", given)
        if isinstance(expected, type):
            expected = (expected,)
        if not isinstance(expected, tuple) or not all(_is_exception(kind) for kind in expected):
            raise refuse("expected", "a tuple of exception types", expected)
        self.dependency: Final = dependency
        self.mode: Final = mode
        self._fallback: Final = fallback
        self.fallback: Final = None if fallback is None else noting(dependency.name, fallback)
        self.judge: Final = judge
        self.line: Any  # where the asyncio driver has its timers at hand; None: not yet
        self._expected: Final = expected
        self._classify: Final = classify
        self._overrides: Final = overrides or {}
        self.pipeline: Pipeline
        self.whole: Duration  # how long an attempt may take
        self.flat: bool  # whether a first attempt needs no execution
        self.payer: Dependency | None  # ours, if it has a budget to pay from
        self.first: Ambient  # what a first attempt hands down that has inherited nothing
        self.renew()
        dependency.views.add(self)

    @property
    def name(self) -> str:
        """The dependency's."""
        return self.dependency.name

    @property
    def settings(self) -> Call:
        """What this guard goes by, with every default written out."""
        return self.pipeline.settings

    @property
    def is_plain(self) -> bool:
        """Whether it has no terms of its own."""
        own = self._fallback or self._expected or self._classify or self.judge or self._overrides
        return self.mode == "enforce" and not own

    # Guarding.

    @overload
    def __call__(
        self, function: Callable[_P, Coroutine[Any, Any, _T]], /
    ) -> Callable[_P, Coroutine[Any, Any, _T]]: ...

    @overload
    def __call__(self, function: Callable[_P, _T], /) -> Callable[_P, _T]: ...

    def __call__(self, function: Callable[_P, Any], /) -> Callable[_P, Any]:
        """`function`, guarded: same signature, same kind, same results and exceptions."""
        flags = _flags(function)
        if flags & _STREAMS:
            return self._streamed(function, flags, None)  # type: ignore[no-any-return]
        if flags & _CO_COROUTINE:
            from tidegate.runtime import aio

            return aio.guarded(self, function)
        from tidegate.runtime import blocking

        return blocking.guarded(self, function)

    def call(self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call `function` once under this guard; for a coroutine function, give its coroutine."""
        return self(function)(*args, **kwargs)

    async def acall(
        self, function: Callable[_P, Awaitable[_T]], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Call and await `function`, which may be any callable that gives something to await."""
        from tidegate.runtime import aio

        return await aio.guarded(self, function)(*args, **kwargs)

    def stream(
        self, *, first_item: float | None = None, idle: float | None = None
    ) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
        """A decorator for generator functions, plain and async, with limits of their own.

        `first_item` is how many seconds the first item may take, `idle` each one after it; both are
        the guard's `timeout` if left out. Without limits of its own `@guard` alone does the same.
        """
        view = self if first_item is None else self.options(timeout=first_item)
        limit = override({"timeout": idle})["timeout"]

        def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
            return view._streamed(  # type: ignore[no-any-return]
                function, _flags(function), limit
            )

        return decorate

    def stale(
        self,
        max_age: float,
        *,
        entries: int = 1000,  # of 1 kB each they are a megabyte
        key: Callable[..., Hashable] | None = None,
    ) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
        """A decorator that answers with what was last answered, when the call fails or is refused.

        Good answers are kept by their arguments, `entries` of them, and used for `max_age` seconds
        (RFC 5861, `stale-if-error`); `key(*args, **kwargs)` says what they are kept by where the
        arguments have no hash, or one that says too much. Whoever asks the same as a call that is
        out waits for its answer. `tidegate.degradation` tells which answers were stale.
        """
        from tidegate.runtime import stale

        stale.Memory(max_age, entries)  # what is wrong is said here, and not one line further down
        if key is not None and not callable(key):
            raise refuse("key", "a function of the arguments", key)

        def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
            flags = _flags(function)
            if flags & _STREAMS:
                raise SettingsError("a stream has no last answer; guard what it is made from")
            kept = stale.Stale(self, stale.Memory(max_age, entries), key)
            if flags & _CO_COROUTINE:
                from tidegate.runtime import aio_stale

                return aio_stale.guarded(kept, function)  # type: ignore[arg-type, return-value]
            return stale.guarded(kept, function)

        return decorate

    def _streamed(self, function: Any, flags: int, idle: Duration | None) -> Any:
        if flags & _CO_ASYNC_GENERATOR:
            from tidegate.runtime import aio_streams

            return aio_streams.guarded(self, function, idle)
        from tidegate.runtime import streams

        return streams.guarded(self, function, idle)

    def attempt(self) -> "Attempt":
        """A guard around one block: `with` it, or `async with`. See `Attempt`."""
        global _attempt  # noqa: PLW0603 - importing it anew each time costs a microsecond
        if _attempt is None:
            from tidegate.runtime.attempt import Attempt

            _attempt = Attempt
        return _attempt(self)

    def options(
        self,
        *,
        mode: Mode | None = None,
        fallback: Callable[..., Any] | None = None,
        expected: Expected | None = None,
        classify: Classifier | None = None,
        judge: Judge | None = None,
        **settings: Any,
    ) -> "Guard":
        """The same guard, with the same state, on other terms for some calls.

        `attempts`, `timeout`, `deadline`, `backoff`, `retry_on`, `idempotent` and `propagate` may
        differ. A budget, breaker or limit is one for the dependency and cannot.
        """
        for name in settings:
            if name in KEYWORDS and name not in _PER_CALL:
                raise SettingsError(f"{name} is one for all calls of {self.name!r}, not an option")
        return Guard(
            self.dependency,
            mode=self.mode if mode is None else mode,
            fallback=self._fallback if fallback is None else fallback,
            expected=self._expected if expected is None else expected,
            classify=self._classify if classify is None else classify,
            judge=self.judge if judge is None else judge,
            overrides=self._overrides | override(settings),
        )

    # For the drivers.

    def outcome_of(self, error: BaseException) -> Outcome:
        """How an attempt that raised this has ended."""
        if self._expected and isinstance(error, self._expected):
            return SUCCESS
        if self._classify is not None:
            said: object = self._classify(error)
            if isinstance(said, Outcome):
                return said
            if said is not None:
                raise TypeError(f"classify gives a tidegate.Outcome or None, not {said!r}")
        return classify(error)

    def verdict_on(self, result: object) -> Verdict | None:
        """What `judge` says of a result; None if it says nothing, or there is no judge."""
        said: object = None if self.judge is None else self.judge(result)
        if said is None or isinstance(said, Verdict):
            return said
        raise TypeError(f"judge gives a tidegate.Verdict or None, not a {type(said).__name__}")

    def pays(self, inherited: Ambient) -> Token[Ambient] | None:
        """Tell those further in that we pay for their retries, if nobody further out does.

        The outermost budget pays for the retries of all layers, while there are any.
        """
        if self.payer is None or inherited.payer is not None:
            return None
        first = inherited is NOTHING
        values = self.first if first else inherited._replace(payer=self.payer)
        try:
            token = AMBIENT.set(values)
        except BaseException:  # a Ctrl-C: nobody will have the token
            back_to(inherited)
            raise
        return token

    def renew(self) -> None:
        """Take the dependency's pipeline, on the terms of this view."""
        pipeline = self.dependency.pipeline
        if self._overrides:
            settings = msgspec.structs.replace(pipeline.settings, **self._overrides)
            pipeline = self.dependency.adjusted(settings)
        self.pipeline = pipeline
        self.line = None
        self.whole = _NEVER if pipeline.timeout is None else pipeline.timeout
        self.flat = (
            self.mode == "enforce"
            and self.judge is None
            and pipeline.deadline is None
            and pipeline.hedge is None
        )
        self.payer = None if pipeline.budget is None else self.dependency
        self.first = NOTHING._replace(payer=self.payer)

    # Being seen.

    def snapshot(self) -> GuardSnapshot:
        """What the dependency has seen, all of one instant."""
        return self.dependency.snapshot()

    def listen(self, listener: Listener) -> None:
        """Tell `listener(name, transition)` of each change of state, outside every lock."""
        if not callable(listener):
            raise refuse("listener", "a function of a name and a transition", listener)
        self.dependency.listeners += (listener,)

    def __repr__(self) -> str:
        return f"<tidegate.Guard {self.name!r}>"

    def __reduce__(self) -> tuple[Callable[..., "Guard"], tuple[Any, ...]]:
        """Copied or pickled it is the guard of its name again, on the same terms."""
        from tidegate.runtime import registry

        terms = {
            "mode": self.mode,
            "fallback": self._fallback,
            "expected": self._expected,
            "classify": self._classify,
            "judge": self.judge,
            "overrides": self._overrides,
        }
        return registry.again, (self.name, registry.said_of(self.name), terms)


_attempt: "type[Attempt] | None" = None


def _is_exception(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _flags(function: Any) -> int:
    """What calling it gives, as flags of its code; looks through partials and callable objects.

    `inspect.iscoroutinefunction` by hand: importing `inspect` costs half of all our import.
    """
    while hasattr(function, "func") and hasattr(function, "keywords"):  # functools.partial
        function = function.func
    if isinstance(function, staticmethod | classmethod | property):
        raise SettingsError(
            f"a guard takes a function, not a {type(function).__name__}: write"
            f" @{type(function).__name__} above the guard"
        )
    if not callable(function):
        raise SettingsError(f"a guard takes a function, not {function!r}")
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None and not isinstance(function, type):
        code = getattr(getattr(type(function), "__call__", None), "__code__", None)  # noqa: B004
    return 0 if code is None else code.co_flags
