"""Settings of a server's door: defaults that fit one another, and rules for a line of Python."""

import msgspec
import pytest

from tidegate.errors import SettingsError
from tidegate.settings.admission import Admission, ClientRate, Shares
from tidegate.settings.policies import Settings
from tidegate.units import HOUR


@pytest.mark.parametrize(
    ("record", "change"),
    [
        (Shares(), {"default": 1.1}),
        (Shares(), {"default": 0.7}),  # below what is sheddable
        (Shares(), {"sheddable": -0.1}),
        (Shares(), {"last": 0.9}),
        (Admission(), {"queue": -1}),
        (Admission(), {"queue": 2.5}),
        (Admission(), {"wait": 0}),
        (Admission(), {"wait": HOUR + 1}),
        (Admission(), {"order": "random"}),
        (Admission(), {"client_share": 0}),
        (Admission(), {"client_share": 1.5}),
        (ClientRate(rate=1), {"burst": 0}),
    ],
)
def test_what_makes_no_sense_is_refused(record: Settings, change: dict[str, object]) -> None:
    (key,) = change
    with pytest.raises(SettingsError) as caught:
        msgspec.structs.replace(record, **change)
    assert caught.value.path in {(key,), ("sheddable",)}


def test_ends_of_the_ranges_are_allowed() -> None:
    assert Shares(default=0, sheddable=0, last=0).default == 0
    assert Admission(queue=0, wait=HOUR, client_share=1.0).queue == 0
