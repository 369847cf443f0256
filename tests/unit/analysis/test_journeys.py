"""What does a journey depend on, and what would it gain by losing a dependency?"""

import pytest

from tidegate.analysis.journeys import dependencies
from tidegate.findings import JourneyDependencies
from tidegate.settings.load import loads

MARKETPLACE = """
tidegate: 1
clients:
  readers: {rate: 500/s, calls: {pages: {to: tracker}}}
  shoppers: {rate: 600/s, calls: {shop: {to: edge}}}
services:
  tracker: {calls: {licences: {to: edge, per_request: 30%}}}
  edge: {calls: {market: {to: marketplace}}}
  marketplace: {time: 50ms}
journeys:
  open a page: {client: readers}
"""


def journeys(text: str = MARKETPLACE) -> dict[str, JourneyDependencies]:
    return {found.journey: found for found in dependencies(loads(text).system())}


def needs(found: JourneyDependencies) -> dict[str, float]:
    return {dependency.service: round(dependency.needs, 6) for dependency in found.services}


def test_three_pages_in_ten_need_the_marketplace() -> None:
    found = journeys()["open a page"]
    assert found.client == "readers"
    assert needs(found) == {"tracker": 1.0, "edge": 0.3, "marketplace": 0.3}


def test_a_client_without_a_named_journey_is_one_itself() -> None:
    assert list(journeys()) == ["open a page", "shoppers"]
    assert needs(journeys()["shoppers"]) == {"edge": 1.0, "marketplace": 1.0}


def test_what_losing_the_licence_check_would_give() -> None:
    first, second = journeys()["open a page"].removals
    assert (first.call, first.where) == ("licences", "services.tracker.calls.licences")
    assert (first.needs, first.needs_then) == (pytest.approx(0.3), 0)
    assert first.says == "without licences, 30% of open a page no longer need edge"
    assert (second.call, second.service) == ("market", "marketplace")


def test_an_optional_call_is_asked_but_not_needed() -> None:
    found = journeys(MARKETPLACE.replace("30%}", "30%, optional: true}"))["open a page"]
    asks = {dependency.service: round(dependency.asks, 6) for dependency in found.services}
    assert asks == {"tracker": 1.0, "edge": 0.3, "marketplace": 0.3}
    assert needs(found) == {"tracker": 1.0, "edge": 0.0, "marketplace": 0.0}
    assert found.removals == []


def test_two_ways_to_a_service_are_one_need_and_losing_one_frees_only_its_part() -> None:
    text = MARKETPLACE.replace("30%}}", "30%}, prices: {to: marketplace, per_request: 50%}}")
    found = journeys(text)["open a page"]
    assert needs(found)["marketplace"] == pytest.approx(1 - 0.7 * 0.5)
    then = {removal.call: removal.needs_then for removal in found.removals}
    assert then["prices"] == pytest.approx(0.3)
    assert then["market"] == pytest.approx(0.5)


def test_two_and_a_half_calls_are_two_and_half_a_chance_of_a_third() -> None:
    text = MARKETPLACE.replace("per_request: 30%", "per_request: 2.5").replace(
        "market: {to: marketplace}", "market: {to: marketplace, per_request: 20%}"
    )
    found = {d.service: d for d in journeys(text)["open a page"].services}
    assert found["edge"].needs == 1
    assert found["edge"].calls == 2.5
    assert found["marketplace"].calls == pytest.approx(0.5)
    assert found["marketplace"].needs == pytest.approx(1 - 0.8**2 * (0.5 + 0.5 * 0.8))


def test_the_only_call_of_a_client_is_the_journey_and_one_of_two_is_not() -> None:
    assert "pages" not in {removal.call for removal in journeys()["open a page"].removals}
    text = MARKETPLACE.replace("{to: tracker}}", "{to: tracker}, feed: {to: marketplace}}")
    assert "feed" in {removal.call for removal in journeys(text)["open a page"].removals}


def test_a_circle_of_events_changes_no_need() -> None:
    text = MARKETPLACE.replace(
        "marketplace: {time: 50ms}",
        "marketplace: {calls: {event: {to: tracker, optional: true, wait: false}}}",
    )
    assert needs(journeys(text)["open a page"]) == needs(journeys()["open a page"])
