"""May this be kept as well, and if not, why, and when is there room again?

A lane is full when what it keeps reaches the first of its bounds: its own bytes, its records, or
what its disk can spare. The disk spares what is free, less the share that stays free, less what
other lanes have been promised (`share`) and have not used yet.

    room = min(bytes, kept + max(0, free - free share x disk - promised to others))

Full is left only below `low` of the room: a lane that took one record for each that went would
answer every second request with a refusal, for as long as its sink is slow. Whoever is refused is
told when to come again, by how fast the lane empties, and not all at one moment.

A lane of which nothing waits is never full by bounds of its own: waiting would free nothing.

Nothing is thrown away here. What is too old, or too much in a lane that drops its oldest, is
answered as a `Drop`, with the cause under which it is to be counted.
"""

from enum import StrEnum
from random import Random
from typing import Final, NamedTuple, final

from tidegate.core.outcome import Transition
from tidegate.core.window import Window
from tidegate.settings import spool as settings
from tidegate.units import MINUTE, SECOND, Duration, Instant, format_bytes, format_share

__all__ = [
    "AGAIN_MAX",
    "AGAIN_MIN",
    "Bounds",
    "BoundsSnapshot",
    "Cause",
    "Drop",
    "Refusal",
    "Stock",
    "promised",
]

AGAIN_MIN: Final[Duration] = SECOND
AGAIN_MAX: Final[Duration] = 5 * MINUTE
"""Nobody is sent away for longer: by then the lane may have another sink, or another disk."""

_JITTER: Final = 0.2  # of the time told: clients that were refused together come back apart
_RATES_OVER: Final[Duration] = MINUTE  # some segments of a log are freed within it


class Cause(StrEnum):
    """Why a record that was accepted is not delivered: the one list of causes, as counted."""

    EXPIRED = "expired"  # older than `age`
    DROPPED_OLDEST = "dropped_oldest"  # made room for newer ones, in a lane that says so
    QUARANTINED = "quarantined"  # set aside: the sink would never take it; kept in a file
    DISCARDED = "discarded"  # the same, when that file has no room for it
    DAMAGED = "damaged"  # the disk gave back other bytes than were written, or none


class Refusal(NamedTuple):
    """A prebuilt no, in words. `passes`: it helps to come again."""

    why: str
    passes: bool = True


class Stock(NamedTuple):
    """What a lane keeps at one moment, and what its disk has left.

    `bytes` are those on disk, `records` those that wait, `oldest` is the age of the oldest of
    them. `free` and `total` are the disk's, `promised` what of it belongs to other lanes.
    """

    bytes: int
    records: int
    oldest: Duration | None
    free: int
    total: int
    promised: int = 0


class Drop(NamedTuple):
    """What is to go: records older than `age`, or the oldest, until so much is freed."""

    cause: Cause
    bytes: int = 0
    records: int = 0
    age: Duration | None = None


class BoundsSnapshot(NamedTuple):
    """What a person would ask: how much of how much, whether it is full, and how it changes."""

    kept: int
    room: int
    full: bool
    why: str
    accept_rate: float  # bytes a second, over the last minute
    drain_rate: float


def promised(lane: str, total: int, shares: dict[str, tuple[float, int]]) -> int:
    """How much of a disk belongs to lanes other than this one and is not used yet.

    `shares` has the share of each lane on that disk, and the bytes that it keeps.
    """
    return sum(
        max(0, int(share * total) - kept) for name, (share, kept) in shares.items() if name != lane
    )


