"""Which ways out does a check try together?"""

from tidegate.analysis.check import choices
from tidegate.settings.policies import RateLimit
from tidegate.settings.system import Action


def test_each_alone_each_pair_and_all_together() -> None:
    made = {
        "a": Action(ends="t"),
        "b": Action(call="c", open=True),
        "c": Action(call="c", attempts=1),
    }
    assert choices({"a": made["a"]}) == (("a",),)
    assert choices(made) == (
        *(("a",), ("b",), ("c",)),
        *(("a", "b"), ("a", "c"), ("b", "c")),
        ("a", "b", "c"),
    )


def test_of_two_that_set_the_same_number_the_later_would_undo_the_earlier() -> None:
    few, many = Action(service="s", capacity=2.0), Action(service="s", capacity=4.0)
    limit = Action(service="s", rate_limit=RateLimit(rate=10.0))
    assert choices({"few": few, "many": many, "limit": limit}) == (
        *(("few",), ("many",), ("limit",)),
        *(("few", "limit"), ("many", "limit")),
    )
    elsewhere = Action(service="t", capacity=4.0)
    assert ("few", "elsewhere") in choices({"few": few, "elsewhere": elsewhere})
