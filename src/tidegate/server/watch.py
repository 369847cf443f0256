"""Does anybody still wait for this answer, and what if not?

An ASGI server tells that a client has left by a message, and only to whoever is listening at that
moment; most applications read the body and never listen again, and work on for nobody. A `Watch`
stands between the two: it listens while the application does not, hands on whatever it has heard,
and when the client leaves, or the deadline passes, it cancels the request's task. Once the answer
is out nothing is cancelled: what runs then is meant to outlive the request.

Listening takes a task of its own and a deadline a timer, 5 us and 3 us of CPU. Most requests are
over before either would pay, so they are for those alone that have gone on for `GRACE`: until then
all stand in a `Nursery`, one line and one timer for all, since all grow up at the same age.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias, final

import msgspec

from tidegate.runtime.timers import Cut
from tidegate.units import MILLISECOND, SECOND, Duration, Instant

__all__ = ["GRACE", "Message", "Nursery", "Receive", "Send", "Watch"]

Message: TypeAlias = MutableMapping[str, Any]
# Any, because each framework has a mapping of its own for a message, and takes no other.
Receive: TypeAlias = Callable[[], Awaitable[Any]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]

# A piece of the answer, or all of it as a file that the server sends by itself.
_BODIES: Final = frozenset(
    ("http.response.body", "http.response.pathsend", "http.response.zerocopysend")
)

GRACE: Final[Duration] = 20 * MILLISECOND
"""How long a request runs before somebody listens for its client's leaving.

At half, twice as many requests pay 5 us for what is mostly there anyway; at double, up to 40 ms of
work are done for nobody. A task costs less than a thousandth of the work that it may save.
"""


@final
class Watch(msgspec.Struct, eq=False):
    """One request of an application, and who waits for it.

    `receive` and `send` are what the application gets in place of the server's. `stoppable` is
    whether its task may be cancelled now, `deadline` when it is to be; `gone` whether the client
    left before the answer was complete, `expired` whether the deadline passed; `started` whether
    the answer has begun.
    """

    task: "asyncio.Task[Any]"
    server_receive: Receive
    server_send: Send
    stoppable: bool = True
    deadline: Instant | None = None
    started: bool = False
    complete: bool = False
    gone: bool = False
    expired: bool = False
    over: bool = False
    # Somebody is to listen whenever the application does not.
    wanted: bool = False
    reading: bool = False
    body_over: bool = False
    heard: list[Message] | None = None  # by us, for the application to read
    listener: "asyncio.Future[Message] | None" = None
    timer: asyncio.TimerHandle | None = None
    cut: Cut | None = None

    # What the application calls.

    async def receive(self) -> Message:
        """The next message of the client, as it came."""
        while not self.heard and self.listener is not None:
            await asyncio.wait((self.listener,))
        if self.heard:
            return self.heard.pop(0)
        self.reading = True
        try:
            message: Message = await self.server_receive()
        finally:
            self.reading = False
        self._note(message)
        if self.wanted:
            self.listen()
        return message

    async def send(self, message: Message) -> None:
        """One more message of the answer."""
        kind = message["type"]
        if kind == "http.response.start":
            self.started = True
        elif kind in _BODIES and not message.get("more_body", False):
            self.complete = True
        await self.server_send(message)

    # What the shedder does.

    def listen(self) -> None:
        """Listen for the client's leaving from now on, except while the application reads.

        Of a body that is still to come no more than one message is taken in: the rest waits in the
        server, which knows how to hold a sender back.
        """
        self.wanted = True
        held_back = self.heard and not self.body_over
        if self.listener or self.reading or held_back or self.gone or self.complete or self.over:
            return
        listener = asyncio.ensure_future(self.server_receive())
        self.listener = listener
        listener.add_done_callback(self._on_heard)

    def expire(self, now: Instant) -> None:
        """Stop the work when its deadline passes, if it has one."""
        if self.deadline is not None:
            left = max(0, self.deadline - now) / SECOND
            self.timer = asyncio.get_running_loop().call_later(left, self._on_expired)

    def close(self) -> bool:
        """The work has ended, somehow. Whether it was we, and only we, who stopped it."""
        self.over = True
        if self.timer is not None:
            self.timer.cancel()
        if self.listener is not None:
            self.listener.cancel()
        return self.cut is not None and self.cut.was_ours_alone()

    # Private parts.

    def _note(self, message: Message) -> None:
        if message["type"] == "http.request":
            self.body_over = not message.get("more_body", False)
        elif message["type"] == "http.disconnect" and not self.complete:
            self.gone = True

    def _on_heard(self, listener: "asyncio.Future[Message]") -> None:
        self.listener = None
        if listener.cancelled() or listener.exception() is not None:
            return  # whatever is wrong with the server's side, the application meets it as well
        message = listener.result()
        self.heard = [*(self.heard or ()), message]  # two at most: the body's, and the leaving
        self._note(message)
        if self.gone:
            self._stop()
        else:
            self.listen()

    def _on_expired(self) -> None:
        self.expired = True
        self._stop()

    def _stop(self) -> None:
        if self.stoppable and not (self.complete or self.over or self.cut):
            self.cut = Cut(self.task)


@final
class Nursery:
    """Requests that are too young to be looked after, the oldest first. `now` reads the clock."""

    __slots__ = ("_line", "_loop", "_now")

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now: Final = now
        self._line: Final[deque[tuple[Instant, Watch]]] = deque()
        # The loop on which the timer is armed; another one means that the first was closed.
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, now: Instant, watch: Watch) -> None:
        """Look after this one once it has gone on for `GRACE`, or at once if that is too late."""
        if watch.deadline is not None and watch.deadline - now < GRACE:
            watch.expire(now)
            watch.deadline = None
        self._line.append((now + GRACE, watch))
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            loop.call_later(GRACE / SECOND, self._grow_up)

    def _grow_up(self) -> None:
        """Look after all that are old enough, and come back for the rest."""
        line, self._loop = self._line, None
        # Up to a hundredth of the grace too early is as good as in time, and saves a timer.
        due = line[0][0] + GRACE // 100 if line else 0
        while line and (line[0][0] <= due or line[0][1].over):
            _, watch = line.popleft()
            if not watch.over:
                watch.listen()
                watch.expire(self._now())
        if line:
            self._loop = asyncio.get_running_loop()
            self._loop.call_later((line[0][0] - due) / SECOND, self._grow_up)
