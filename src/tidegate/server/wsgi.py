"""How does a WSGI server turn away what it cannot serve in time?

The twin of `asgi`, for servers that give each request a thread. `LoadShedder` stands in front of an
application and asks `core.admission`, under one lock, about every request.

    application = LoadShedder(application, limit=8)

A no must have a thread to say it with, and whoever waits here holds one. So give the server more
threads than the limit: the others refuse, wait, and serve the health checks. Two things a thread
cannot do: it is never told that its client has left, and nothing can stop it half-way. What is
finished after its deadline is counted, and what it calls meanwhile is cut by the ambient deadline.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from threading import Lock
from typing import Any, Final, TypeAlias, final

from tidegate.core.admission import NEVER
from tidegate.core.fair_queue import Waiting
from tidegate.core.outcome import (
    FAILURE,
    REJECTIONS,
    SUCCESS,
    TIMEOUT,
    Outcome,
    Reason,
    Rejection,
)
from tidegate.core.shares import rank
from tidegate.runtime import doors
from tidegate.runtime.context import NOTHING, Ambient, entered
from tidegate.runtime.wire import READ, incoming
from tidegate.server.door import EXEMPT, RETRY_AFTER, Door, Mode, Rates, ShedderSnapshot, check
from tidegate.server.peer import bounded
from tidegate.server.refusal import REFUSALS
from tidegate.settings.admission import Admission, ClientRate
from tidegate.units import SECOND, Duration, Instant

__all__ = ["App", "Environ", "LoadShedder", "by_address", "by_header"]

Environ: TypeAlias = dict[str, Any]
StartResponse: TypeAlias = Callable[..., Any]
App: TypeAlias = Callable[[Environ, StartResponse], Iterable[bytes]]

_READ: Final = {"HTTP_" + name.upper().replace("-", "_"): name for name in READ}

_RATE: Final = REJECTIONS[Reason.RATE]

_STATUS: Final = {
    429: "429 Too Many Requests",
    503: "503 Service Unavailable",
    504: "504 Gateway Timeout",
}


def by_address(environ: Environ) -> str | None:
    """The client is the address that is connected; behind a proxy that is the proxy."""
    return environ.get("REMOTE_ADDR") or None


def by_header(name: str) -> Callable[[Environ], str | None]:
    """The client is what stands in a header, as an API key; who sends none is nobody's client."""
    key = "HTTP_" + name.upper().replace("-", "_")

    def client(environ: Environ) -> str | None:
        value = environ.get(key)
        return None if value is None else bounded(value)

    return client


