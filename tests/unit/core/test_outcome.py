"""The shared vocabulary: five outcomes, one prebuilt no for each reason."""

from tidegate.core import outcome
from tidegate.core.outcome import REJECTIONS, Outcome, Permit, Reason


def test_the_names_bound_for_speed_are_the_members() -> None:
    for member in Outcome:
        assert getattr(outcome, member.name) is member


def test_there_is_one_no_for_each_reason_and_it_is_found_by_its_number() -> None:
    assert [rejection.reason for rejection in REJECTIONS] == list(Reason)
    for reason in Reason:
        assert REJECTIONS[reason].reason is reason
        assert reason.name in repr(REJECTIONS[reason])


def test_a_permit_is_born_unsettled_and_never_expires_unless_told() -> None:
    permit = Permit(7)
    assert (permit.start, permit.generation, permit.lease, permit.settled) == (7, 0, 0, False)
    assert repr(Permit(7, 2, 9)) == "Permit(start=7, generation=2, lease=9)"
