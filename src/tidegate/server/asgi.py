"""How does an ASGI server turn away what it cannot serve in time?

`LoadShedder` stands in front of an application and asks `core.admission` about every request. What
is refused gets its answer before the application is called; what waits, waits here, where it can
be told from other requests, and not in the kernel or behind a pool.

    app = LoadShedder(app, limit=40)

Put it outside of all other middleware, one for each process. It is plain ASGI and needs no
framework. WebSockets and lifespan pass through: a connection that stays is not a piece of work.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable
from typing import Any, Final, TypeAlias, final

from tidegate.core.admission import NEVER
from tidegate.core.fair_queue import Waiting
from tidegate.core.outcome import FAILURE, IGNORED, SUCCESS, TIMEOUT, Outcome, Reason, Rejection
from tidegate.core.shares import rank
from tidegate.runtime import doors
from tidegate.runtime.context import NOTHING, Ambient, entered
from tidegate.runtime.wire import READ, incoming
from tidegate.server.door import EXEMPT, RETRY_AFTER, Door, Mode, Rates, ShedderSnapshot, check
from tidegate.server.peer import bounded
from tidegate.server.refusal import REFUSALS
from tidegate.server.watch import Message, Nursery, Receive, Send, Watch
from tidegate.settings.admission import Admission, ClientRate
from tidegate.units import SECOND, Duration, Instant

__all__ = ["App", "LoadShedder", "Scope", "by_address", "by_header"]

Scope: TypeAlias = Any  # a mapping of whatever the server puts in
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods whose work may be stopped half-way: they change nothing (RFC 9110 section 9.2.1)."""

_READ: Final = frozenset(name.encode() for name in READ)


def by_address(scope: Scope) -> str | None:
    """The client is the address that is connected; behind a proxy that is the proxy."""
    peer = scope.get("client")
    return peer[0] if peer else None


def by_header(name: str) -> Callable[[Scope], str | None]:
    """The client is what stands in a header, as an API key; who sends none is nobody's client."""
    wanted = name.lower().encode()

    def client(scope: Scope) -> str | None:
        for header, value in scope["headers"]:
            if header == wanted:
                return bounded(value.decode("latin-1"))
        return None

    return client