@final
class LoadShedder:
    """A WSGI application that serves what `app` can serve, and refuses the rest at once.

    Its keywords are those of `tidegate.server.asgi.LoadShedder`, without `cancel_on_disconnect`;
    `client` is given the environ. `queue` is 0 unless it is said: who waits holds a thread.

    Raises SettingsError for what makes no sense.
    """

    def __init__(
        self,
        app: App,
        /,
        *,
        admission: Admission | None = None,
        mode: Mode = "enforce",
        exempt: Collection[str] = EXEMPT,
        trusted: Collection[str] = (),
        client: Callable[[Environ], Hashable] | None = None,
        client_rate: ClientRate | Rates | float | None = None,
        retry_after: tuple[int, int] = RETRY_AFTER,
        name: str = doors.NAME,
        **keywords: Any,
    ) -> None:
        check(app, client, client_rate)
        self.app: Final = app
        if admission is None:
            keywords.setdefault("queue", 0)
        self._door: Final = Door(
            keywords,
            admission=admission,
            mode=mode,
            exempt=exempt,
            trusted=trusted,
            client_rate=client_rate,
            retry_after=retry_after,
        )
        self._client: Final = client
        self._lock: Final = Lock()
        doors.show(name, self)

    def snapshot(self) -> ShedderSnapshot:
        """Who is in and who waits now, and what has become of the others since the start."""
        with self._lock:
            return self._door.snapshot()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """One request."""
        door = self._door
        if door.mode == "off" or environ.get("PATH_INFO", "") in door.exempt:
            return self.app(environ, start_response)
        now = door.now()
        inherited = NOTHING if door.trusts is None else self._inherited(now, environ)
        client = None if self._client is None else self._client(environ)
        answer, later = self._ask(now, inherited, client)
        if answer is False:
            return self.app(environ, start_response)  # observed only
        if type(answer) is Rejection:
            return self._refuse(answer.reason, environ, start_response, later)
        return self._serve(door.now(), inherited, client, environ, start_response)

    # Private parts.

    def _serve(
        self,
        began: Instant,
        inherited: Ambient,
        client: Hashable,
        environ: Environ,
        start_response: StartResponse,
    ) -> Iterable[bytes]:
        """Call the application. It is done when its answer has been handed over and closed.

        A list is all there already; a file that the server sends by itself must reach it as it is.
        """
        deadline = inherited.deadline
        try:
            if inherited is NOTHING:
                body = self.app(environ, start_response)
            else:
                with entered(inherited):
                    body = self.app(environ, start_response)
        except BaseException:
            self._on_done(began, deadline, FAILURE, client)
            raise
        wrapper = environ.get("wsgi.file_wrapper")
        if isinstance(body, list | tuple) or (
            isinstance(wrapper, type) and isinstance(body, wrapper)
        ):
            self._on_done(began, deadline, SUCCESS, client)
            return body
        return _Answer(
            body, inherited, lambda outcome: self._on_done(began, deadline, outcome, client)
        )

    def _ask(
        self, now: Instant, inherited: Ambient, client: Hashable
    ) -> tuple[Rejection | bool | None, Duration]:
        """Let in (None or True), or not, and then how long not. Waits as long as it is told to.

        False is to let in and not to count: whoever is only observed.
        """
        door = self._door
        leaves_at = NEVER if inherited.deadline is None else inherited.deadline
        place = rank(inherited.rank, inherited.depth)
        with self._lock:
            if client is not None and door.rates and not door.rates.try_acquire(now, client):
                door.rate_refused += 1
                if door.mode == "observe":
                    door.on_refused(now, Reason.RATE)
                    return False, 0
                return _RATE, door.rates.retry_after(now, client)
            answer = door.admission.try_admit(now, place, client, leaves_at)
            if door.mode == "observe" and (type(answer) is Waiting or type(answer) is Rejection):
                door.on_observed(now, answer)
                return False, 0
            if type(answer) is Waiting:
                answer.shell = Lock()
                answer.shell.acquire()
            self._deliver()
        if type(answer) is not Waiting:
            return answer, 0
        return self._wait(answer), 0

    def _wait(self, item: Waiting) -> Rejection | bool | None:
        """Hold this thread until there is an answer; each wakes by itself when it is too late."""
        door = self._door
        while item.answer is None:
            left = item.since + door.settings.wait - door.now()
            if left > 0 and item.shell.acquire(timeout=left / SECOND):
                break
            with self._lock:
                door.admission.on_wakeup(door.now())
                self._deliver()
        return item.answer

    def _deliver(self) -> None:
        """Wake everybody who has an answer now. The lock is held."""
        for item in self._door.admission.drain_decided():
            item.shell.release()

    def _on_done(
        self, began: Instant, deadline: Instant | None, outcome: Outcome, client: Hashable
    ) -> None:
        door = self._door
        with self._lock:
            now = door.now()
            if deadline is not None and now >= deadline:
                door.late += outcome is SUCCESS
                outcome = TIMEOUT
            door.admission.on_done(now, began, outcome, client)
            self._deliver()

    def _inherited(self, now: Instant, environ: Environ) -> Ambient:
        said = {name: environ[key] for key, name in _READ.items() if key in environ}
        assert self._door.trusts is not None
        if not said or not self._door.trusts(by_address(environ)):
            return NOTHING
        return incoming(now, said)

    def _refuse(
        self, reason: Reason, environ: Environ, start_response: StartResponse, later: Duration
    ) -> list[bytes]:
        door = self._door
        with self._lock:
            door.on_refused(door.now(), reason)
        refusal = REFUSALS[reason]
        headers = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(refusal.body))),
        ]
        if refusal.later:
            headers.append(("Retry-After", str(door.retry_after.draw(later))))
        start_response(_STATUS[refusal.status], headers)
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [refusal.body]


@final
class _Answer:
    """An answer that is made piece by piece, with the ambient of its request around each piece.

    `close` is called by every server, also when the client has left in the middle.
    """

    __slots__ = ("_body", "_failed", "_inherited", "_on_done", "_pieces")

    def __init__(
        self, body: Iterable[bytes], inherited: Ambient, on_done: Callable[[Outcome], None]
    ) -> None:
        self._body: Final = body
        self._pieces: Iterator[bytes] | None = None
        self._inherited: Final = inherited
        self._on_done: Callable[[Outcome], None] | None = on_done
        self._failed = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with entered(self._inherited):
            try:
                if self._pieces is None:
                    self._pieces = iter(self._body)
                return next(self._pieces)
            except StopIteration:
                raise
            except BaseException:
                self._failed = True
                raise

    def close(self) -> None:
        """Close the application's answer, and give the place back, once."""
        try:
            if hasattr(self._body, "close"):
                self._body.close()
        finally:
            on_done, self._on_done = self._on_done, None
            if on_done is not None:
                on_done(FAILURE if self._failed else SUCCESS)
