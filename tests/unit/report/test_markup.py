"""No text becomes markup by accident."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from tidegate.report.figures import clean
from tidegate.report.markup import Markup, el, join, lines


class Reader(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(), st.text())
def test_a_reader_gets_back_the_text_and_one_element(content: str, title: str) -> None:
    reader = Reader(el("p", content, title=title))
    assert reader.tags == [("p", {"title": clean(title)})]
    assert reader.text == clean(content)


def test_attributes_are_written_as_html_spells_them() -> None:
    made = el("td", "a", class_="num", data_head="in use", x=0, open=True, gone=None, off=False)
    assert made == '<td class="num" data-head="in use" x="0" open>a</td>'


def test_void_elements_have_no_end() -> None:
    assert el("meta", charset="utf-8") == '<meta charset="utf-8">'


def test_elements_nest_and_nothing_is_left_out() -> None:
    assert el("p", el("b", "<"), None, " & ") == "<p><b>&lt;</b> &amp; </p>"
    assert join(["a", Markup("<br>"), "b"]) == "a<br>b"
    assert lines("a: <\n  b: \x1b\n") == "a: &lt;\n  b: \\x1b\n"
