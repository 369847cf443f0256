"""What can be set on a spool, with its default and the precedent for it.

A spool keeps what must not be lost while its sink is sick, and gives it back at a pace that the
sink can bear. One process has a door and some lanes; a lane is one log on disk and one sink. The
same records configure the simulator, so `check` reads what `tidegate spool run` obeys.
"""

import re
from typing import ClassVar, Final, Literal, get_args

from tidegate.errors import SettingsError
from tidegate.settings.policies import Breaker, Settings
from tidegate.settings.rules import finite, one_of, refuse, whole
from tidegate.units import (
    DAY,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    Bytes,
    Count,
    Duration,
    Factor,
    Rate,
    Share,
)

__all__ = [
    "Bounds",
    "Door",
    "Durable",
    "Fleet",
    "Gate",
    "Lane",
    "Pace",
    "Speed",
    "Spool",
    "Turns",
]

Durable = Literal["always", "interval", "never"]
Codec = Literal["none", "zstd"]
FullLane = Literal["refuse", "drop_oldest"]
LaneOrder = Literal["live", "kept"]
Speed = Literal["gentle", "normal", "fast", "at_once"]
Lost = Literal["stop", "slow"]

# A lane's name is that of a folder and of a path; both names are in the ids of records.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_NO_NAME: Final = (
    "expected a name of letters, digits, dots, dashes and underscores, at most 100 of them and a"
    " letter or a digit first, found {!r:.60}"
)
_COUNT_MAX: Final = 1_000_000_000
_SIZE: Final = "a size from 1kB to 1,000,000TB"
_FRAME_MAX: Final = 64 * 10**6


class Bounds(Settings, frozen=True, kw_only=True):
    """How much a lane may keep, and what happens then: `bounds: 50GB`.

    Whichever is met first counts. When a lane is full it refuses (and says when to come again), or
    drops its oldest records, which are counted. It takes records again below `low` of its bounds.
    """

    shorthand: ClassVar[str | None] = "bytes"

    bytes: Bytes | None = None
    free: Share = 0.1  # of the disk stays free; the Datadog Agent keeps 5 %
    age: Duration = 14 * DAY  # the Agent has 10 days, Kafka's default retention is 7
    records: Count | None = None
    full: FullLane = "refuse"
    low: Share = 0.95

    def __post_init__(self) -> None:
        if self.bytes is not None:
            whole("bytes", self.bytes, 1000, 10**18, _SIZE)
        finite("free", self.free, 0, 0.99, "a share from 0% to 99%")
        whole("age", self.age, MINUTE, 3650 * DAY, "a duration from 1min to ten years")
        if self.records is not None:
            whole("records", self.records, 1, 10**15, "a whole number above zero")
        one_of("full", self.full, get_args(FullLane))
        finite("low", self.low, 0.1, 1, "a share from 10% to 100%")


class Gate(Settings, frozen=True, kw_only=True):
    """When a replay may begin, and what ends it: `gate: 60s`.

    Everything must be well for `hold` (and up to `jitter` more, so that a fleet does not begin in
    one moment): all replicas in step as seen from every broker that one can ask, no answer slower
    than `calm` times the latency in peace, no error. It closes at once on more than `errors` of
    the answers, on a refusal for want of replicas, when the sink throttles, or when nothing has
    been heard of its health for `stale`.
    """

    shorthand: ClassVar[str | None] = "hold"

    hold: Duration = 60 * SECOND
    jitter: Duration = 30 * SECOND
    stale: Duration = 15 * SECOND  # three looks of five seconds
    calm: Factor = 2.0
    errors: Share = 0.002
    look: Duration = 5 * SECOND
    brokers: Count | None = None

    def __post_init__(self) -> None:
        for key in ("hold", "jitter"):
            whole(key, getattr(self, key), 0, DAY, "a duration from 0s to 24h")
        whole("look", self.look, 100 * MILLISECOND, HOUR, "a duration from 100ms to 1h")
        whole("stale", self.stale, SECOND, DAY, "a duration from 1s to 24h")
        if self.stale < 2 * self.look:
            raise refuse("stale", "at least twice `look`, else one late look ends it", self.stale)
        finite("calm", self.calm, 1.1, 100, "a factor from 1.1x to 100x")
        finite("errors", self.errors, 0, 1, "a share from 0% to 100%")
        if self.brokers is not None:
            whole("brokers", self.brokers, 1, 10_000, "a whole number from 1 to 10,000")


