"""May this request come in now, wait at the door, or must it go away?

What a server asks before it begins to work. The order of the questions is fixed:

    its deadline has passed                      -> no: nobody waits for the answer
    its client has its share of the house        -> no
    fewer are in than its class may fill         -> in
    there is a waiting place for it              -> wait; who matters less may have to go for it
    else                                         -> no

When a place becomes free, the highest class that waits is next, in it the clients take turns, and
of a client's own the newest is first once the queue is longer than the limit (adaptive LIFO). Who
is called is let in unless CoDel says that the queue stands and he has stood too long in it, or it
is too late to serve him. Whoever waits longer than `wait` is sent away unasked, else those whom
newer ones keep overtaking would hold the waiting places for as long as the overload lasts.

A no is said before any work is done; that is what makes it cheaper than a yes.
"""

from collections.abc import Hashable
from typing import Any, Final, NamedTuple, final

from tidegate.core.codel import CoDel
from tidegate.core.concurrency_limiter import ConcurrencyLimiter
from tidegate.core.fair_queue import FairQueue, Waiting
from tidegate.core.outcome import IGNORED, REJECTIONS, Outcome, Reason, Rejection
from tidegate.core.queue_order import can_finish, takes_newest
from tidegate.core.shares import RANKS, ceilings
from tidegate.settings import admission as settings
from tidegate.units import Duration, Instant

__all__ = ["NEVER", "Admission", "AdmissionSnapshot"]

NEVER: Final = 1 << 62
"""When somebody leaves who has not said when: after every other instant."""

_LIMIT: Final = REJECTIONS[Reason.LIMIT]
_CLIENT: Final = REJECTIONS[Reason.CLIENT]
_SHED: Final = REJECTIONS[Reason.SHED]
_WAITED: Final = REJECTIONS[Reason.WAITED]
_DEADLINE: Final = REJECTIONS[Reason.DEADLINE]

# TCP's smoothing of the round trip (RFC 6298 section 2): a mean of about the last eight.
_MEAN_SHIFT: Final = 3


class AdmissionSnapshot(NamedTuple):
    """Who is in and who waits now, and what has become of all others since the start.

    `done` has a count for each outcome of those who were in, `refused` for each reason, in their
    order; `left` is who went by himself while he waited. `mean` is the smoothed time inside, in
    nanoseconds.
    """

    inside: int
    limit: int
    waiting: int
    mean: Duration
    done: tuple[int, ...]
    refused: tuple[int, ...]
    left: int


