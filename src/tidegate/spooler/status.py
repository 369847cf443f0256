"""What is there to know of a spool at one moment?

One record for everybody who asks: `GET /status`, the metrics, `tidegate spool status`. It is made
when somebody asks and costs a record nothing. Times are in seconds, sizes in bytes, rates per
second; None stands for what is not known or does not apply.
"""

import msgspec

__all__ = ["LaneStatus", "SpoolStatus"]


class LaneStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One lane. Counters begin with the process, except what is lost, which the log remembers."""

    name: str
    to: str  # where records go, without user or password
    state: str  # direct, spill, wait, ramp, cruise, hold
    why: str  # in words
    since_s: float  # in this state
    durable: str  # what `accepted` means: always, interval, never

    accepted: int  # records
    delivered: int  # records, replayed ones among them
    replayed: int
    resent: int  # delivered again because an answer was lost or a process died
    refused: int  # records that were not accepted
    failed: int  # batches that the sink did not take
    last_error: str  # of the sink, in words; empty if there was none

    backlog_records: int
    backlog_bytes: int
    oldest_s: float | None  # age of the oldest record that waits
    live_rate: float  # bytes accepted per second
    replay_rate: float  # bytes replayed per second

    gate: str  # open, or why not
    budget_rate: float | None  # of the whole fleet, bytes per second
    share_rate: float  # of this one
    lease: int | None  # which turn is held
    turns: str  # in words: alone, holds lease 2, waits as third, coordinator lost
    latency_s: float | None  # of late answers
    baseline_s: float | None  # in peace

    disk_bytes: int  # that the lane takes
    disk_free: int  # on its disk
    bound_bytes: int | None  # at which it is full
    full: bool
    retry_after_s: float | None  # when full: when to come again
    time_to_full_s: float | None  # while records come in faster than they go
    eta_s: float | None  # until the backlog is gone, at the present rate
    limit_s: float | None  # the same if the sink gave all it has to spare; with `fleet:` only
    endangered: int  # records that will be too old before their turn

    lost: dict[str, int]  # records, by cause
    quarantined: int  # records set aside, kept
    damaged: int  # blocks that could not be read
    sync_p50_s: float | None  # of the disk
    sync_p99_s: float | None
    recovered: str  # what opening the log found, in words; empty if all was well


class SpoolStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The process, its door and its lanes. `answers` are requests by status, but for health."""

    collector: str
    version: str
    pid: int
    up_s: float
    directory: str
    listen: str
    lanes: list[LaneStatus]
    answers: dict[str, int] = {}
    inside_bytes: int = 0  # of requests that are being received or written