@final
class Bounds:
    """One lane. `on_stock` tells it what is kept, at least each second and after a drop."""

    __slots__ = (
        "_changes",
        "_into",
        "_no_space",
        "_out_of",
        "_rng",
        "_settings",
        "_since",
        "_since_records",
        "_stock",
        "_why",
        "_words",
    )

    def __init__(self, settings: settings.Bounds, rng: Random, now: Instant) -> None:
        self._settings: Final = settings
        self._rng: Final = rng
        self._words: Final = _words(settings)
        self._stock = Stock(0, 0, None, 1, 1)
        self._since = self._since_records = 0  # accepted since the stock was taken
        self._no_space = False
        self._why: Refusal | None = None  # it is full, and this is why
        self._changes: list[Transition] = []
        self._into: Final = _Flow(now)
        self._out_of: Final = _Flow(now)

    def try_accept(self, now: Instant, size: int, records: int = 1) -> Refusal | None:
        """Keep so many bytes in so many records, all or none; None is yes.

        A yes counts at once, so that two who ask in one moment do not get the same room.
        """
        if self._why is not None:
            return self._why
        no = self._over(size, records)
        if no is not None:
            # One that is larger than what is left below `low` is refused alone: smaller ones fit.
            if no.passes and not self._low():
                self._turn(now, no)
            return no
        self._since += size
        self._since_records += records
        self._into.add(now, size)
        return None

    def on_stock(self, now: Instant, stock: Stock) -> None:
        """What the lane keeps now, as counted."""
        self._stock = stock
        self._since = self._since_records = 0
        self._settle(now)

    def on_delivered(self, now: Instant, size: int) -> None:
        """So many bytes have left the lane."""
        self._out_of.add(now, size)

    def on_no_space(self, now: Instant) -> None:
        """The disk has not taken a write, whatever it says of itself: a quota, another writer."""
        self._no_space = True
        self._turn(now, self._words.no_space)

    def on_space(self, now: Instant) -> None:
        """The disk takes writes again."""
        self._no_space = False
        self._settle(now)

    @property
    def full(self) -> Refusal | None:
        """Why nothing is accepted; None while something is."""
        return self._why

    def retry_after(self, now: Instant) -> Duration:
        """When whoever was refused should come again: drawn anew for each.

        (kept - low mark) / drain rate, between a second and five minutes, +-20 %. While full the
        net drain rate is the drain rate: nothing comes in.
        """
        rate = self._out_of.rate(now)
        wait = AGAIN_MAX if rate <= 0 else self._excess() / rate * SECOND
        # Bounded before the luck, else all who wait for long would come at one moment.
        wait = min(max(wait, AGAIN_MIN / (1 - _JITTER)), AGAIN_MAX / (1 + _JITTER))
        return round(wait * self._rng.uniform(1 - _JITTER, 1 + _JITTER))

    def time_to_full(self, now: Instant) -> Duration | None:
        """How long until it is full, if it goes on as in the last minute; None if it does not."""
        if self._why is not None:
            return 0
        growth = self._into.rate(now) - self._out_of.rate(now)
        left: float = self._room() - self._kept()
        if self._settings.records is not None:
            left = min(left, (self._settings.records - self._records()) * self._each())
        return None if growth <= 0 else round(max(0, left) / growth * SECOND)

    def to_drop(self) -> Drop | None:
        """What is to go now; asked after `on_stock`, until it answers None or nothing went.

        What is too old goes first. A lane that drops its oldest then goes down to `low`, so that
        it drops seldom and in large pieces.
        """
        stock, low = self._stock, self._settings.low
        if stock.oldest is not None and stock.oldest > self._settings.age:
            return Drop(Cause.EXPIRED, age=self._settings.age)
        if self._settings.full != "drop_oldest" or not stock.records:
            return None
        excess = records = 0
        if self._kept() >= self._room():
            excess = self._kept() - int(low * self._room())
        most = self._settings.records
        if most is not None and self._records() >= most:
            records = self._records() - int(low * most)
        return Drop(Cause.DROPPED_OLDEST, excess, records) if excess or records else None

    def drain_transitions(self) -> list[Transition]:
        """When it became full and when it took records again, since the last call."""
        drained, self._changes = self._changes, []
        return drained

    def snapshot(self, now: Instant) -> BoundsSnapshot:
        """What a person would ask of it."""
        return BoundsSnapshot(
            kept=self._kept(),
            room=self._room(),
            full=self._why is not None,
            why="" if self._why is None else self._why.why,
            accept_rate=self._into.rate(now),
            drain_rate=self._out_of.rate(now),
        )

    # Private parts.

    def _kept(self) -> int:
        return self._stock.bytes + self._since

    def _records(self) -> int:
        return self._stock.records + self._since_records

    def _spare(self) -> int:
        """What the disk can give, beyond what this lane has."""
        stock = self._stock
        stays = int(self._settings.free * stock.total)
        return stock.free - self._since - stays - stock.promised

    def _room(self) -> int:
        """The most that this lane could keep just now."""
        room = self._kept() + max(0, self._spare())
        own = self._settings.bytes
        return room if own is None else min(own, room)

    def _each(self) -> float:
        """Bytes of a record that waits, so that one rate serves bounds of bytes and of records."""
        return self._kept() / max(1, self._records())

    def _excess(self) -> float:
        """Bytes that have to go before records are taken again."""
        low, most = self._settings.low, self._settings.records
        excess = self._kept() - low * self._room()
        if self._no_space:  # then the room is not known
            excess = max(excess, (1 - low) * self._kept())
        if most is not None:
            excess = max(excess, (self._records() - low * most) * self._each())
        return max(0, excess)

    def _over(self, size: int, records: int) -> Refusal | None:
        """Which bound so much more would pass."""
        words, own, most = self._words, self._settings.bytes, self._settings.records
        if own is not None and size > own:
            return words.too_large
        if most is not None and records > most:
            return words.too_many
        if self._no_space:
            return words.no_space
        if self._settings.full == "drop_oldest":
            # Room is made by dropping. Where nothing is left to drop, others have filled the disk.
            return None if self._records() or self._spare() >= size else words.free
        if self._spare() < size or self._spare() <= 0:
            return words.free
        if not self._records():
            return None
        if own is not None and (self._kept() + size > own or self._kept() >= own):
            return words.bytes
        if most is not None and (self._records() + records > most or self._records() >= most):
            return words.records
        return None

    def _low(self) -> bool:
        """Whether there is so little that records are taken again after it was full."""
        low, most = self._settings.low, self._settings.records
        if not self._records():
            return True
        if most is not None and self._records() > low * most:
            return False
        return self._kept() <= low * self._room()

    def _settle(self, now: Instant) -> None:
        no = self._over(0, 0)
        if no is not None:
            self._turn(now, no)
        elif self._why is not None and self._low():
            self._turn(now, None)

    def _turn(self, now: Instant, why: Refusal | None) -> None:
        if (why is None) != (self._why is None):
            before, after = ("taking", "full") if why is not None else ("full", "taking")
            words = "there is room" if why is None else why.why
            self._changes.append(Transition(now, "bounds", before, after, words))
        self._why = why


