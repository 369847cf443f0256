"""How is a spool shown on one screen?

The state of each lane comes first, in a word and a sentence that says why; then what waits and how
long it will take; then what was lost, which is nothing or is said in full.
"""

from collections.abc import Iterator, Mapping

from tidegate.core.drain import Plan
from tidegate.report.terminal import hang, paint
from tidegate.spooler.status import LaneStatus, SpoolStatus
from tidegate.units import SECOND, format_bytes, format_duration, format_share

__all__ = ["plan_text", "status_text"]

_INDENT = 12
_FAR_S = 30 * 86400.0  # who is asked today has no use for what is further away


def status_text(status: SpoolStatus, *, width: int, color: bool = False) -> str:
    """The whole spool, at most `width` columns wide."""
    head = f"{status.collector}, up {_time(status.up_s)}, in {status.directory}"
    lines = [head, f"{'door':{_INDENT}}{status.listen}"]
    for lane in status.lanes:
        lines.append("")
        for label, text in _lane(lane):
            lines += hang(label, text, width, _INDENT)
    text = "\n".join(lines) + "\n"
    return paint(text) if color else text


def plan_text(plans: Mapping[str, Plan | None], *, width: int, color: bool = False) -> str:
    """What a replay of each lane takes; None for one whose `fleet:` is not known."""
    lines: list[str] = []
    for name, plan in plans.items():
        if lines:
            lines.append("")
        for label, text in _plan(name, plan):
            lines += hang(label, text, width, _INDENT)
    text = "\n".join(lines) + "\n"
    return paint(text) if color else text


def _plan(name: str, plan: Plan | None) -> Iterator[tuple[str, str]]:
    if plan is None:
        yield name, "NO PLAN: write `fleet:`, as `fleet: {collectors: 20, rate: 5000/s}`"
        return
    likely = "" if plan.likely is None else f"a replay takes {format_duration(plan.likely)}"
    yield name, f"REFUSED: {plan.refusal}" if plan.refusal else f"HOLDS: {likely}"
    yield "backlog", f"{format_bytes(plan.backlog)}, {format_bytes(plan.kept)} on each collector"
    if plan.least is not None:
        ratio = (
            "" if plan.likely is None else f", {plan.likely / plan.least:.1f} times that with care"
        )
        yield "least", f"{format_duration(plan.least)} if the sink gave all it can spare{ratio}"
    turns = f"{plan.turns} turn{'s' * (plan.turns > 1)} at a time"
    yield "uses", f"{format_share(plan.utilisation)} of the sink, by {turns}"
    yield "after loss", f"without one broker the sink takes {plan.after_loss:.3g}x the live rate"
    yield "storage", f"{format_bytes(plan.age_bytes)} on each collector until records are too old"
    if plan.too_old:
        yield "too old", f"{format_share(plan.too_old)} of the backlog before its turn comes"


def _lane(lane: LaneStatus) -> Iterator[tuple[str, str]]:
    yield lane.name, f"{lane.state.upper()} for {_time(lane.since_s)}: {lane.why}"
    yield "to", lane.to
    yield "waits", _backlog(lane)
    if lane.backlog_records:
        yield "goes", _replay(lane)
    yield "comes", f"{format_bytes(lane.live_rate)}/s, {_records(lane.accepted)} accepted"
    yield "went", _delivered(lane)
    yield "disk", _disk(lane)
    if lane.refused:
        again = "" if lane.retry_after_s is None else f", come again in {_time(lane.retry_after_s)}"
        yield "refused", f"{_records(lane.refused)}{again}"
    yield "lost", _lost(lane)
    if lane.quarantined:
        yield "set aside", f"{_records(lane.quarantined)} that the sink would never take"
    if lane.recovered:
        yield "recovered", lane.recovered


def _backlog(lane: LaneStatus) -> str:
    if not lane.backlog_records:
        return "nothing"
    text = f"{_records(lane.backlog_records)}, {format_bytes(lane.backlog_bytes)}"
    if lane.oldest_s is not None:
        text += f", the oldest {_time(lane.oldest_s)} old"
    if lane.endangered:
        text += f"; {lane.endangered:,} will be too old before their turn"
    return text


def _replay(lane: LaneStatus) -> str:
    if not lane.share_rate:
        return f"not yet; gate {lane.gate}; {lane.turns}"
    text = f"{format_bytes(lane.replay_rate)}/s of {format_bytes(lane.share_rate)}/s allowed"
    if lane.budget_rate is not None:
        text += f", the fleet {format_bytes(lane.budget_rate)}/s"
    text += f"; gate {lane.gate}; {lane.turns}"
    if lane.eta_s is None:
        return f"{text}; no end in sight at this rate"
    text += f"; done in {_time(lane.eta_s)}"
    if lane.limit_s:
        text += f", {lane.eta_s / lane.limit_s:.1f}x the least time possible"
    return text


def _delivered(lane: LaneStatus) -> str:
    text = _records(lane.delivered)
    if lane.replayed:
        text += f", {lane.replayed:,} of them replayed"
    if lane.latency_s is not None:
        text += f"; answers take {_time(lane.latency_s)}"
        if lane.baseline_s is not None:
            text += f", in peace {_time(lane.baseline_s)}"
    if lane.failed:
        text += f"; {lane.failed:,} times a batch was not taken, the last time: {lane.last_error}"
    return text


def _disk(lane: LaneStatus) -> str:
    text = format_bytes(lane.disk_bytes)
    if lane.bound_bytes is not None:
        text += f" of {format_bytes(lane.bound_bytes)}"
    text += f", {format_bytes(lane.disk_free)} free"
    if lane.full:
        text += "; FULL"
    elif lane.time_to_full_s is not None and lane.time_to_full_s < _FAR_S:
        text += f"; full in {_time(lane.time_to_full_s)}"
    if lane.sync_p99_s is not None:
        text += f"; a sync takes {_time(lane.sync_p50_s or 0)}, 99 % {_time(lane.sync_p99_s)}"
    return text


def _lost(lane: LaneStatus) -> str:
    causes = [f"{count:,} {cause.replace('_', ' ')}" for cause, count in lane.lost.items() if count]
    if lane.damaged:
        causes.append(f"{lane.damaged:,} blocks unreadable")
    return ", ".join(causes) if causes else "nothing"


def _records(count: int) -> str:
    return f"{count:,} record{'s' * (count != 1)}"


def _time(seconds: float) -> str:
    return format_duration(seconds * SECOND)
