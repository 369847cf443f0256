"""The identity of a run: equal lines, equal hash; one more, another hash."""

from tidegate.sim.log import TAIL, EventLog


def test_equal_lines_give_equal_hashes_and_any_difference_another() -> None:
    lines = [(1, "a", "sent", 0), (2, "a", "sent", 0), (1, "b", "sent", 0), (1, "a", "sent", 1)]
    digests = []
    for line in [lines[0], *lines]:
        log = EventLog()
        log.line(*line)
        digests.append(log.digest)
    assert digests[0] == digests[1]
    assert len(set(digests)) == len(lines)


def test_it_keeps_the_last_lines_and_hands_each_on() -> None:
    written: list[str] = []
    log = EventLog(written.append)
    for now in range(TAIL + 5):
        log.line(now, "part", "what", "detail")
    assert log.count == len(written) == TAIL + 5
    assert list(log.tail) == written[5:]
    assert written[0] == "0\tpart\twhat\tdetail\n"
