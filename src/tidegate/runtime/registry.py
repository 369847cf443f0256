"""Which guard is meant by a name?

One dependency has one guard in a process, wherever in the code it is asked for: two would each
have a budget, and spend twice. So a name is looked up here, and made only once.

A system file that is loaded gives the settings of every call that it names, to guards that exist
already and to those that are made later.
"""

import os
import threading
from collections.abc import Callable, Mapping
from os import PathLike
from random import Random
from typing import Any, Final

from tidegate.errors import SettingsError
from tidegate.runtime import clock as clocks
from tidegate.runtime.dependency import LISTENERS, Dependency, GuardSnapshot, Listener
from tidegate.runtime.guard import Classifier, Expected, Guard, Judge, Mode
from tidegate.runtime.keywords import call_settings
from tidegate.settings.rules import refuse
from tidegate.settings.system import Call, default_protection, protected

__all__ = ["again", "begin_anew", "guard", "listen", "load", "said_of", "snapshots"]

_lock = threading.Lock()
_dependencies: Final[dict[str, Dependency]] = {}
_plain: Final[dict[str, Guard]] = {}  # the view of each that has no terms of its own
_said: Final[dict[str, Call]] = {}  # by code; a file does not overrule it
_from_file: Final[dict[str, Call]] = {}

_seed: int | None = None  # of everybody's luck, in tests

_NAME_MAX: Final = 200  # as much as fits on a line and in a metric's label


def guard(
    name: str,
    settings: Call | None = None,
    /,
    *,
    mode: Mode = "enforce",
    fallback: Callable[..., Any] | None = None,
    expected: Expected = (),
    classify: Classifier | None = None,
    judge: Judge | None = None,
    **keywords: Any,
) -> Guard:
    """The guard of the dependency `name`, the same one in all of this process.

    With no settings it has the safe defaults (a call's `protect: default`): two attempts with
    jittered backoff within a retry budget of 10 %, a circuit breaker, 10 s for an attempt. Settings
    are given once, as keywords (times in seconds, `None` switches a policy off), as a record, or by
    a system file (`load`). `expected`, `classify`, `judge` and `fallback` are this view's own; see
    `Guard`.

    Raises SettingsError for a setting that is wrong, or one that contradicts what the same name
    was given elsewhere.
    """
    _check_name(name)
    if settings is not None and keywords:
        raise SettingsError(f"guard({name!r}): give a record of settings or keywords, not both")
    given = None
    if settings is not None:
        given = default_protection(settings)
    elif keywords:
        given = call_settings(keywords)
    dependency = _dependency(name, given)
    if mode == "enforce" and not (fallback or expected or classify or judge):
        return _plain.setdefault(name, Guard(dependency))
    return Guard(
        dependency,
        mode=mode,
        fallback=fallback,
        expected=expected,
        classify=classify,
        judge=judge,
    )


def said_of(name: str) -> Call | None:
    """The settings that code has given to this name; None if none has."""
    with _lock:
        return _said.get(name)


def again(name: str, said: Call | None, terms: dict[str, Any]) -> Guard:
    """A guard that was pickled, perhaps in another process; what code has said here counts more."""
    dependency = _dependency(name, None if said_of(name) is not None else said)
    view = Guard(dependency, **terms)
    if view.is_plain:
        return _plain.setdefault(name, view)
    return view


def load(path: str | PathLike[str]) -> tuple[str, ...]:
    """Take the settings of every call in a system file; the answer is their names.

    Guards of these names that exist already go by the file from now on, keeping the state of every
    policy that the file has not changed, except those that code has given settings of its own.
    Loaded again, the file is read again: all of it is checked first, then swapped in.

    Raises SettingsError with `file:line:column`; then nothing has changed. Needs the extra `files`.
    """
    from tidegate.settings.load import load as read

    system = protected(read(path).system())
    calls = {name: call for _, _, group in system.callers() for name, call in group.items()}
    with _lock:
        _from_file.clear()
        _from_file.update(calls)
        changed = [(d, calls[n]) for n, d in _dependencies.items() if n in calls and n not in _said]
    for dependency, call in changed:
        if dependency.settings != call:
            dependency.reconfigure(call)
    return tuple(calls)


def snapshots() -> Mapping[str, GuardSnapshot]:
    """What each dependency of this process has seen, by name."""
    with _lock:
        known = list(_dependencies.values())
    return {dependency.name: dependency.snapshot() for dependency in known}


def listen(listener: Listener) -> Callable[[], None]:
    """Tell `listener(name, transition)` of each change of state of every dependency, also of those
    that are made later; calling the answer ends it. `Guard.listen` is for one dependency.
    """
    if not callable(listener):
        raise refuse("listener", "a function of a name and a transition", listener)
    LISTENERS.append(listener)

    def end() -> None:
        if listener in LISTENERS:
            LISTENERS.remove(listener)

    return end


def begin_anew(seed: int | None) -> None:
    """For tests: every dependency forgets its calls and what it has learnt, and keeps its settings.

    With a seed the luck of each is the same in every run, also of those that are made later.
    """
    global _seed  # noqa: PLW0603 - one for the process, as the registry is
    with _lock:
        _seed = seed
        for name, dependency in _dependencies.items():
            dependency.start_afresh(_seed_of(name))


def _seed_of(name: str) -> str | None:
    return None if _seed is None else f"{_seed}/{name}"


def _luck_of(name: str) -> Random:
    return Random(_seed_of(name))


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name or len(name) > _NAME_MAX or not name.isprintable():
        raise SettingsError(
            f"the name of a guard is 1 to {_NAME_MAX} printable characters, not {name!r}"
        )


def _dependency(name: str, given: Call | None) -> Dependency:
    with _lock:
        known = _dependencies.get(name)
        if known is None:
            if given is not None:
                _said[name] = given
            settings = given if given is not None else _from_file.get(name)
            if settings is None:
                settings = call_settings({})
            known = _dependencies[name] = Dependency(name, settings, _luck_of(name))
            return known
        said = _said.get(name)
        if given is None or given == said:
            return known
        if said is not None:
            raise SettingsError(
                f"guard({name!r}) was given other settings elsewhere; give them once, and use"
                " options() for calls that need other terms"
            )
        _said[name] = given
    known.reconfigure(given)
    return known


def _forget() -> None:
    """For tests: as if no guard had been made and no file loaded."""
    with _lock:
        _dependencies.clear()
        _plain.clear()
        _said.clear()
        _from_file.clear()


def _after_fork() -> None:
    """In the child: a lock may have been held, luck would be the parent's, calls are not ours."""
    global _lock  # noqa: PLW0603 - the one that was held cannot be freed
    _lock = threading.Lock()
    for dependency in _dependencies.values():
        dependency.start_afresh()


def _go_by(clock: clocks.Clock) -> None:
    for dependency in _dependencies.values():
        dependency.clock, dependency.now = clock, clock.now
        for view in dependency.views:
            view.renew()  # its timers go by the clock too


clocks.on_change(_go_by)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