@final
class LoadShedder:
    """An ASGI application that serves what `app` can serve, and refuses the rest at once.

    Keywords are those of `settings.admission.Admission`, times in seconds: `limit=40` (how many at
    once; left out, it finds itself), `queue=100`, `wait=0.5`, ...; or the whole record as
    `admission`, as it stands in a system file. Beside them:

    `mode`: "enforce"; "observe" asks and counts and refuses nobody; "off".
    `exempt`: paths that are always let in, and not counted.
    `trusted`: addresses and networks whose headers are believed about deadline, criticality and
    retries, "*" for all; nobody by default.
    `client`: whose request it is, given the scope (`by_header`, `by_address`, or your own): clients
    take turns, and `client_rate` holds for each: per second, a `ClientRate`, or a `SharedRate` for
    many processes and hosts together.
    `cancel_on_disconnect`: True stops the work of GET, HEAD and OPTIONS when nobody waits for it
    any more, because the client has left or its deadline has passed; a collection of methods says
    which instead; False never.
    `retry_after`: the seconds between which `Retry-After` is drawn.
    `name`: what it is called in metrics (`docs/telemetry.md`).

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
        client: Callable[[Scope], Hashable] | None = None,
        client_rate: ClientRate | Rates | float | None = None,
        cancel_on_disconnect: bool | Collection[str] = True,
        retry_after: tuple[int, int] = RETRY_AFTER,
        name: str = doors.NAME,
        **keywords: Any,
    ) -> None:
        check(app, client, client_rate)
        self.app: Final = app
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
        self._exempt: Final = self._door.exempt
        self._off: Final = mode == "off"
        self._observes: Final = mode == "observe"
        if isinstance(cancel_on_disconnect, bool):
            cancel_on_disconnect = SAFE if cancel_on_disconnect else ()
        elif isinstance(cancel_on_disconnect, str):
            cancel_on_disconnect = (cancel_on_disconnect,)
        self._stoppable: Final = frozenset(cancel_on_disconnect)
        self._nursery: Final = Nursery(self._read_clock)
        self._loop: asyncio.AbstractEventLoop | None = None  # on which the timer is armed
        doors.show(name, self)

    def snapshot(self) -> ShedderSnapshot:
        """Who is in and who waits now, and what has become of the others since the start."""
        return self._door.snapshot()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. Flat, since every request pays for it (`benchmarks/shedder.py`)."""
        if scope["type"] != "http" or self._off or scope["path"] in self._exempt:
            await self.app(scope, receive, send)
            return
        door = self._door
        now = door.now()
        inherited = NOTHING
        if door.trusts is not None:
            said = [pair for pair in scope["headers"] if pair[0] in _READ]
            if said and door.trusts(by_address(scope)):
                inherited = _inherited(now, said)
        client = None if self._client is None else self._client(scope)
        if client is not None and door.rates and not door.rates.try_acquire(now, client):
            await self._refuse_rate(now, client, scope, receive, send)
            return
        admission = door.admission
        if inherited is NOTHING:
            answer = admission.try_admit(now, 1, client)
        else:
            leaves_at = NEVER if inherited.deadline is None else inherited.deadline
            place = rank(inherited.rank, inherited.depth)
            answer = admission.try_admit(now, place, client, leaves_at)
        if (
            answer is not None
            or inherited is not NOTHING
            or scope["method"] in self._stoppable
            or admission.decided
        ):
            await self._by_the_book(now, answer, inherited, client, scope, receive, send)
            return
        outcome = FAILURE
        try:
            await self.app(scope, receive, send)
            outcome = SUCCESS
        except asyncio.CancelledError:
            outcome = IGNORED
            raise
        finally:
            admission.on_done(door.now(), now, outcome, client)
            if admission.decided:
                self._deliver()

    # Private parts: the long way.

    async def _by_the_book(
        self,
        now: Instant,
        answer: Waiting | Rejection | None,
        inherited: Ambient,
        client: Hashable,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        if self._door.admission.decided:
            self._deliver()  # somebody who matters less had to make room
        if answer is not None and self._observes:
            self._door.on_observed(now, answer)
            await self.app(scope, receive, send)
            return
        if type(answer) is Rejection:
            await self._refuse(now, answer.reason, scope, send)
            return
        task = asyncio.current_task()
        assert task is not None, "an ASGI application runs in a task of asyncio"
        watch = Watch(task, receive, send)
        if answer is not None:
            rejection = await self._wait(watch, answer)
            if watch.gone:
                return
            if type(rejection) is Rejection:
                watch.close()
                await self._refuse(self._door.now(), rejection.reason, scope, send)
                return
            now = self._door.now()
        watch.stoppable = scope["method"] in self._stoppable
        await self._serve(now, watch, inherited, client, scope)

    async def _serve(
        self, now: Instant, watch: Watch, inherited: Ambient, client: Hashable, scope: Scope
    ) -> None:
        """Call the application, and stop it when nobody waits any more."""
        door = self._door
        deadline = inherited.deadline
        if watch.stoppable:
            watch.deadline = deadline
            self._nursery.add(now, watch)
        outcome = FAILURE
        ours = closed = False
        try:
            if inherited is NOTHING:
                await self.app(scope, watch.receive, watch.send)
            else:
                with entered(inherited):
                    await self.app(scope, watch.receive, watch.send)
            outcome = SUCCESS
        except asyncio.CancelledError:
            outcome = IGNORED
            ours, closed = watch.close(), True
            if not ours:
                raise
        finally:
            ours = ours if closed else watch.close()
            ended = door.now()
            self._end(now, ended, watch, outcome, deadline, client)
            door.cancelled += ours
        if watch.expired and ours and not watch.started:
            await self._refuse(ended, Reason.DEADLINE, scope, watch.send)

    def _end(
        self,
        began: Instant,
        ended: Instant,
        watch: Watch,
        outcome: Outcome,
        deadline: Instant | None,
        client: Hashable,
    ) -> None:
        """Give the place back, with what this request says about load."""
        if watch.gone:
            outcome = IGNORED
        elif deadline is not None and ended >= deadline:
            self._door.late += outcome is SUCCESS
            outcome = TIMEOUT
        self._door.admission.on_done(ended, began, outcome, client)
        if self._door.admission.decided:
            self._deliver()

    def _read_clock(self) -> Instant:
        return self._door.now()  # whichever clock it is by then

    # Private parts: waiting.

    async def _wait(self, watch: Watch, item: Waiting) -> Rejection | bool | None:
        """Wait for the answer; no answer if the client leaves meanwhile."""
        loop = asyncio.get_running_loop()
        decided = item.shell = loop.create_future()
        watch.listen()
        self._wake_in_time(loop)
        try:
            await decided
        except asyncio.CancelledError:
            self._door.admission.on_left(self._door.now(), item)
            self._deliver()
            if not (watch.close() and watch.gone):
                raise
        return item.answer

    def _deliver(self) -> None:
        """Wake everybody who has an answer now."""
        for item in self._door.admission.drain_decided():
            if not item.shell.done():
                item.shell.set_result(None)

    def _wake_in_time(self, loop: asyncio.AbstractEventLoop) -> None:
        due = self._door.admission.next_wakeup()
        if due is None or loop is self._loop:
            return
        self._loop = loop
        loop.call_later(max(0, due - self._door.now()) / SECOND, self._on_wakeup)

    def _on_wakeup(self) -> None:
        self._loop = None
        self._door.admission.on_wakeup(self._door.now())
        self._deliver()
        self._wake_in_time(asyncio.get_running_loop())

    # Private parts: saying no.

    async def _refuse_rate(
        self, now: Instant, client: Hashable, scope: Scope, receive: Receive, send: Send
    ) -> None:
        assert self._door.rates is not None
        self._door.rate_refused += 1
        if self._observes:
            self._door.on_refused(now, Reason.RATE)
            await self.app(scope, receive, send)
            return
        later = self._door.rates.retry_after(now, client)
        await self._refuse(now, Reason.RATE, scope, send, at_least=later)

    async def _refuse(
        self, now: Instant, reason: Reason, scope: Scope, send: Send, at_least: Duration = 0
    ) -> None:
        self._door.on_refused(now, reason)
        refusal = REFUSALS[reason]
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(refusal.body)),
        ]
        if refusal.later:
            headers.append((b"retry-after", b"%d" % self._door.retry_after.draw(at_least)))
        start: Message = {
            "type": "http.response.start",
            "status": refusal.status,
            "headers": headers,
        }
        await send(start)
        body = b"" if scope["method"] == "HEAD" else refusal.body
        await send({"type": "http.response.body", "body": body})


def _inherited(now: Instant, said: list[tuple[bytes, bytes]]) -> Ambient:
    """What a trusted caller's headers say."""
    return incoming(now, {name.decode(): value.decode("latin-1") for name, value in said})
