"""The status of a spool, as if one were running: a lane of which any field can be said."""

from typing import Any

import msgspec

from tidegate.spooler.status import LaneStatus, SpoolStatus

LANE = LaneStatus(
    name="events",
    to="kafka://10.0.0.7:9092/events",
    state="direct",
    why="the sink takes records as they come",
    since_s=3600.0,
    durable="always",
    accepted=5_000,
    delivered=4_990,
    replayed=0,
    resent=0,
    refused=0,
    failed=0,
    last_error="",
    backlog_records=10,
    backlog_bytes=10_000,
    oldest_s=0.2,
    live_rate=1_000_000.0,
    replay_rate=0.0,
    gate="open",
    budget_rate=None,
    share_rate=0.0,
    lease=None,
    turns="alone",
    latency_s=0.004,
    baseline_s=0.003,
    disk_bytes=16_000_000,
    disk_free=80_000_000_000,
    bound_bytes=50_000_000_000,
    full=False,
    retry_after_s=None,
    time_to_full_s=None,
    eta_s=None,
    limit_s=None,
    endangered=0,
    lost={"expired": 0, "dropped_oldest": 0},
    quarantined=0,
    damaged=0,
    sync_p50_s=0.0002,
    sync_p99_s=0.001,
    recovered="",
)


def lane(**changed: Any) -> LaneStatus:
    """A lane in peace, but for what is said."""
    return msgspec.structs.replace(LANE, **changed)


def spool(*lanes: LaneStatus) -> SpoolStatus:
    """A spool with these lanes, or with one in peace."""
    return SpoolStatus(
        collector="node-7",
        version="0.3.0",
        pid=4711,
        up_s=7200.0,
        directory="/var/spool/tidegate",
        listen="127.0.0.1:8471",
        lanes=list(lanes) or [LANE],
        answers={"202": 41, "503": 1},
        inside_bytes=4096,
    )
