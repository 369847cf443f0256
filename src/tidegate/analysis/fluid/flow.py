"""What flows through a graph of services when requests are taken as a fluid?

A `Packet` is a mass of equal attempts: what one step of one call sent with one number. A `Batch` is
the mass of calls that one step began; its attempts come and go, and what they bring is handed to
whoever began it, in proportion. A `Caller` takes requests through its calls, in their order or
together, and hears of their end.

So that the number of packets stays proportional to the calls, what is begun together is mixed: a
batch shares each answer among all that it was begun for. `now` is the number of a step.
"""

import math
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from tidegate.analysis.fluid.site import Site

__all__ = [
    "LEAST",
    "NEVER",
    "Batch",
    "Caller",
    "Join",
    "Packet",
    "Parts",
    "Receiver",
    "Slot",
    "Target",
    "merged",
    "scaled",
]

NEVER: Final = 1 << 60
LEAST: Final = 1e-9  # requests; less is rounding and not worth a packet
_CRUMB: Final = 0.1  # of a batch: less than that waits for more of it,
_CRUMB_WAITS: Final = 4  # but no longer than so many steps
_MERGED_FROM: Final = 6  # parts: fewer are not worth the look
_SLOTS_MAX: Final = 16  # calls of one name that are followed one by one


@final
class Packet:
    """A mass of attempts. `open` of it is still waited for, `left` still stands in the queue."""

    __slots__ = ("batch", "deadline", "fresh", "leaves", "left", "number", "open", "sent")

    def __init__(
        self, batch: "Batch | None", number: int, mass: float, sent: int, leaves: int, fresh: float
    ) -> None:
        self.batch: Final = batch
        self.number: Final = number
        self.open = mass
        self.left = 0.0
        self.sent: Final = sent
        self.leaves: Final = leaves  # when its caller gives up
        self.fresh: Final = fresh  # the share that is nobody's retry
        self.deadline = NEVER  # what the callee was told of that


Parts = list[tuple[Packet, float]]
"""Requests in the hands of a caller: which, and how much of each."""


@final
class Join:
    """Calls made together: which share of each is back, well or badly."""

    __slots__ = ("bad", "failed", "finished", "next", "ok", "parts")

    def __init__(self, parts: Parts, shares: dict[int, float], after: int) -> None:
        self.parts: Final = parts
        self.next: Final = after  # the call that comes after all of them
        self.ok: Final = {index: 1 - share for index, share in shares.items()}
        self.bad: Final = dict.fromkeys(shares, 0.0)
        self.finished = 0.0
        self.failed = 0.0

    def news(self) -> tuple[float, float]:
        """What has newly finished and failed, as shares of the parts; chances are independent."""
        finished = math.prod(self.ok.values())
        failed = 1 - math.prod(1 - bad for bad in self.bad.values())
        new = finished - self.finished, failed - self.failed
        self.finished, self.failed = finished, failed
        return new


@final
class Batch:
    """The calls of one slot that one step began."""

    __slots__ = (
        "born",
        "deadline",
        "fresh",
        "gain",
        "join",
        "loss",
        "mass",
        "next",
        "parts",
        "slot",
        "told",
    )

    def __init__(
        self,
        slot: "Slot",
        parts: Parts,
        *,
        born: int,
        mass: float,
        fresh: float,
        deadline: int,
        after: int,
        join: Join | None,
    ) -> None:
        self.slot: Final = slot
        self.next: Final = after  # the call that comes after this one
        self.born: Final = born
        self.parts: Final = parts
        self.mass: Final = mass
        self.fresh: Final = fresh
        self.deadline: Final = deadline
        self.join: Final = join
        self.gain = 0.0  # what has come back since the caller last heard
        self.loss = 0.0
        self.told = NEVER  # since when the caller has news of it to hear

    def is_crumb(self, now: int) -> bool:
        """Whether the news is too little to act on and more may come; not within the first step."""
        little = self.gain + self.loss < _CRUMB * self.mass
        return little and self.born < now < self.told + _CRUMB_WAITS

    def bring(self, now: int, gain: float, loss: float) -> None:
        """Calls have succeeded or failed for good."""
        self.gain += gain
        self.loss += loss
        if self.told == NEVER and self.slot.wait:
            self.told = now
            self.slot.caller.news.append(self)


