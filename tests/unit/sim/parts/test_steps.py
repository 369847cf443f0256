"""The calls of one request: which, how often, in which order, and when it is over."""

import pytest
from stories import MS, Story, ms

from tidegate.settings.system import Call, Service


def request(calls: dict[str, Call], *, parallel: bool = False, **leaf: Service) -> Story:
    """A hub that takes no time makes `calls`; a leaf works 100 ms unless told otherwise."""
    services = {"hub": Service(parallel=parallel, calls=calls), "leaf": Service(time=ms(100))}
    return Story(services | leaf)


def leaf(**call: object) -> Call:
    return Call(**({"to": "leaf", "timeout": 1000 * MS} | call))


def test_calls_come_one_after_another_as_written() -> None:
    story = request({"a": leaf(), "b": leaf(per_request=2)})
    story.ask(0)
    sent = [[story.call(name)[0] for name in "ab"] for at in (99, 100, 200) if story.until(at)]
    assert sent == [[1, 0], [1, 1], [1, 2]]
    assert story.until(299).served == 0
    assert story.until(300).served == 1


def test_or_all_together_and_the_last_ends_the_request() -> None:
    calls = {"a": leaf(), "b": leaf(to="slow"), "c": leaf(per_request=3)}
    story = request(calls, parallel=True, slow=Service(time=ms(150)))
    story.ask(0)
    story.until(0)
    assert [story.call(name)[0] for name in "abc"] == [1, 1, 3]
    assert story.until(149).served == 0
    assert story.until(150).served == 1


@pytest.mark.parametrize(("parallel", "sent"), [(False, 0), (True, 1)])
def test_the_first_required_failure_ends_the_request(parallel: bool, sent: int) -> None:
    story = request({"a": leaf(timeout=20 * MS), "b": leaf(timeout=40 * MS)}, parallel=parallel)
    story.ask(0)
    assert story.until(19).failed == 0
    assert story.until(20).failed == 1
    assert story.until(500).call("b")[0] == sent
    assert (story.failed, story.service("hub")) == (1, {"served": 1})


@pytest.mark.parametrize("parallel", [False, True])
def test_an_optional_failure_is_waited_for_and_degrades_the_answer(parallel: bool) -> None:
    story = request(
        {"a": leaf(timeout=150 * MS, to="slow", optional=True), "b": leaf()},
        parallel=parallel,
        slow=Service(time=ms(500)),
    )
    story.ask(0)
    done = 150 if parallel else 250
    assert story.until(done - 1).served == 0
    assert story.until(done).served == 1
    assert story.world.services["hub"].tally.degraded == 1


def test_a_degraded_request_that_fails_counts_as_failed_alone() -> None:
    story = request({"a": leaf(timeout=20 * MS, optional=True), "b": leaf(timeout=20 * MS)})
    story.ask(0)
    assert story.until(40).failed == 1
    assert story.world.services["hub"].tally.degraded == 0


@pytest.mark.parametrize("parallel", [False, True])
def test_a_call_that_nobody_waits_for_is_made_all_the_same(parallel: bool) -> None:
    story = request({"a": leaf(optional=True, wait=False)}, parallel=parallel)
    story.ask(0)
    assert story.until(0).served == 1
    assert story.until(100).call("a") == (1, 1, 0, 0, 0)


@pytest.mark.parametrize("parallel", [False, True])
def test_no_call_at_all_ends_the_request_at_once(parallel: bool) -> None:
    story = request({"a": leaf(per_request=0)}, parallel=parallel)
    story.ask(0)
    assert story.until(0).served == 1


def test_a_part_of_a_call_is_a_chance_of_one() -> None:
    story = request({"a": leaf(per_request=2.25)})
    story.ask(*[0] * 1000)
    assert story.until(400).served == 1000
    assert story.call("a")[0] == pytest.approx(2250, abs=55)  # four standard deviations of 13.7


@pytest.mark.parametrize("parallel", [False, True])
def test_a_thousand_calls_to_what_takes_no_time_do_not_nest(parallel: bool) -> None:
    calls = {"a": leaf(to="quick", per_request=1000)}
    story = request(calls, parallel=parallel, quick=Service())
    story.ask(0)
    assert story.until(0).served == 1
    assert story.call("a")[1] == 1000
