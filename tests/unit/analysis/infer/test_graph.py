"""Callees get names, circles are opened where it costs least."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.infer.graph import Edge, edges_of, open_circles
from tidegate.analysis.infer.tally import CallTally, Key
from tidegate.analysis.infer.trace import NOBODY

SERVICES = ["shop", "cart", "auth.prod"]


def counted(calls: int) -> CallTally:
    tally = CallTally()
    tally.calls = calls
    return tally


def named(tallies: dict[Key, int]) -> dict[tuple[str, str], int]:
    found = edges_of({key: counted(calls) for key, calls in tallies.items()}, SERVICES)
    return {(edge.caller, edge.callee): tally.calls for edge, tally in found.items()}


def test_who_left_no_span_is_who_answered_there_before() -> None:
    assert named(
        {
            Key(0, True, 1, "lb.example"): 90,
            Key(0, True, 2, "lb.example"): 10,
            Key(0, True, NOBODY, "lb.example"): 5,
            Key(1, True, NOBODY, "lb.example"): 3,
        }
    ) == {("shop", "cart"): 95, ("shop", "auth.prod"): 10, ("cart", "cart"): 3}


def test_a_span_s_name_speaks_for_its_own_caller_only() -> None:
    assert named(
        {
            Key(0, True, 1, " GET"): 9,
            Key(0, True, NOBODY, " GET"): 1,
            Key(1, True, NOBODY, " GET"): 1,
        }
    ) == {("shop", "cart"): 10, ("cart", "cart unnamed"): 1}


def test_a_peer_may_be_a_service_by_its_first_label_else_it_is_a_leaf() -> None:
    assert named(
        {
            Key(0, True, NOBODY, "cart"): 1,
            Key(0, True, NOBODY, "AUTH.prod.svc.cluster.local"): 2,
            Key(0, True, NOBODY, "postgresql"): 3,
        }
    ) == {("shop", "cart"): 1, ("shop", "auth.prod"): 2, ("shop", "postgresql"): 3}


edges = st.dictionaries(
    st.builds(Edge, st.sampled_from("abcdef"), st.just(True), st.sampled_from("abcdef")),
    st.integers(1, 100).map(counted),
    max_size=20,
)


@given(edges)
def test_no_circle_is_left_and_no_edge_is_cut_in_vain(found: dict[Edge, CallTally]) -> None:
    cut = open_circles(found)
    rest = [edge for edge in found if edge not in cut]
    assert not any(reaches(rest, edge.callee, edge.caller) for edge in rest)
    assert all(reaches(rest, edge.callee, edge.caller) for edge in cut)


def reaches(edges: list[Edge], start: str, goal: str) -> bool:
    reached = {start}
    for _ in range(7):
        reached |= {edge.callee for edge in edges if edge.caller in reached}
    return goal in reached


def test_the_rarest_call_of_a_circle_is_cut() -> None:
    assert open_circles(
        {
            Edge("a", True, "b"): counted(100),
            Edge("b", True, "c"): counted(7),
            Edge("c", True, "a"): counted(50),
            Edge("c", True, "d"): counted(1),
        }
    ) == {Edge("b", True, "c")}


def test_what_nobody_waits_for_may_go_in_circles() -> None:
    unwaited = counted(100)
    unwaited.outlives = 100
    assert not open_circles({Edge("a", True, "b"): unwaited, Edge("b", True, "a"): counted(5)})
    assert not open_circles({Edge("a", False, "a"): counted(5)})