class _Words(NamedTuple):
    """The refusals of a lane, with its own numbers in them."""

    bytes: Refusal
    records: Refusal
    free: Refusal
    no_space: Refusal
    too_large: Refusal
    too_many: Refusal


def _words(settings: settings.Bounds) -> _Words:
    size = "" if settings.bytes is None else format_bytes(settings.bytes)
    count = "" if settings.records is None else f"{settings.records:,}"
    return _Words(
        bytes=Refusal(f"full: it keeps its {size}"),
        records=Refusal(f"full: it keeps its {count} records"),
        free=Refusal(
            f"full: its disk has no room beyond the {format_share(settings.free)} that stays free"
        ),
        no_space=Refusal("full: its disk takes no more"),
        too_large=Refusal(f"larger than all that it may keep, {size}", passes=False),
        too_many=Refusal(f"more records than it may keep, {count}", passes=False),
    )


@final
class _Flow:
    """Bytes a second, over the last minute or since the start if that is less."""

    __slots__ = ("_began", "_bytes", "_start", "_window")

    def __init__(self, now: Instant) -> None:
        self._began: Final = now
        self._window: Final = Window(_RATES_OVER)
        self._bytes = self._start = 0

    def add(self, now: Instant, size: int) -> None:
        self._slide(now)
        self._bytes += size

    def rate(self, now: Instant) -> float:
        self._slide(now)
        since = max(self._began, self._window.ends - _RATES_OVER)
        # Over less than a second it would be the rate of one write.
        return (self._bytes - self._start) / max(now - since, SECOND) * SECOND

    def _slide(self, now: Instant) -> None:
        if now >= self._window.ends:
            self._start = self._window.slide(now, self._bytes)
