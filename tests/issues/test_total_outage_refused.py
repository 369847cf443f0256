"""`capacity: 0%` was refused as "expected what happens", because 0 equals False."""

import pytest

from tidegate.errors import SettingsError
from tidegate.settings.system import Trigger
from tidegate.units import SECOND


@pytest.mark.parametrize(
    ("target", "effect"),
    [("service", "capacity"), ("service", "errors"), ("client", "load"), ("call", "per_request")],
)
def test_zero_is_an_effect(target: str, effect: str) -> None:
    trigger = Trigger(**{target: "it", effect: 0.0, "for_": SECOND})
    assert getattr(trigger, effect) == 0.0


def test_nothing_at_all_is_still_refused() -> None:
    with pytest.raises(SettingsError, match="expected what happens"):
        Trigger(service="it", for_=SECOND)