@final
class Slot:
    """One call in the order of its caller: how often it is made, and whether it matters."""

    __slots__ = ("caller", "inbox", "index", "optional", "share", "site", "times", "wait")

    def __init__(self, site: "Site", caller: "Caller", index: int) -> None:
        self.site: Final = site
        self.caller: Final = caller
        self.index: Final = index
        self.optional: Final = site.call.optional
        self.wait: Final = site.call.wait
        self.share = 1.0
        self.times = 1.0
        self.inbox: Parts = []


class Caller:
    """Whoever makes calls, in their order or together, and hears of their end."""

    __slots__ = (
        "done",
        "effort",
        "failed",
        "later",
        "news",
        "parallel",
        "returned",
        "slots",
        "told",
    )

    def __init__(self, *, parallel: bool) -> None:
        self.parallel: Final = parallel
        self.slots: Final[list[Slot]] = []
        self.news: list[Batch] = []
        self.later: list[Batch] = []  # news too small to act on within the step
        self.returned = 0.0  # of what began its calls in this step
        self.effort = 0  # parts handled, which is what a run costs
        self.done: Parts = []  # what has made all its calls
        self.failed: Parts = []  # what has lost one that it needs
        self.told = False  # whether a deadline comes down to it

    def add(self, site: "Site", most: float) -> None:
        """Make room for up to `most` calls of `site` per request, and make what the file says."""
        for _ in range(min(_SLOTS_MAX, math.ceil(most)) or 1):
            self.slots.append(Slot(site, self, len(self.slots)))
        self.set_calls(site, site.call.per_request)

    def set_calls(self, site: "Site", per_request: float) -> None:
        """Make `per_request` calls; beyond 16 of them each stands for several."""
        slots = [slot for slot in self.slots if slot.site is site]
        if not slots:
            return  # it is another's call
        times = max(1.0, per_request / len(slots))
        for number, slot in enumerate(slots):
            slot.times = times
            slot.share = min(1.0, max(0.0, per_request / times - number))

    def remember(self) -> None:
        """A new step: what was too small to act on may have grown."""
        self.returned = 0.0
        if self.later:
            self.news += self.later
            self.later = []

    def begin(self, parts: Parts) -> None:
        """The requests in `parts` start on their calls."""
        self._advance(0, parts, new=True)

    def hear(self, now: int) -> None:
        """Go on with what has come back."""
        news, self.news = self.news, []
        for batch in news:
            self.effort += len(batch.parts)
            if batch.is_crumb(now):
                self.later.append(batch)
                continue
            batch.told = NEVER
            gain, loss = batch.gain / batch.mass, batch.loss / batch.mass
            batch.gain = batch.loss = 0.0
            new = batch.born == now
            if batch.slot.optional:
                gain, loss = gain + loss, 0.0
            if batch.join is not None:
                self._joined(batch, batch.join, gain, loss, new=new)
                continue
            if gain > 0:
                self._advance(batch.next, scaled(batch.parts, gain), new=new)
            if loss > 0:
                self.failed += scaled(batch.parts, loss)
                self.returned += loss * batch.mass if new else 0.0
        self.flush(now)

    def flush(self, now: int) -> None:
        """Send what has gathered for each call, and end what has made all its calls."""
        for slot in self.slots:
            if slot.inbox:
                parts = self.in_time(now, merged(slot.inbox))
                slot.inbox = []
                if parts:
                    self._call(now, slot, parts)
        if self.done:
            parts, self.done = self.done, []
            self.finish(now, merged(parts), ok=True)
        if self.failed:
            parts, self.failed = self.failed, []
            self.finish(now, merged(parts), ok=False)

    def finish(self, now: int, parts: Parts, *, ok: bool) -> None:
        """The requests in `parts` have made all their calls, or failed one that they need."""
        raise NotImplementedError

    def in_time(self, now: int, parts: Parts) -> Parts:
        """Without those whose deadline has passed: nothing is begun for them any more."""
        if not self.told or all(packet.deadline > now for packet, _ in parts):
            return parts
        self.failed += [part for part in parts if part[0].deadline <= now]
        return [part for part in parts if part[0].deadline > now]

    def _advance(self, index: int, parts: Parts, *, new: bool) -> None:
        """On to call number `index`, past those whose way is clear, or to the end."""
        for slot in self.slots[index:]:
            if not slot.site.clear:
                slot.inbox += parts
                return
            slot.site.pass_by(parts, slot.share * slot.times)
        self.done += parts
        if new:
            self.returned += sum(mass for _, mass in parts)

    def _call(self, now: int, first: Slot, parts: Parts) -> None:
        """Make the call that is next, with those that can be made together with it.

        All of a caller in parallel; else a row of calls that are answered within the step, where
        their order shows in nothing but the work that it makes to follow it.
        """
        row: list[Slot] = []
        index = first.index
        for slot in self.slots[index:]:
            if slot.site.clear:
                slot.site.pass_by(parts, slot.share * slot.times)
            elif slot.share > 0 and not slot.wait:
                slot.site.begin(now, slot, scaled(parts, slot.share), slot.index)
            elif slot.share > 0:
                together = self.parallel or slot.site.quick
                if row and not together:
                    break
                row.append(slot)
                if not together:
                    index += 1
                    break
            index += 1
        if not row:
            self._advance(index, parts, new=first.index == 0)
            return
        join = None
        if len(row) > 1:
            join = Join(parts, {slot.index: slot.share for slot in row}, index)
        elif row[0].share < 1:
            self._advance(index, scaled(parts, 1 - row[0].share), new=first.index == 0)
        for slot in row:
            slot.site.begin(now, slot, scaled(parts, slot.share), index, join)

    def _joined(self, batch: Batch, join: Join, gain: float, loss: float, *, new: bool) -> None:
        join.ok[batch.slot.index] += gain * batch.slot.share
        join.bad[batch.slot.index] += loss * batch.slot.share
        finished, failed = join.news()
        if finished > 0:
            self._advance(join.next, scaled(join.parts, finished), new=new)
        if failed > 0:
            self.failed += scaled(join.parts, failed)
            self.returned += failed * sum(mass for _, mass in join.parts) if new else 0.0


