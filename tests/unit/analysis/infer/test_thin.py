"""How little is too little to judge by."""

import pytest

from tidegate.analysis.infer.thin import REQUESTS_MIN, TIME_MIN, Thin, thinness
from tidegate.units import MINUTE, SECOND


def test_one_request_is_no_rate() -> None:
    assert thinness({"users": 1}, 0) == Thin(
        (
            "all was seen within one instant, and a rate takes 10s",
            "users: 1 request seen, and a rate takes 30",
        ),
        judged=False,
    )


@pytest.mark.parametrize(
    ("requests", "length", "judged"),
    [
        ({"users": REQUESTS_MIN}, TIME_MIN, True),
        ({"users": REQUESTS_MIN - 1}, MINUTE, False),
        ({"users": 10_000}, TIME_MIN - 1, False),
        ({"users": 10_000, "admins": 2}, MINUTE, True),
        ({"users": 29, "admins": 2}, MINUTE, False),
    ],
)
def test_both_bounds_count_and_one_client_of_many_requests_is_enough(
    requests: dict[str, int], length: int, judged: bool
) -> None:
    assert thinness(requests, length).judged is judged


def test_a_rare_client_among_others_is_named() -> None:
    assert thinness({"users": 10_000, "admins": 2}, MINUTE).says == (
        "admins: 2 requests seen, and a rate takes 30",
    )
    assert thinness({"users": 10_000}, 30 * SECOND) == Thin((), judged=True)
