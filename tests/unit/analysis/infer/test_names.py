"""Whatever a service calls itself, its name in the file is a word, and its own."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.analysis.infer.names import Names, readable
from tidegate.settings.load import loads


@given(st.lists(st.text(), max_size=20))
def test_names_are_words_and_differ(wishes: list[str]) -> None:
    names = Names()
    taken = [names.take(wish) for wish in wishes]
    assert len(set(taken)) == len(taken)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) for name in taken)


@given(st.text())
def test_a_name_is_text_to_the_loader(wish: str) -> None:
    name = readable(wish)
    text = f"tidegate: 1\nclients: {{u: {{rate: 1/s, calls: {{{name}: {{}}}}}}}}\n"
    assert list(loads(f"{text}services: {{{name}: {{}}}}\n").system().services) == [name]


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("Licence Service (EU)", "Licence-Service-EU"),
        ("postgresql/orders", "postgresql-orders"),
        ("Größe", "Groe"),
        ("", "service"),
        ("---", "service"),
        ("数据库", "service"),
        ("on", "service-on"),
        ("NULL", "service-NULL"),
        ("10.0.0.7:5432", "service-10.0.0.7-5432"),
        ("1e5", "service-1e5"),
        ("a" * 100, "a" * 60),
    ],
)
def test_examples(wish: str, name: str) -> None:
    assert readable(wish) == name


def test_the_second_of_a_name_gets_the_next_wish_and_then_a_number() -> None:
    names = Names()
    assert [names.take("db", "shop-db") for _ in range(4)] == [
        "db", "shop-db", "shop-db-2", "shop-db-3"
    ]  # fmt: skip