def merged(parts: Parts) -> Parts:
    """Each packet once: what comes back in bits and pieces goes on as a whole."""
    if len(parts) < _MERGED_FROM:
        return parts
    whole: dict[Packet, float] = {}
    for packet, mass in parts:
        whole[packet] = whole.get(packet, 0.0) + mass
    return list(whole.items())


def scaled(parts: Parts, share: float) -> Parts:
    """So much of each."""
    return parts if share == 1 else [(packet, mass * share) for packet, mass in parts]


class Target:
    """Where a call goes: whatever takes packets, and says how they are spread."""

    __slots__ = ()

    def is_clear(self) -> bool:
        """Whether every call is answered well within the step, all the way down."""
        raise NotImplementedError

    def absorb(self, mass: float) -> None:
        """So many calls were answered well within the step."""
        raise NotImplementedError

    def spread(self) -> "list[tuple[Receiver, float]]":
        """Who gets which share of what is sent now."""
        raise NotImplementedError


class Receiver(Caller):
    """A caller that can itself be called."""

    __slots__ = ()

    def arrive(self, now: int, packet: Packet) -> None:
        """A packet reaches the door."""
        raise NotImplementedError

    def abandon(self, now: int, packet: Packet) -> None:
        """Its caller has left."""
        raise NotImplementedError
