"""What does a lane say of itself, put together from all who know a part of it?"""

from tidegate.core import drain
from tidegate.spooler.lane import Lane
from tidegate.spooler.sinks.choose import shown
from tidegate.spooler.status import LaneStatus
from tidegate.units import SECOND, Duration, Instant

__all__ = ["lane_status"]


def lane_status(lane: Lane, now: Instant) -> LaneStatus:
    """The lane as it stands now."""
    replay, bounds = lane.replay.snapshot(now), lane.bounds.snapshot(now)
    usage, space, tally = lane.keep.usage(), lane.keep.space(), lane.tally
    times, full = lane.keep.sync_times(), lane.refuses()
    again = None if full is None else full.retry_after
    oldest = None if usage.oldest is None else max(0, lane.keep.now() - usage.oldest)
    gone = drain.eta(lane.shelf.backlog, lane.replay_rate)
    fleet, age = lane.settings.fleet, lane.settings.bounds.age
    limit = None if fleet is None else drain.least(lane.shelf.backlog, fleet)
    return LaneStatus(
        name=lane.name,
        to=shown(lane.settings.to),
        state=replay.state.value,
        why=replay.why,
        since_s=(now - max(replay.since, lane.began)) / SECOND,
        durable=lane.settings.durable,
        accepted=lane.accepted,
        delivered=tally.delivered,
        replayed=tally.replayed,
        resent=tally.resent,
        refused=lane.refused,
        failed=tally.failed,
        last_error=tally.last_error,
        backlog_records=usage.backlog_records,
        backlog_bytes=usage.backlog_bytes,
        oldest_s=_seconds(oldest),
        live_rate=replay.live,
        replay_rate=lane.replay_rate,
        gate=replay.gate,
        budget_rate=replay.budget,
        share_rate=replay.share,
        lease=replay.lease,
        turns=replay.turns,
        latency_s=_seconds(replay.latency),
        baseline_s=_seconds(replay.baseline),
        disk_bytes=usage.bytes,
        disk_free=space.free,
        bound_bytes=lane.settings.bounds.bytes,
        full=bounds.full,
        retry_after_s=_seconds(again),
        time_to_full_s=_seconds(lane.bounds.time_to_full(now)),
        eta_s=_seconds(gone),
        limit_s=_seconds(limit),
        endangered=drain.endangered(usage.backlog_records, oldest, gone, age),
        lost=usage.lost,
        quarantined=usage.lost.get("quarantined", 0),
        damaged=usage.damaged,
        sync_p50_s=None if times is None else times.p50_s,
        sync_p99_s=None if times is None else times.p99_s,
        recovered=lane.keep.recovered,
    )


def _seconds(duration: Duration | None) -> float | None:
    return None if duration is None else duration / SECOND