class Pace(Settings, frozen=True, kw_only=True):
    """How fast a fleet replays, all of it together: `pace: normal`.

    One budget for the whole fleet, found by additive increase and multiplicative decrease (Chiu
    and Jain 1989): it begins at `start` of the live rate, grows by `step` of it a second while the
    sink answers within its `speed` (gentle, normal and fast are 6, 12 and 20 times the latency in
    peace), and is cut to `cut` of itself when it does not, at most once in `pause`. It never passes
    `cap` times the live rate, which is taken to be at least `least` bytes a second: what was left
    behind must leave even when nothing new comes in. `at_once` has no budget and no gate: what
    most collectors do, and what only a simulation may try.
    """

    shorthand: ClassVar[str | None] = "speed"
    THRESHOLDS: ClassVar[dict[str, float]] = {"gentle": 6.0, "normal": 12.0, "fast": 20.0}

    speed: Speed = "normal"
    cap: Factor = 1.0
    start: Share = 0.01
    step: Share = 0.02
    cut: Share = 0.85
    pause: Duration = 5 * SECOND
    least: Bytes = 100_000

    def __post_init__(self) -> None:
        one_of("speed", self.speed, get_args(Speed))
        finite("cap", self.cap, 0.01, 100, "a factor from 0.01x to 100x")
        finite("start", self.start, 0.0001, 1, "a share from 0.01% to 100%")
        finite("step", self.step, 0.0001, 1, "a share from 0.01% to 100%")
        finite("cut", self.cut, 0.1, 0.99, "a share from 10% to 99%")
        whole("pause", self.pause, 100 * MILLISECOND, HOUR, "a duration from 100ms to 1h")
        whole("least", self.least, 1, 10**12, "a size from 1B to 1TB")


class Turns(Settings, frozen=True, kw_only=True):
    """Who of a fleet may replay now: `turns: nats://127.0.0.1:4222`.

    `leases` of them at once, each for a `slice` of time or `amount` of data and then to the back
    of the line; the fullest come first. A lease ends `ttl` after its holder was last heard of.
    `through` is where the leases live (nats://, valkey://, postgresql://); `slots` needs no server
    but clocks within a second and the number of `members`, each having its share of time. Without
    it this process replays by itself. When the coordinator is lost a replay stops, or goes on at a
    tenth of the last budget (`lost: slow`).
    """

    shorthand: ClassVar[str | None] = "through"

    through: str | None = None
    leases: Count = 4
    ttl: Duration = 10 * SECOND
    slice: Duration = 60 * SECOND
    amount: Bytes = 10**9
    lost: Lost = "stop"
    members: Count | None = None

    def __post_init__(self) -> None:
        whole("leases", self.leases, 1, 1000, "a whole number from 1 to 1,000")
        whole("ttl", self.ttl, SECOND, HOUR, "a duration from 1s to 1h")
        whole("slice", self.slice, SECOND, DAY, "a duration from 1s to 24h")
        whole("amount", self.amount, 1000, 10**18, _SIZE)
        one_of("lost", self.lost, get_args(Lost))
        if self.members is not None:
            whole("members", self.members, 1, 1_000_000, "a whole number from 1 to 1,000,000")
        if self.through == "slots" and self.members is None:
            raise refuse("members", "how many share the slots", self.members)
        if self.through == "slots" and self.slice < 10 * SECOND:
            raise refuse("slice", "at least 10s, as clocks differ by up to a second", self.slice)


class Fleet(Settings, frozen=True, kw_only=True):
    """What a spool cannot see from where it stands, for `check` and for plans.

    So many collectors send `rate` records a second together, of `record` bytes each; the sink can
    take `capacity` times as much, and `sick` of that while its replicas are out of step; it was
    away for `outage`. One collector alone can send at most `speed` times its own live rate.
    `within` is what is promised of a replay's end: `check` fails what does not keep it.
    """

    collectors: Count = 1
    rate: Rate
    record: Bytes = 1000
    capacity: Factor = 2.0
    sick: Share = 0.5
    brokers: Count = 3
    outage: Duration = HOUR
    speed: Factor = 12.0
    within: Duration | None = None

    def __post_init__(self) -> None:
        whole("collectors", self.collectors, 1, 100_000, "a whole number from 1 to 100,000")
        finite("rate", self.rate, 0.001, 1e9, "a rate from 0.001/s to 1,000,000,000/s")
        whole("record", self.record, 1, 10**9, "a size from 1B to 1GB")
        finite("capacity", self.capacity, 0.01, 1000, "a factor from 0.01x to 1000x")
        whole("brokers", self.brokers, 1, 10_000, "a whole number from 1 to 10,000")
        whole("outage", self.outage, SECOND, 3650 * DAY, "a duration from 1s to ten years")
        finite("sick", self.sick, 0.01, 1, "a share from 1% to 100%")
        finite("speed", self.speed, 0.1, 1000, "a factor from 0.1x to 1000x")
        if self.within is not None:
            whole("within", self.within, SECOND, 3650 * DAY, "a duration from 1s to ten years")


