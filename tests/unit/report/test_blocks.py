"""The pieces of the page say what they are given, and nothing when there is nothing."""

from tidegate.report import blocks


def test_a_badge_has_the_colour_of_its_word_and_always_the_word() -> None:
    assert blocks.badge("sticks") == '<span class="badge bad">sticks</span>'
    assert blocks.badge("vulnerable", "maybe") == '<span class="badge wary">maybe</span>'
    assert blocks.badge("no limit") == '<span class="badge plain">no limit</span>'


def test_facts_are_pairs() -> None:
    assert blocks.facts([("a", "<1>")]) == '<dl class="facts"><dt>a</dt><dd>&lt;1&gt;</dd></dl>'


def test_no_notes_are_no_heading() -> None:
    assert blocks.notes("Assumed", []) == []
    assert "".join(blocks.notes("Assumed", ["x"])) == "<h3>Assumed</h3><ul><li>x</li></ul>"


def test_a_table_names_the_column_in_every_cell_but_the_row_s_own_name() -> None:
    made = blocks.table("what", ("service", "load"), [("edge", "5/s")], numbers=(1,))
    assert "<caption>what</caption>" in made
    assert '<th scope="row" role="rowheader">edge</th>' in made
    assert '<td role="cell" class="num" data-head="load">5/s</td>' in made
