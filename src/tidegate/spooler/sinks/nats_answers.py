"""What does JetStream say of a record, and of the servers of a stream?

An error has a number, which does not change between versions of the server as its words do.

A follower is in step if it was heard of within three heartbeats and is at most a moment behind. The
group itself calls one `current` only when nothing at all is under way, and takes ten seconds to
miss a dead one.
"""

from typing import Final

import msgspec

from tidegate.core.health import Partition, View
from tidegate.core.outcome import FAILURE, OVERLOADED
from tidegate.spooler.sinks.sink import DELIVERED, Sent
from tidegate.units import SECOND

__all__ = ["Answer", "Error", "judged", "read_answer", "seen"]

_HEARD_WITHIN: Final = 3 * SECOND  # a Raft leader of NATS beats once a second
_BEHIND_MAX: Final = 1000  # entries: at 30,000 records a second what it does in 33 ms

_TOO_LARGE: Final = frozenset({10054, 10097})  # for this stream; for its headers
_FULL: Final = frozenset({10002, 10023, 10028, 10047, 10077})
# The last is of a record that was published before and is not on enough replicas yet.
_NO_QUORUM: Final = frozenset({10008, 10009, 10118, 10158})
_BUSY: Final = 429


class _Peer(msgspec.Struct):
    """A follower as the leader sees it: `active` is how long ago it was heard of."""

    active: int = 0
    lag: int = 0
    offline: bool = False

    @property
    def is_alive(self) -> bool:
        return not self.offline and self.active <= _HEARD_WITHIN


class _Cluster(msgspec.Struct):
    name: str = ""
    leader: str = ""
    replicas: list[_Peer] = []


class _Config(msgspec.Struct):
    name: str
    num_replicas: int = 1


class Error(msgspec.Struct):
    """Why not: `code` as in HTTP, and the number of the very error."""

    code: int = 0
    err_code: int = 0
    description: str = ""


class Answer(msgspec.Struct):
    """An acknowledgement, a description of a stream, names of streams, or an error."""

    error: Error | None = None
    config: _Config | None = None
    cluster: _Cluster | None = None
    streams: list[str] | None = None


read_answer = msgspec.json.Decoder(Answer).decode


def judged(error: Error | None) -> Sent:
    """What an answer to a record means to a spool."""
    if error is None:
        return DELIVERED
    why = f"{error.description} ({error.err_code})"
    if error.err_code in _TOO_LARGE:
        return Sent(FAILURE, why, poison=True)
    if error.err_code in _FULL or error.code == _BUSY:
        return Sent(OVERLOADED, why)
    return Sent(FAILURE, why, starved=error.err_code in _NO_QUORUM)


def seen(answer: Answer, server: str, stream: str, replicas: int) -> View:
    """The stream as this server has shown it; one that is not to be had has no leader."""
    if answer.config is None:
        return View(server, partitions=(Partition(stream, None, replicas, 0),))
    cluster = answer.cluster or _Cluster(leader=server)  # a server alone has no cluster
    leads = bool(cluster.leader)
    alive = [peer for peer in cluster.replicas if peer.is_alive]
    well = sum(peer.lag <= _BEHIND_MAX for peer in alive) + leads
    name, wanted = answer.config.name, answer.config.num_replicas
    part = Partition(name, cluster.leader or None, wanted, well)
    return View(server, cluster.name, "", len(alive) + leads, (part,))
