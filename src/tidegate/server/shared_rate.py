"""May this client send one more, when all processes and hosts together count what it sends?

Asking a store on the network for every request would make each request wait for it, and all of them
hang when it does. So nobody waits: a process lets a client in by its own table, adds up what it has
let in, and tells the store a few times a second, on a thread of its own. Where the store says that
a client has had its share of the window, that client is refused until the window has moved on.

So the limit of the fleet is exceeded by what comes between two exchanges, and never by more than
each process's own table lets in. When the store is away, only those tables are left, and nothing
else happens.

The counting is that of the `limits` library: a sliding window, in Valkey, Redis or whatever it
keeps it in.
"""

import logging
import os
import threading
import time
from collections.abc import Hashable
from random import SystemRandom
from typing import Any, Final, Protocol, final
from weakref import WeakSet, ref

from tidegate.core.client_rates import ClientRates, ClientRatesSnapshot
from tidegate.errors import SettingsError, missing_extra
from tidegate.runtime import clock as clocks
from tidegate.settings.admission import ClientRate
from tidegate.units import MILLISECOND, SECOND, Duration, Instant

__all__ = ["EVERY", "Counter", "SharedRate"]

EVERY: Final[Duration] = 200 * MILLISECOND
"""How often the store is told. At half twice the commands, at double twice the excess."""

WINDOW_S: Final = 10  # as long as everything else here that judges a client or a dependency
_AWAY_MAX: Final[Duration] = 30 * SECOND
_NAME: Final = "tidegate"

_rates: Final["WeakSet[SharedRate]"] = WeakSet()
_log: Final = logging.getLogger("tidegate.server")


class Counter(Protocol):
    """What is needed of a strategy of `limits`."""

    def hit(self, item: Any, *identifiers: str, cost: int = 1) -> bool:
        """Count `cost` requests of a client; False if the window has no room for them."""
        ...

    def get_window_stats(self, item: Any, *identifiers: str) -> Any:
        """A pair: the wall time at which there is room again, and how much there is."""
        ...


@final
class SharedRate:
    """A rate for each client, counted over all who share a store: `LoadShedder(client_rate=...)`.

    `rate` is per second, over a window of ten. `store` is an address as `limits` writes it, as
    `valkey://127.0.0.1:6379`. `burst` and `clients` are those of each process's own table.

    Raises SettingsError if `limits` does not know the address, ModuleNotFoundError without it.
    """

    def __init__(
        self,
        rate: float,
        store: str,
        *,
        burst: int | None = None,
        clients: int = 16_000,
        counter: Counter | None = None,
    ) -> None:
        own = ClientRate(rate=rate, burst=burst, clients=clients)
        try:
            from limits import RateLimitItemPerSecond
        except ModuleNotFoundError as error:
            raise missing_extra(error, "valkey", "a shared rate") from None
        self._counter: Final = counter if counter is not None else _counter(store)
        self._item: Final = RateLimitItemPerSecond(max(1, round(rate * WINDOW_S)), WINDOW_S, _NAME)
        self._own: Final = ClientRates(own)
        self._most: Final = clients
        self._lock = threading.Lock()
        self._let_in: dict[Hashable, int] = {}  # since the last exchange
        self._refused_until: dict[Hashable, Instant] = {}
        self._refused = 0
        self._process = 0  # in which the thread runs
        self._quiet_until: Instant = 0
        self._failures = 0
        self._random: Final = SystemRandom()
        _rates.add(self)

    # What a shedder asks.

    def try_acquire(self, now: Instant, client: Hashable) -> bool:
        """Let one of `client` come now; never waits for the store."""
        if self._process != os.getpid():
            self._start()
        with self._lock:
            if self._refused_until.get(client, 0) > now:
                self._refused += 1
                return False
            if not self._own.try_acquire(now, client):
                return False
            if client in self._let_in or len(self._let_in) < self._most:
                self._let_in[client] = self._let_in.get(client, 0) + 1
        return True

    def retry_after(self, now: Instant, client: Hashable) -> Duration:
        """Nanoseconds until `client` would be let in."""
        until = self._refused_until.get(client, 0)
        return max(until - now, self._own.retry_after(now, client))

    def snapshot(self, now: Instant) -> ClientRatesSnapshot:
        """As of a process's own table; `refused` counts what the store refused as well."""
        own = self._own.snapshot(now)
        return own._replace(refused=own.refused + self._refused)

    # The lane to the store.

    def exchange(self, now: Instant) -> None:
        """Tell the store what was let in, and learn who has had enough. Called by the thread.

        A store that fails is left in peace for a second, then for twice as long each time, up to
        half a minute, and not by all processes in the same instant. What is let in meanwhile is
        not told later: by then it is no longer in the window.
        """
        with self._lock:
            let_in, self._let_in = self._let_in, {}
            over = [client for client, until in self._refused_until.items() if until <= now]
            for client in over:
                del self._refused_until[client]
        if now < self._quiet_until:
            return
        for client, count in let_in.items():
            try:
                until = self._tell(now, str(client), count)
            except Exception as error:  # noqa: BLE001 - whatever a store's client may raise
                self._on_failure(now, error)
                return
            if until is not None:
                with self._lock:
                    self._refused_until[client] = until
            self._failures = 0

    def _tell(self, now: Instant, client: str, count: int) -> Instant | None:
        """Until when `client` is to be refused, if it is."""
        if self._counter.hit(self._item, client, cost=min(count, self._item.amount)):
            return None
        reset, _ = self._counter.get_window_stats(self._item, client)
        # The store goes by wall time. A step of it moves this by no more than a window.
        left = round((reset - time.time()) * SECOND)
        return now + int(min(max(left, EVERY), WINDOW_S * SECOND))

    def _on_failure(self, now: Instant, error: Exception) -> None:
        pause = min(_AWAY_MAX, SECOND << min(self._failures, 5))
        self._quiet_until = now + round(pause * self._random.uniform(0.5, 1.0))
        self._failures += 1
        if self._failures == 1:
            _log.warning(
                "the store of the shared rates is away (%s); each process goes by its own table",
                type(error).__name__,
            )

    def _start(self) -> None:
        """Start the thread, once in each process: a fork leaves it behind."""
        with self._lock:
            if self._process == os.getpid():
                return
            self._process = os.getpid()
        run = threading.Thread(target=_run, args=(ref(self),), name="tidegate rates", daemon=True)
        run.start()

    def after_fork(self) -> None:
        """In a child of a fork: whoever held the lock is not here to let it go."""
        self._lock = threading.Lock()


def _run(rate: "ref[SharedRate]") -> None:
    """Exchange for as long as the rate is used by anybody."""
    while True:
        time.sleep(EVERY / SECOND)
        held = rate()
        if held is None:
            return
        held.exchange(clocks.current().now())
        del held


def _counter(store: str) -> Counter:
    from limits.errors import ConfigurationError
    from limits.storage import storage_from_string
    from limits.strategies import SlidingWindowCounterRateLimiter

    try:
        storage: Any = storage_from_string(store, socket_timeout=1.0, socket_connect_timeout=1.0)
        return SlidingWindowCounterRateLimiter(storage)
    except (ConfigurationError, ValueError, TypeError) as error:
        raise SettingsError(f"expected the address of a store: {error}", path=("store",)) from None


def _after_fork() -> None:
    for rate in tuple(_rates):
        rate.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
