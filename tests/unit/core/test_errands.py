"""The line of a fleet: the fullest first."""

from tidegate.core.errands import Report, fullest


def test_the_fullest_come_first_and_who_has_nothing_does_not_wait() -> None:
    reports = [
        Report("b", 5, 0, 0),
        Report("c", 0, 0, 0),
        Report("d", 7, 0, 0),
        Report("a", 5, 0, 0),
    ]
    assert [report.collector for report in fullest(reports)] == ["d", "a", "b"]
