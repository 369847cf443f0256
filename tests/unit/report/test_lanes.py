"""A lane on a screen and on a page: the configured way first, and no name acts."""

from msgspec.structs import replace
from sample_reports import HOSTILE, empty, marketplace

from tidegate.findings import CheckReport, LanePlan, LaneResult, LaneWay, Measure
from tidegate.report import html, text
from tidegate.report.lanes import of_spool_alone, worst_first


def measure(value: float, unit: str) -> Measure:
    return Measure(value=value, low=value * 0.9, high=value, unit=unit, runs=3, how="simulated")


def way(
    name: str, *, peak: float = 1.9, lost: float = 0.0, drained: float | None = 4800
) -> LaneWay:
    return LaneWay(
        way=name,
        configured=name == "as configured",
        peak=measure(peak, "x"),
        peak_of_capacity=measure(0.95, "x"),
        lost=measure(lost, "share"),
        late=measure(lost, "share"),
        drained=None if drained is None else measure(drained, "s"),
        of_limit=None if drained is None else measure(1.28, "x"),
        p99=measure(0.221, "s"),
        overload=measure(5, "s"),
        resent=measure(0, "share"),
        holds=lost == 0,
        seconds=[float(second) for second in range(0, 480, 2)],
        sent=[1.0] * 120 + [peak] * 120,
        capacity=[2.0] * 240,
        seed=1,
    )


def lane(name: str = "events", *, fails: bool = True) -> LaneResult:
    computed = Measure(value=1.8e10, low=1.8e10, high=1.8e10, unit="bytes")
    plan = LanePlan(
        backlog=computed,
        limit=measure(3840, "s"),
        likely=measure(4600, "s"),
        spare=measure(1.33, "x"),
        needs=computed,
        kept_for=measure(200_000, "s"),
        too_old=measure(0, "share"),
        turns=2,
        says=["18GB wait after 1h", "no replay can end within less than 1.07h"],
    )
    first = (
        way("as configured", peak=13.0, lost=0.9, drained=None) if fails else way("as configured")
    )
    return LaneResult(
        lane=name,
        where=f"spool.lanes.{name}",
        verdict="fails" if fails else "stable",
        says="its replay rises to 13x the live rate",
        plan=plan,
        ways=[first, way("pace: normal"), way("all at once", peak=13.0, lost=0.9, drained=None)],
        fix="led by one budget behind a gate it rises to 1.9x" if fails else "",
        yaml=f"spool:\n  lanes:\n    {name}:\n      pace: normal\n" if fails else "",
        assumptions=["the sink comes back with 75% of its health"],
    )


def of(*lanes: LaneResult) -> CheckReport:
    return replace(empty(), verdict="fails", says="events: its replay rises", lanes=list(lanes))


def screen(report: CheckReport, width: int = 100) -> str:
    return text.render(report, width=width, color=False)


def test_a_spool_alone_is_told_without_triggers_and_services() -> None:
    alone = replace(of(lane()), services=[], triggers=[])
    assert of_spool_alone(alone)
    shown = screen(alone)
    assert "TRIGGERS" not in shown
    assert "harm" not in shown
    assert "LANE events (simulated, 3 runs of each)" in shown
    assert 'id="triggers"' not in html.render(alone)
    assert 'href="#lanes"' in html.render(alone)


def test_the_configured_way_comes_first_with_its_spread() -> None:
    lines = screen(of(lane())).splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("LANE events"))
    row = " ".join(lines[head + 1].split())
    assert row == "as configured 13x 90% 90% never - 221ms"
    row = " ".join(lines[head + 2].split())
    assert row == "pace: normal 1.9x 0% 0% 1.33h 1.28x 221ms"
    assert "peak 13x (11.7..13x)" in " ".join(lines)


def test_what_cures_can_be_copied() -> None:
    shown = screen(of(lane()))
    assert "      pace: normal" in shown
    assert "led by one budget" in shown
    assert "write" not in screen(of(lane(fails=False)))


def test_beside_services_each_lane_has_its_verdict() -> None:
    both = replace(marketplace(), lanes=[lane()])
    shown = screen(both)
    assert "TRIGGERS" in shown
    assert "FAILS       its replay rises" in shown


def test_of_many_lanes_the_worst_are_told_and_the_others_counted() -> None:
    many = of(*(lane(f"fine{i}", fails=False) for i in range(4)), lane("bad"))
    assert worst_first(many.lanes)[0].lane == "bad"
    shown = screen(many)
    assert "LANE bad" in shown
    assert "and 3 more lanes: fine1 stable, fine2 stable" in shown


def test_no_line_is_wider_than_the_screen() -> None:
    for width in (40, 80, 120):
        lines = screen(of(lane(HOSTILE)), width).splitlines()
        assert all(len(line) <= width for line in lines if not line.startswith("repeat"))


def test_the_curve_ends_a_little_after_the_replays() -> None:
    short = lane(fails=False)
    done = [replace(one, drained=measure(100, "s")) for one in short.ways]
    whole, cut = html.render(of(lane())), html.render(of(replace(short, ways=done)))
    assert ">478s<" not in cut
    assert ">124s<" in cut
    assert ">476s<" in whole


def test_the_page_has_the_table_the_curve_and_no_markup_from_a_name() -> None:
    page = html.render(of(lane("<script>alert(1)</script>")))
    assert "<script" not in page
    assert page.count("<figure") == 1
    assert "It peaks at 13x as configured, and at 1.9x pace: normal." in page
    assert "drawn up to 6x" in page
    assert "18GB" in page
