"""Who asks, and is what he says about his request to be believed?

The three headers of `runtime.wire` decide who is served in an overload, so they are read from
callers that are named here and from nobody else: addresses and networks of one's own services and
gateways. A gateway in front of strangers must take the headers off what it lets in.

A client, for fairness and limits, is whatever one chooses: a key, a tenant, an address. What
stands in a header is as long as its sender likes, and is kept in tables, so a long name is kept as
its digest.
"""

from collections.abc import Callable, Collection
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from tidegate.errors import SettingsError

__all__ = ["EVERYBODY", "bounded", "trusts"]

EVERYBODY: Final = "*"
"""Trust whoever can connect: for a server that strangers cannot reach."""

# Parsing an address takes 2 us; a fleet has hundreds of peers, and a table must have an end.
_ADDRESSES_MAX: Final = 4096
_NAME_MAX: Final = 64


def trusts(trusted: Collection[str]) -> Callable[[str | None], bool]:
    """Whether a peer with that address (None: it has none, as on a Unix socket) is believed.

    Raises SettingsError for what is no address, no network and not `*`.
    """
    if isinstance(trusted, str):
        trusted = (trusted,)
    everybody = EVERYBODY in trusted
    networks = tuple(_network(text) for text in trusted if text != EVERYBODY)

    @lru_cache(maxsize=_ADDRESSES_MAX)
    def believed(address: str | None) -> bool:
        if everybody:
            return True
        try:
            peer = ip_address((address or "").partition("%")[0])
        except ValueError:
            return False
        plain = getattr(peer, "ipv4_mapped", None) or peer  # ::ffff:10.0.0.1 is 10.0.0.1
        return any(plain in network for network in networks)

    return believed


def bounded(name: str) -> str:
    """A client's name, or its digest if it is longer than 64 characters."""
    if len(name) <= _NAME_MAX:
        return name
    return blake2b(name.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise SettingsError(
            f"expected an address, a network as 10.0.0.0/8, or *: {error}", path=("trusted",)
        ) from None