class Lane(Settings, frozen=True, kw_only=True):
    """One kind of records: its log on disk and the sink that it goes to: `events: file:out.jsonl`.

    `to` is where it goes: kafka://HOST:PORT,HOST:PORT/TOPIC, nats://HOST:PORT/SUBJECT, http://...,
    https://..., spool://HOST:PORT/LANE, or file:PATH. A record is accepted when it is `durable`:
    `always` on disk, `interval` on disk within that time (a crash of the machine may lose so
    much), `never` by the system's cache alone (a crash of this process loses nothing).
    """

    shorthand: ClassVar[str | None] = "to"

    to: str
    durable: Durable = "always"
    interval: Duration = 100 * MILLISECOND
    order: LaneOrder = "live"
    codec: Codec = "none"
    key_file: str | None = None
    token_file: str | None = None
    batch: Bytes = 10**6  # Kafka's max.request.size
    timeout: Duration = 10 * SECOND
    share: Share = 0.0
    bounds: Bounds = Bounds()
    breaker: Breaker = Breaker()
    gate: Gate = Gate()
    pace: Pace = Pace()
    turns: Turns = Turns()
    fleet: Fleet | None = None

    def __post_init__(self) -> None:
        one_of("durable", self.durable, get_args(Durable))
        one_of("order", self.order, get_args(LaneOrder))
        one_of("codec", self.codec, get_args(Codec))
        whole("interval", self.interval, MILLISECOND, HOUR, "a duration from 1ms to 1h")
        whole("batch", self.batch, 1000, _FRAME_MAX, "a size from 1kB to 64MB")
        whole("timeout", self.timeout, 10 * MILLISECOND, HOUR, "a duration from 10ms to 1h")
        finite("share", self.share, 0, 1, "a share from 0% to 100%")


class Door(Settings, frozen=True, kw_only=True):
    """Who may put records in over HTTP, and how large: `door: {token_file: token}`.

    With a token file only who sends `Authorization: Bearer TOKEN` is let in; without one `listen`
    must stay on this machine. `rate` bounds the records that one client sends in a second,
    `inflight` the bytes of all requests that are being received or written. One that sends nothing
    for `timeout` is let go.
    """

    token_file: str | None = None
    body: Bytes = 16 * 10**6
    record: Bytes = 10**6  # Kafka's max.message.bytes
    rate: Rate | None = None
    inflight: Bytes = 64 * 10**6
    timeout: Duration = MINUTE  # nginx's client_body_timeout

    def __post_init__(self) -> None:
        whole("body", self.body, 1000, 10**9, "a size from 1kB to 1GB")
        whole("record", self.record, 100, _FRAME_MAX, "a size from 100B to 64MB")
        if self.record > self.body:
            raise refuse("record", "at most the body that it comes in", self.record)
        whole("inflight", self.inflight, 1000, 10**12, "a size from 1kB to 1TB")
        if self.inflight < 3 * self.body:
            raise refuse("inflight", "at least three times the body, packed and not", self.inflight)
        whole("timeout", self.timeout, SECOND, HOUR, "a duration from 1s to 1h")
        if self.rate is not None:
            finite("rate", self.rate, 0.001, 10_000_000, "a rate from 0.001/s to 10,000,000/s")


class Spool(Settings, frozen=True, kw_only=True):
    """A process that keeps records and gives them on: its door, its directory, its lanes.

    `collector` is its name among its fleet, by default the machine's; with the lane, its log
    and the number of a record it is the record's id, by which who receives it twice can tell.
    """

    lanes: dict[str, Lane]
    directory: str = "spool"
    listen: str = "127.0.0.1:8471"
    collector: str | None = None
    door: Door = Door()

    def __post_init__(self) -> None:
        if not self.lanes:
            raise refuse("lanes", "at least one lane", {})
        for name in self.lanes:
            if not _NAME.fullmatch(name):
                raise SettingsError(_NO_NAME.format(name), path=("lanes", name))
        if self.collector is not None and not _NAME.fullmatch(self.collector):
            raise SettingsError(_NO_NAME.format(self.collector), path=("collector",))
        if sum(lane.share for lane in self.lanes.values()) > 1:
            raise refuse("lanes", "shares of the disk that add up to at most 100%", "more")
