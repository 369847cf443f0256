"""A spool on one screen: states first, then what waits, then what was lost, in any width."""

import msgspec
import pytest

from tidegate.core.drain import plan
from tidegate.report.spool import plan_text, status_text
from tidegate.settings.spool import Fleet, Lane
from tidegate.spooler.status import LaneStatus, SpoolStatus

PEACE = LaneStatus(
    name="events",
    to="kafka://a:9092/events",
    state="direct",
    why="nothing waits",
    since_s=7200.0,
    durable="always",
    accepted=1_234_567,
    delivered=1_234_567,
    replayed=0,
    resent=0,
    refused=0,
    failed=0,
    last_error="",
    backlog_records=0,
    backlog_bytes=0,
    oldest_s=None,
    live_rate=5_000_000.0,
    replay_rate=0.0,
    gate="open",
    budget_rate=None,
    share_rate=0.0,
    lease=None,
    turns="alone",
    latency_s=0.004,
    baseline_s=0.003,
    disk_bytes=64_000_000,
    disk_free=74_000_000_000,
    bound_bytes=50_000_000_000,
    full=False,
    retry_after_s=None,
    time_to_full_s=None,
    eta_s=None,
    limit_s=None,
    endangered=0,
    lost={},
    quarantined=0,
    damaged=0,
    sync_p50_s=0.0001,
    sync_p99_s=0.0008,
    recovered="",
)
REPLAY = msgspec.structs.replace(
    PEACE,
    name="audit",
    state="ramp",
    why="holds lease 2",
    since_s=90.0,
    backlog_records=18_000_000,
    backlog_bytes=18_000_000_000,
    oldest_s=3600.0,
    replayed=10_000,
    replay_rate=900_000.0,
    share_rate=1_000_000.0,
    budget_rate=4_000_000.0,
    lease=2,
    turns="holds lease 2",
    eta_s=20_000.0,
    limit_s=10_000.0,
    refused=12,
    retry_after_s=30.0,
    full=True,
    failed=4,
    last_error="answered 503",
    endangered=100,
    lost={"expired": 5, "dropped_oldest": 0},
    quarantined=2,
    recovered="3 blocks were damaged",
)
STATUS = SpoolStatus(
    collector="web-17",
    version="0",
    pid=1,
    up_s=7200.0,
    directory="/var/lib/spool",
    listen="127.0.0.1:8471",
    lanes=[PEACE, REPLAY],
)


def test_a_lane_in_peace_is_a_few_calm_lines() -> None:
    text = status_text(msgspec.structs.replace(STATUS, lanes=[PEACE]), width=100)
    assert text == (
        "web-17, up 2h, in /var/lib/spool\n"
        "door        127.0.0.1:8471\n"
        "\n"
        "events      DIRECT for 2h: nothing waits\n"
        "to          kafka://a:9092/events\n"
        "waits       nothing\n"
        "comes       5MB/s, 1,234,567 records accepted\n"
        "went        1,234,567 records; answers take 4ms, in peace 3ms\n"
        "disk        64MB of 50GB, 74GB free; a sync takes 100us, 99 % 800us\n"
        "lost        nothing\n"
    )


def test_a_replay_says_how_fast_it_goes_and_when_it_is_done() -> None:
    text = " ".join(status_text(STATUS, width=100).split())
    for words in (
        "RAMP for 1.5min: holds lease 2",
        "18,000,000 records, 18GB, the oldest 1h old; 100 will be too old before their turn",
        "900kB/s of 1MB/s allowed, the fleet 4MB/s; gate open",
        "done in 5.56h, 2.0x the least time possible",
        "FULL",
        "12 records, come again in 30s",
        "4 times a batch was not taken, the last time: answered 503",
        "lost 5 expired",
        "2 records that the sink would never take",
        "3 blocks were damaged",
    ):
        assert words in text


@pytest.mark.parametrize("width", [40, 60, 100])
def test_no_line_is_wider_than_asked(width: int) -> None:
    lines = status_text(STATUS, width=width).splitlines()
    assert max(map(len, lines[1:])) <= width


def test_what_may_not_go_yet_says_why() -> None:
    held = msgspec.structs.replace(REPLAY, share_rate=0.0, gate="closed: nobody answers (a)")
    text = " ".join(status_text(msgspec.structs.replace(STATUS, lanes=[held]), width=100).split())
    assert "goes not yet; gate closed: nobody answers (a); holds lease 2" in text


def test_without_an_end_in_sight_it_says_so() -> None:
    stuck = msgspec.structs.replace(REPLAY, eta_s=None, replay_rate=0.0)
    text = status_text(msgspec.structs.replace(STATUS, lanes=[stuck]), width=100)
    assert "no end in sight at this rate" in " ".join(text.split())


def test_a_plan_says_how_long_and_what_it_rests_on() -> None:
    fleet = Fleet(collectors=20, rate=5000.0)
    text = plan_text({"events": plan(Lane(to="kafka://a/x", fleet=fleet), fleet)}, width=100)
    assert text.startswith("events      HOLDS: a replay takes 1.")
    assert "backlog     18GB, 900MB on each collector" in text
    assert "least       1h if the sink gave all it can spare, 1.2 times that with care" in text


def test_a_plan_that_one_broker_breaks_is_refused_with_the_reason() -> None:
    fleet = Fleet(rate=5000.0, capacity=1.4)
    text = plan_text({"events": plan(Lane(to="kafka://a/x"), fleet), "b": None}, width=200)
    assert "events      REFUSED: no time can be promised: without one of 3 brokers" in text
    assert "b           NO PLAN: write `fleet:`" in text