@final
class Admission:
    """The door of one server process.

    The shell asks `try_admit`, and says `on_done` for everybody who was let in, also out of the
    queue. After each event it takes from `drain_decided` those who waited and now have their
    answer, and at `next_wakeup` it says `on_wakeup`.
    """

    __slots__ = (
        "_ceilings",
        "_client_most",
        "_client_share",
        "_clients",
        "_codel",
        "_done",
        "_left",
        "_limit",
        "_limiter",
        "_mean",
        "_order",
        "_queue",
        "_refused",
        "_shares",
        "_wait",
        "decided",
    )

    def __init__(self, settings: settings.Admission) -> None:
        self._limiter: Final = ConcurrencyLimiter(settings.limit)
        self._queue: Final = FairQueue(settings)
        # One for each class: what waits for the highest to go by says nothing of the highest.
        self._codel: Final = tuple(CoDel(settings.codel) for _ in RANKS)
        self._order: Final = settings.order
        self._wait: Final = settings.wait
        self._shares: Final = settings.shares
        self._client_share: Final = settings.client_share
        # How many each client has in the house, waiting included; only if that is limited.
        self._clients: Final[dict[Hashable, int]] = {}
        self._mean: Duration = 0
        self._done: Final = [0] * len(Outcome)
        self._refused: Final = [0] * len(Reason)
        self._left = 0
        self.decided: list[Waiting] = []  # not empty: it is time to drain it
        self._limit = 0
        self._ceilings = (0, 0, 0, 0)
        self._client_most = 0
        self._follow_limit()

    # Events, in the order of a request's life.

    def try_admit(
        self,
        now: Instant,
        rank: int,
        client: Hashable = None,
        leaves_at: Instant = NEVER,
        shell: Any = None,
    ) -> Waiting | Rejection | None:
        """Let a request in (None), let it wait, or send it away.

        `rank` is its class (`shares.rank`), `client` whose it is (None: nobody's in particular).
        One who waits carries `shell`, and comes out of `drain_decided` with his answer.
        """
        if leaves_at <= now:
            return self._refuse(_DEADLINE)
        limited = client is not None and self._client_share is not None
        if limited and self._clients.get(client, 0) >= self._client_most:
            return self._refuse(_CLIENT)
        limiter = self._limiter
        if limiter.inflight < self._ceilings[rank]:
            limiter.inflight += 1  # `try_acquire` would compare again, for 60 ns
            if limited:
                self._count(client)
            return None
        answer = self._try_wait(now, rank, client, leaves_at, shell)
        if limited and type(answer) is Waiting:
            self._count(client)
        return answer

    def on_left(self, now: Instant, item: Waiting) -> None:
        """One who waits has gone, or has gone at the moment when he was let in.

        Who had his no already needs nothing.
        """
        if item.answer is None:
            item.answer = False
            self._take_out(now, item)
            self._forget(item.client)
            self._left += 1
        elif item.answer is True:
            self.on_done(now, now, IGNORED, item.client)

    def on_done(
        self, now: Instant, began: Instant, outcome: Outcome, client: Hashable = None
    ) -> None:
        """One who was let in at `began` is out again; `client` as it was when he came.

        Say TIMEOUT if it took longer than its caller waited, IGNORED if its caller left: that
        teaches nothing. A place is free, and whoever is next gets it.
        """
        self._limiter.release(now, now - began, outcome)
        self._done[outcome] += 1
        if client is not None:
            self._forget(client)
        if outcome is not IGNORED:
            # From the first on: zero would make everything look quick to serve.
            mean, time = self._mean, now - began
            self._mean = mean + ((time - mean) >> _MEAN_SHIFT) if mean else time
        if self._limiter.limit != self._limit:
            self._follow_limit()
        if self._queue.waiting:
            self._call_in(now)

    def next_wakeup(self) -> Instant | None:
        """When the first of those who wait has waited too long; None if nobody waits."""
        oldest = self._queue.oldest()
        return None if oldest is None else oldest.since + self._wait

    def on_wakeup(self, now: Instant) -> None:
        """Time has passed: send away all who have waited too long."""
        while (item := self._queue.oldest()) is not None and item.since + self._wait <= now:
            self._take_out(now, item)
            self._send_away(item, _WAITED)

    def drain_decided(self) -> list[Waiting]:
        """Those who waited and have their answer since the last call, in the order of it."""
        decided, self.decided = self.decided, []
        return decided

    def clear(self, now: Instant) -> None:
        """Send everybody away who waits: the server is going down."""
        while (item := self._queue.oldest()) is not None:
            self._take_out(now, item)
            self._send_away(item, _LIMIT)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return self._queue.waiting

    def could_let_in(self) -> bool:
        """Whether somebody waits although there is room for his class: never so after an event."""
        inside = self._limiter.inflight
        return any(self._queue.has(rank) and inside < self._ceilings[rank] for rank in RANKS)

    def snapshot(self, now: Instant) -> AdmissionSnapshot:  # noqa: ARG002
        """What a person would ask of it."""
        return AdmissionSnapshot(
            inside=self._limiter.inflight,
            limit=self._limiter.limit,
            waiting=self._queue.waiting,
            mean=self._mean,
            done=tuple(self._done),
            refused=tuple(self._refused),
            left=self._left,
        )

    # Private parts: the door.

    def _try_wait(
        self, now: Instant, rank: int, client: Hashable, leaves_at: Instant, shell: Any
    ) -> Waiting | Rejection:
        queue, loser = self._queue, None
        if queue.is_full_for(rank):
            loser = queue.least(rank)
            if loser is None:
                kept_out = self._ceilings[rank] < self._limit
                return self._refuse(_SHED if kept_out else _LIMIT)
        free = queue.places - queue.waiting + (loser is not None)
        if queue.has_its_share(rank, client, free=free):
            return self._refuse(_CLIENT)
        if loser is not None:
            self._take_out(now, loser)
            self._send_away(loser, _SHED)
        item = Waiting(now, rank, client, leaves_at, shell)
        queue.push(item)
        return item

    def _refuse(self, rejection: Rejection) -> Rejection:
        self._refused[rejection.reason] += 1
        return rejection

    def _send_away(self, item: Waiting, rejection: Rejection) -> None:
        item.answer = self._refuse(rejection)
        self._forget(item.client)
        self.decided.append(item)

    # Private parts: whose turn it is.

    def _call_in(self, now: Instant) -> None:
        """Fill the free places from the queue, the highest class first."""
        queue, limiter = self._queue, self._limiter
        for rank in RANKS:
            while queue.has(rank) and limiter.inflight < self._ceilings[rank]:
                newest = takes_newest(self._order, queue.waiting, limiter.limit)
                item = queue.pop(rank, newest=newest)
                rejection = self._judge(now, item)
                if rejection is not None:
                    self._send_away(item, rejection)
                    continue
                limiter.inflight += 1
                item.answer = True
                self.decided.append(item)

    def _judge(self, now: Instant, item: Waiting) -> Rejection | None:
        """Whether one whose turn it is should still be served.

        To find a place at all takes about one service time when the house is full; of what is
        beyond that CoDel is told. So its target fits services that are quick and slow alike.
        """
        # CoDel is asked first: it must see every end of the queue, else it thinks that it stands.
        since = min(now, item.since + self._mean)
        if not self._codel[item.rank].on_dequeue(now, since, not self._queue.has(item.rank)):
            return _WAITED
        if item.leaves_at == NEVER or can_finish(
            now, item.leaves_at, self._mean, enqueued_at=item.since
        ):
            return None
        return _DEADLINE

    def _take_out(self, now: Instant, item: Waiting) -> None:
        """Somebody leaves the queue without having been called in; CoDel must know if it ends."""
        self._queue.remove(item)
        if not self._queue.has(item.rank):
            self._codel[item.rank].on_dequeue(now, now, True)

    # Private parts: book-keeping.

    def _follow_limit(self) -> None:
        self._limit = self._limiter.limit
        self._ceilings = ceilings(self._shares, self._limit)
        if self._client_share is not None:
            self._client_most = max(1, int(self._limit * self._client_share))

    def _count(self, client: Hashable) -> None:
        self._clients[client] = self._clients.get(client, 0) + 1

    def _forget(self, client: Hashable) -> None:
        held = self._clients.get(client, 0)
        if held > 1:
            self._clients[client] = held - 1
        elif held:
            del self._clients[client]

    def _check(self) -> bool:
        """What holds after each event, once what is decided has been drained. For tests."""
        assert self._queue._check()
        inside, waiting = self._limiter.inflight, self._queue.waiting
        assert not self.could_let_in()
        assert all(held > 0 for held in self._clients.values())
        return sum(self._clients.values()) <= inside + waiting
