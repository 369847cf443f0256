"""How does a lease end when no two clocks agree?

Its holder writes it anew before it ends, and each write has a new version. Whoever wants it looks:
when the version has not changed for the length of the lease, by the own clock, nobody has renewed
it, and it can be taken. The holder counts its lease from before it asked, the others from after
they have seen it, so it has stopped when another begins. No instant is compared between two
machines: neither a step of a clock, nor clocks that are hours apart, nor a server whose time is
wrong can bring two holders about. So do Kubernetes' leader election and Amazon's lock client for
DynamoDB. The price: who has not been looking waits for one lease more.

A lease is replaced only as the version that was seen (compare and set); that version is its
fencing number, and holds while it is renewed.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple, TypeVar, final

import msgspec

from tidegate.core.leases import REPORT_KEPT
from tidegate.runtime.clock import current
from tidegate.spooler.coordinators.coordinator import Budget, CoordinatorLost, Report
from tidegate.spooler.coordinators.store import Entry, Store
from tidegate.units import Duration, Instant

__all__ = ["ANSWER_WITHIN_S", "OnServer"]

ANSWER_WITHIN_S: Final = 2.0
"""How long any call may take; then the coordinator is lost."""

_BUDGET: Final = "budget"
_RATES: Final = 100  # two clocks run at rates that differ by less than one in so many
_TRIES: Final = 3

_T = TypeVar("_T")


class _Lease(msgspec.Struct, frozen=True):
    """Who holds a lease ("" for nobody), for how long; fence 0 is the version it stands under."""

    holder: str
    ttl: int
    fence: int


_NOBODYS: Final = _Lease("", 0, 0)


class _Held(NamedTuple):
    """A lease of ours: until then, if we do not renew it."""

    fence: int
    version: int
    end: Instant


class _Seen(NamedTuple):
    """A lease of another: unchanged since then."""

    version: int
    since: Instant


@final
class OnServer:
    """A coordinator whose leases are records on a server.

    `collector` need not be unique: each of these has a secret of its own.
    """

    __slots__ = ("_held", "_me", "_seen", "_store")

    def __init__(self, store: Store, collector: str) -> None:
        self._store: Final = store
        self._me: Final = f"{collector}/{secrets.token_hex(8)}"
        self._held: Final[dict[int, _Held]] = {}
        self._seen: Final[dict[int, _Seen]] = {}

    async def take(self, slot: int, ttl: Duration) -> int | None:
        """Take lease number `slot`, if nobody holds it: its fencing number, which only grows.

        Who has it and asks again has lost the answer, and gets it anew.
        """
        async with self._in_time():
            entry = await self._store.read(_key(slot))
            if entry is not None and not self._is_free(slot, entry):
                return None
            sent = current().now()
            wanted = _encoded(_Lease(self._me, ttl, 0))
            fence = await self._store.write(_key(slot), wanted, _version(entry))
        if fence is None:
            return None  # another was faster
        self._seen.pop(slot, None)
        self._held[slot] = _Held(fence, fence, sent + ttl)
        return fence

    async def renew(self, slot: int, fence: int, ttl: Duration) -> bool:
        """Keep a lease for `ttl` from now; False if it is no longer ours."""
        held = self._ours(slot)
        if held is None or held.fence != fence:
            return False
        sent = current().now()
        async with self._in_time():
            version = await self._replace(slot, held, _Lease(self._me, ttl, fence))
        if version is None:
            del self._held[slot]
            return False
        self._held[slot] = _Held(fence, version, sent + ttl)
        return True

    async def release(self, slot: int, fence: int) -> None:
        """Give a lease back, if it is still ours."""
        held = self._ours(slot)
        if held is not None and held.fence == fence:
            del self._held[slot]
            async with self._in_time():
                await self._replace(slot, held, _Lease("", 0, fence))

    async def report(self, report: Report) -> None:
        """Say what waits here; it is forgotten by itself when not said again for a minute."""
        async with self._in_time():
            await self._store.say(report.collector, msgspec.json.encode(report), REPORT_KEPT)

    async def reports(self) -> list[Report]:
        """What the collectors of the fleet have last said."""
        async with self._in_time():
            said = await self._store.said()
        reports = []
        for value in said:
            # One collector of another version, or a stranger, must not silence the others.
            with suppress(msgspec.DecodeError):
                reports.append(_decoded(value, Report))
        return reports

    async def publish(self, budget: Budget) -> bool:
        """Say the budget, as holder of lease 0; False if a later fence has spoken or could."""
        async with self._in_time():
            for _ in range(_TRIES):
                leader = await self._store.read(_key(0))
                if leader is not None and budget.fence < _fence(leader):
                    return False
                said = await self._store.read(_BUDGET)
                last = _budget(said)
                if last is not None and budget.fence < last.fence:
                    return False
                value = msgspec.json.encode(budget)
                if await self._store.write(_BUDGET, value, _version(said)) is not None:
                    return True
        return False

    async def budget(self) -> Budget | None:
        """The budget as last published."""
        async with self._in_time():
            return _budget(await self._store.read(_BUDGET))

    async def close(self) -> None:
        """Give everything back that is held, as far as that is possible at once."""
        with suppress(CoordinatorLost):
            for slot, held in list(self._held.items()):
                await self.release(slot, held.fence)
        with suppress(CoordinatorLost):
            async with self._in_time():
                await self._store.close()

    def _ours(self, slot: int) -> _Held | None:
        held = self._held.get(slot)
        if held is not None and current().now() >= held.end:
            del self._held[slot]
            return None
        return held

    def _is_free(self, slot: int, entry: Entry) -> bool:
        lease = _lease(entry)
        if lease.holder in {"", self._me}:
            return True  # ours: we have let it end, or an answer to us was lost
        now, seen = current().now(), self._seen.get(slot)
        if seen is None or seen.version != entry.version:
            self._seen[slot] = _Seen(entry.version, now)
            return False
        return now - seen.since >= lease.ttl + lease.ttl // _RATES

    async def _replace(self, slot: int, held: _Held, lease: _Lease) -> int | None:
        """Write a lease of ours anew.

        When another version stands there, an answer to our last write may have been lost, and the
        version is of that: only who reads it knows.
        """
        version = await self._store.write(_key(slot), _encoded(lease), held.version)
        if version is None:
            entry = await self._store.read(_key(slot))
            if entry is None or _lease(entry).holder != self._me:
                return None
            if _fence(entry) == held.fence:
                version = await self._store.write(_key(slot), _encoded(lease), entry.version)
        return version

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                yield
        except TimeoutError:
            raise CoordinatorLost(
                f"{self._store.where} has not answered within {ANSWER_WITHIN_S:g} s"
            ) from None
        except msgspec.DecodeError:
            raise CoordinatorLost(
                f"{self._store.where} has something under our names that is not ours"
            ) from None


def _key(slot: int) -> str:
    return f"lease.{slot}"


def _version(entry: Entry | None) -> int:
    return 0 if entry is None else entry.version


def _lease(entry: Entry) -> _Lease:
    return _decoded(entry.value, _Lease) if entry.value else _NOBODYS


def _fence(entry: Entry) -> int:
    return _lease(entry).fence or entry.version


def _budget(entry: Entry | None) -> Budget | None:
    return _decoded(entry.value, Budget) if entry is not None and entry.value else None


def _encoded(lease: _Lease) -> bytes:
    return msgspec.json.encode(lease)


def _decoded(value: bytes, kind: "type[_T]") -> _T:
    return msgspec.json.decode(value, type=kind)
