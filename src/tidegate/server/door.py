"""What do the two kinds of middleware share: settings, clock, counts, and words for the log?

The decision is `core.admission`; what is left for a shell is to read the clock, to know the
request, and to say no. In here is the part of that which does not depend on ASGI or WSGI.
"""

import logging
from collections.abc import Callable, Collection, Hashable, Mapping
from random import SystemRandom
from typing import Any, Final, Protocol, get_args
from weakref import WeakSet

import msgspec

from tidegate.core.admission import Admission
from tidegate.core.client_rates import ClientRates, ClientRatesSnapshot
from tidegate.core.fair_queue import Waiting
from tidegate.core.outcome import Reason, Rejection
from tidegate.errors import SettingsError, nearest
from tidegate.runtime import clock as clocks
from tidegate.runtime.doors import Mode, ShedderSnapshot
from tidegate.runtime.keywords import value_of
from tidegate.server.peer import trusts
from tidegate.server.refusal import REFUSALS, RetryAfter
from tidegate.settings import admission as settings
from tidegate.settings.rules import one_of, refuse
from tidegate.settings.shapes import fields
from tidegate.units import SECOND, Duration, Instant

__all__ = ["EXEMPT", "RETRY_AFTER", "Door", "Mode", "Rates", "ShedderSnapshot", "check"]

EXEMPT: Final = ("/health", "/healthz", "/livez", "/ping", "/ready", "/readyz")
"""Paths that are never refused nor counted: a server that is busy is not dead."""

RETRY_AFTER: Final = (1, 4)
"""Seconds: a server that is short for a moment is well within one; four apart are four waves."""

# One line for so long, however many were refused in it: a log storm is no help in an overload.
_LOG_EVERY: Final = 10 * SECOND

_log: Final = logging.getLogger("tidegate.server")
_KEYS: Final = fields(settings.Admission)
_doors: Final["WeakSet[Door]"] = WeakSet()


class Rates(Protocol):
    """A rate for each client: `core.client_rates` for one process, `shared_rate` for many."""

    def try_acquire(self, now: Instant, client: Hashable) -> bool:
        """Let one of `client` come now."""
        ...

    def retry_after(self, now: Instant, client: Hashable) -> Duration:
        """How long until `client` would be let in."""
        ...

    def snapshot(self, now: Instant) -> ClientRatesSnapshot:
        """What a person would ask of it."""
        ...


class Door:
    """The parts of a shedder that its requests share.

    `keywords` are those of a service's `admission` block in a system file, times in seconds.
    """

    def __init__(
        self,
        keywords: Mapping[str, Any],
        *,
        admission: settings.Admission | None,
        mode: Mode,
        exempt: Collection[str],
        trusted: Collection[str],
        client_rate: "settings.ClientRate | Rates | float | None",
        retry_after: tuple[int, int],
    ) -> None:
        one_of("mode", mode, get_args(Mode))
        self.mode: Final[Mode] = mode
        if admission is not None and not isinstance(admission, settings.Admission):
            raise refuse("admission", "an Admission(...)", admission)
        for key, given in (("exempt", exempt), ("trusted", trusted)):
            if not isinstance(given, Collection):
                raise refuse(key, "names, in a tuple or another collection", given)
        self.settings: Final = _settings(admission or settings.Admission(), keywords)
        self.admission: Final = Admission(self.settings)
        if isinstance(client_rate, int | float):
            client_rate = settings.ClientRate(rate=client_rate)
        if isinstance(client_rate, settings.ClientRate):
            client_rate = ClientRates(client_rate)
        self.rates: Final[Rates | None] = client_rate
        self.exempt: Final = frozenset((exempt,) if isinstance(exempt, str) else exempt)
        self.trusts: Final = trusts(trusted) if trusted else None
        # Luck from the machine: workers that were forked from one parent must not draw alike.
        self.retry_after: Final = RetryAfter(retry_after, SystemRandom())
        self.now: Callable[[], Instant] = clocks.current().now
        self.rate_refused = 0
        self.would_wait = 0
        self.cancelled = 0
        self.late = 0
        self._admitted = 0  # as many as anybody has been told of
        self._log_at: Instant = 0
        self._logged = 0
        _doors.add(self)

    def on_observed(self, now: Instant, answer: Waiting | Rejection) -> None:
        """In `observe` mode: somebody goes in all the same who would have been told this."""
        if type(answer) is Rejection:
            self.on_refused(now, answer.reason)
        else:
            self.would_wait += 1
            self.admission.on_left(now, answer)

    def on_refused(self, now: Instant, reason: Reason) -> None:
        """Somebody was refused: say so in the log, at most once in ten seconds."""
        self._logged += 1
        if now < self._log_at:
            return
        door = self.admission.snapshot(now)
        _log.warning(
            "%s %d request(s) since the last such line, at most once in 10 s; the last because"
            " %s; %d are in, of %d, and %d wait",
            "would have refused" if self.mode == "observe" else "refused",
            self._logged,
            REFUSALS[reason].words,
            door.inside,
            door.limit,
            door.waiting,
        )
        self._log_at = now + _LOG_EVERY
        self._logged = 0

    def snapshot(self) -> ShedderSnapshot:
        """What a person would ask of it.

        A thread that asks may meet a request half-way out, in neither of the two numbers that make
        `admitted` or in both. So it never goes back: an exporter would take that for a restart.
        """
        now = self.now()
        door = self.admission.snapshot(now)
        self._admitted = max(self._admitted, door.inside + sum(door.done))
        refused = {
            Reason(index).name.lower(): number
            for index, number in enumerate(door.refused)
            if number
        }
        if self.rate_refused:
            refused["rate"] = self.rate_refused
        return ShedderSnapshot(
            mode=self.mode,
            door=door,
            admitted=self._admitted,
            left=0 if self.mode == "observe" else door.left,  # there nobody waits, so as to leave
            refused=refused,
            would_wait=self.would_wait,
            cancelled=self.cancelled,
            late=self.late,
            rates=None if self.rates is None else self.rates.snapshot(now),
        )


def check(app: object, client: object, client_rate: object) -> None:
    """Raise SettingsError for what would be found out by the first request, or by nobody."""
    if not callable(app):
        raise refuse("app", "an application to stand in front of", app)
    if client is not None and not callable(client):
        raise refuse("client", "a function, as by_header('x-api-key') makes one", client)
    if client_rate is None:
        return
    number = isinstance(client_rate, int | float) and not isinstance(client_rate, bool)
    if not (number or isinstance(client_rate, settings.ClientRate)) and not hasattr(
        client_rate, "try_acquire"
    ):
        raise refuse("client_rate", "requests a second, a ClientRate or a SharedRate", client_rate)
    if client is None:
        raise SettingsError(
            "it holds for each client, so say whose a request is: client=by_address",
            path=("client_rate",),
        )


def _settings(base: settings.Admission, keywords: Mapping[str, Any]) -> settings.Admission:
    changed = {}
    for name, value in keywords.items():
        field = _KEYS.get(name)
        if field is None:
            raise SettingsError(f"there is no setting {name!r}{nearest(name, list(_KEYS))}")
        changed[name] = value_of(field, value)
    return msgspec.structs.replace(base, **changed) if changed else base


def _go_by(clock: clocks.Clock) -> None:
    for door in tuple(_doors):
        door.now = clock.now


clocks.on_change(_go_by)
