"""What both shedders share: settings by keywords, and the clock of the moment."""

from typing import Any

import pytest
from virtual_seconds import SecondsClock

from tidegate.core.outcome import Reason
from tidegate.errors import SettingsError
from tidegate.runtime import clock
from tidegate.server.door import EXEMPT, RETRY_AFTER, Door
from tidegate.settings.admission import Admission, ClientRate
from tidegate.settings.policies import Limit
from tidegate.units import MILLISECOND, SECOND


class At:
    """A clock that shows one instant."""

    def __init__(self, instant: int) -> None:
        self.instant = instant

    def now(self) -> int:
        return self.instant

    sleep = wait = SecondsClock.sleep


def door(admission: Admission | None = None, client_rate: Any = None, **keywords: Any) -> Door:
    return Door(
        keywords,
        admission=admission,
        mode="enforce",
        exempt=EXEMPT,
        trusted=(),
        client_rate=client_rate,
        retry_after=RETRY_AFTER,
    )


def test_keywords_are_the_settings_with_times_in_seconds() -> None:
    found = door(limit=8, queue=5, wait=0.25, client_share=0.5).settings
    assert found == Admission(limit=Limit(max=8), queue=5, wait=250 * MILLISECOND, client_share=0.5)


def test_keywords_change_a_record() -> None:
    base = Admission(queue=3, order="fifo")
    assert door(base, wait=2).settings == Admission(queue=3, order="fifo", wait=2 * SECOND)
    assert door(base).settings is base


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"queues": 1}, "did you mean 'queue'"),
        ({"wait": "1s"}, "expected seconds"),
        ({"limit": True}, "expected a number"),
        ({"queue": None}, "cannot be switched off"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        door(**wrong)


def test_a_bare_rate_is_a_rate() -> None:
    made = door(client_rate=5)
    assert made.rates is not None
    assert made.rates.snapshot(0).most == ClientRate(rate=5).clients


def test_it_goes_by_the_clock_of_the_moment() -> None:
    made = door()
    before = clock.use(At(7))  # type: ignore[arg-type]
    try:
        assert made.now() == 7
        assert door().now() == 7
    finally:
        clock.use(before)


def test_a_snapshot_names_the_reasons_that_occurred() -> None:
    before = clock.use(At(5))  # type: ignore[arg-type]
    try:
        made = door(limit=1, queue=0)
        made.admission.try_admit(5, 1)
        made.admission.try_admit(5, 1)
        made.on_refused(5, Reason.LIMIT)
        made.rate_refused += 1
        assert made.snapshot().refused == {"limit": 1, "rate": 1}
    finally:
        clock.use(before)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"admission": 5}, r"admission: expected an Admission\(...\), found 5"),
        ({"exempt": 5}, "exempt: expected names, in a tuple or another collection, found 5"),
        ({"trusted": 5}, "trusted: expected names, in a tuple or another collection, found 5"),
        ({"retry_after": 5}, "retry_after: expected two whole numbers of seconds, found 5"),
    ],
)
def test_what_a_shedder_cannot_use_is_refused_in_one_sentence(
    wrong: dict[str, Any], said: str
) -> None:
    right: dict[str, Any] = {
        "admission": None,
        "mode": "enforce",
        "exempt": EXEMPT,
        "trusted": (),
        "client_rate": None,
        "retry_after": RETRY_AFTER,
    }
    Door({}, **right)
    with pytest.raises(SettingsError, match=said):
        Door({}, **right | wrong)
