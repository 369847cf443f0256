"""How does a fleet keep its leases in Valkey (or Redis)?

Each record is a hash with its value and its version; a script replaces it only if the version is
the one that was read. Versions are drawn from one counter of the fleet. All keys of a fleet carry
the same hash tag, so a cluster keeps them on one node.

`valkey://HOST:PORT/0`, `valkeys://` for TLS; `redis://` and `rediss://` are the same.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, final
from urllib.parse import urlsplit

from tidegate.errors import SettingsError, missing_extra
from tidegate.spooler.coordinators.coordinator import CoordinatorLost
from tidegate.spooler.coordinators.store import Entry
from tidegate.units import MILLISECOND, Duration

try:
    import valkey
    from valkey.asyncio import Valkey
    from valkey.asyncio.retry import Retry
    from valkey.backoff import NoBackoff
except ModuleNotFoundError as error:
    raise missing_extra(error, "valkey") from None

__all__ = ["ValkeyStore"]

_WORDS_MAX: Final = 10_000  # collectors of one fleet that are listened to

# KEYS: the record, the counter of versions. ARGV: the version that was read, the new value.
_WRITE: Final = """
local version = redis.call('HGET', KEYS[1], 'version') or '0'
if version ~= ARGV[1] then return false end
version = redis.call('INCR', KEYS[2])
redis.call('HSET', KEYS[1], 'version', version, 'value', ARGV[2])
return version
"""


@final
class ValkeyStore:
    """The records of one fleet in a Valkey."""

    __slots__ = ("_client", "_fleet", "where")

    def __init__(self, url: str, fleet: str) -> None:
        try:
            parts = urlsplit(url)
            self.where = f"Valkey at {parts.hostname}:{parts.port or 6379}"
            # No retries by the library: a question that is late is one too many already.
            self._client: Final[Any] = Valkey.from_url(url, retry=Retry(NoBackoff(), 0))
        except ValueError:  # which would quote the address, and with it a password
            raise SettingsError("expected valkey://HOST:PORT/0") from None
        self._fleet: Final = fleet

    async def read(self, key: str) -> Entry | None:
        """The record under this key."""
        async with self._asked():
            value, version = await self._client.hmget(self._key(key), "value", "version")
        return None if version is None else Entry(value or b"", int(version))

    async def write(self, key: str, value: bytes, version: int) -> int | None:
        """Replace the record of this version (0: there must be none)."""
        keys = self._key(key), self._key("versions")
        async with self._asked():
            written = await self._client.eval(_WRITE, 2, *keys, version, value)
        return None if written is None else int(written)

    async def say(self, who: str, value: bytes, kept: Duration) -> None:
        """Keep it under a key that ends by itself, and the name in the set of all."""
        async with self._asked(), self._client.pipeline() as together:
            together.set(self._key(f"word:{who}"), value, px=max(1, kept // MILLISECOND))
            together.sadd(self._key("words"), who)
            await together.execute()

    async def said(self) -> list[bytes]:
        """What stands under the names; those that nothing stands under any more are taken off."""
        async with self._asked():
            names = sorted(await self._client.smembers(self._key("words")))[:_WORDS_MAX]
            if not names:
                return []
            keys = [self._key("word:").encode() + name for name in names]
            words = await self._client.mget(keys)
            gone = [name for name, word in zip(names, words, strict=True) if word is None]
            if gone:
                await self._client.srem(self._key("words"), *gone)
        return [word for word in words if word is not None]

    async def close(self) -> None:
        """Give up the connections."""
        async with self._asked():
            await self._client.aclose()

    @asynccontextmanager
    async def _asked(self) -> AsyncIterator[None]:
        try:
            yield
        except (valkey.ValkeyError, OSError) as error:
            raise CoordinatorLost(f"{self.where}: {_plain(error)}") from None

    def _key(self, key: str) -> str:
        return f"tidegate:{{{self._fleet}}}:{key}"


def _plain(error: Exception) -> str:
    """What went wrong without what was asked: a server quotes the arguments of a wrong command."""
    cause = error.__cause__ or error.__context__ or error
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return type(error).__name__
