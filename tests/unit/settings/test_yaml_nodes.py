"""What a YAML file may hold, with both parsers that PyYAML can have."""

import builtins
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate.errors import SettingsError
from tidegate.settings import yaml_nodes
from tidegate.settings.yaml_nodes import Keys, Listed, Text, read_file, read_text


@pytest.fixture(params=["C", "Python"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "Python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)


def refused(content: str | bytes) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        read_text(content, "f.yaml")
    assert "\n" not in str(caught.value)
    return caught.value


def test_keys_texts_and_lists_know_their_place() -> None:
    root = read_text("a: 1s\nb:\n  c: [x, 'y']\n", "f").node
    assert isinstance(root, Keys)
    assert root.entries["a"].node == Text("1s", plain=True, at=(1, 4))
    below = root.entries["b"]
    assert below.at == (2, 1)
    assert isinstance(below.node, Keys)
    listed = below.node.entries["c"].node
    assert isinstance(listed, Listed)
    assert listed.nodes == (Text("x", plain=True, at=(3, 7)), Text("y", plain=False, at=(3, 10)))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("on", "text"),
        ("off", "text"),
        ("yes", "text"),
        ("no", "text"),
        ("true", "boolean"),
        ("False", "boolean"),
        ("'true'", "text"),
        ("null", "nothing"),
        ("~", "nothing"),
        ("", "nothing"),
        ("''", "text"),
        ("12", "number"),
        ("0x1F", "number"),
        (".inf", "number"),
        (".NaN", "number"),
        ("1e999", "number"),
        ("1:30", "text"),
        ("2024-01-01", "text"),
        ("1_000", "text"),
        ("250ms", "text"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(written: str, read: str) -> None:
    root = read_text(f"key: {written}", "f").node
    assert isinstance(root, Keys)
    node = root.entries["key"].node
    assert isinstance(node, Text)
    assert node.resolved == read


@pytest.mark.parametrize(
    ("content", "where", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", "3:1", "given twice, first on line 1"),
        ("a: &x 1\n", "1:4", "anchors"),
        ("a: 1\nb: *x\n", "2:4", "aliases"),
        ("*x : 1\n", "1:1", "aliases"),
        ("a: !!int 5\n", "1:4", "tags"),
        ("a: !mine {b: 1}\n", "1:4", "tags"),
        ("a:\n  <<: {b: 1}\n", "2:3", "merge keys"),
        ("a: 1\n---\nb: 2\n", "2:1", "one document"),
        ("1: a\n", "1:1", "found 1, which YAML reads as a number; put it in quotes"),
        ("true: a\n", "1:1", "reads as a boolean"),
        ("~: a\n", "1:1", "found ~, which YAML reads as nothing"),
        ("?\n: a\n", "1:2", "found nothing"),
        ("'': a\n", "1:1", "found nothing"),
        ("? [a]\n: b\n", "1:3", "found a block"),
        ("a:\n\tb: 1\n", "2:1", "never with tabs"),
        ("a: b: c\n", "1:5", "check the indentation"),
        ("a: @b\n", "1:4", "put the value in quotes"),
        ("a: 'b\n\n\n", "1:4", "this is not YAML"),
        ("a: [1, 2\nb: 3\n", "2:2", "this is not YAML"),
        ("a: 1\x00\n", "1:5", "the character U+0000"),
        ("é: \x1b[31m\n", "1:4", "the character U+001B"),
        ("a: \ud800\n", "1:4", "the character U+D800"),
        ('a: "\\e[31m"\n', "1:4", "printable text"),
        ('"\\e": 1\n', "1:1", "printable text"),
        ("a: |\n  two\n  lines\n", "1:4", "one line"),
        ("a: " + "x" * 501, "1:4", "at most 500 characters, found 501"),
        (b"a: 1\nb: \xff\n", "2:4", "the byte 0xFF"),
        ("a: 1\n".encode("utf-16"), "1:1", "the byte 0xFF"),
        (b"\x89PNG\r\n\x1a\n", "1:1", "the byte 0x89"),
    ],
)
def test_what_would_surprise_is_refused_at_its_place(
    content: str | bytes, where: str, says: str
) -> None:
    error = refused(content)
    assert (error.where, says in error.message) == (f"f.yaml:{where}", True), error


def test_nothing_behind_a_key_stands_at_the_key() -> None:
    root = read_text("a: {b: , c: ''}\nd:\n", "f").node
    assert isinstance(root, Keys)
    assert root.entries["d"].node.at == (2, 1)
    inner = root.entries["a"].node
    assert isinstance(inner, Keys)
    assert [entry.node.at for entry in inner.entries.values()] == [(1, 5), (1, 10)]


def test_a_colon_without_a_space_is_explained_where_the_parser_refuses_it() -> None:
    try:
        read_text("a: {workers:}\n", "f")
    except SettingsError as error:
        refused_with = error.message
    else:
        assert not hasattr(yaml, "CSafeLoader"), "only the parser in Python reads it"
        return
    assert refused_with.endswith("; put a space after the colon, or write unknown")


@pytest.mark.parametrize("content", ["", "# only this\n", b"\xef\xbb\xbf", "\n\n"])
def test_an_empty_file_says_so(content: str | bytes) -> None:
    assert refused(content).message == "expected a system, found an empty file"


@pytest.mark.parametrize("content", ['a: "\\U00110000"', "%YAML 9.1\n---\na: 1", '"\\ud800": 1'])
def test_what_only_one_parser_stumbles_over_is_one_sentence_in_both(content: str) -> None:
    refused(content)


def test_a_byte_order_mark_is_nothing() -> None:
    assert read_text(b"\xef\xbb\xbfa: 1", "f") == read_text("a: 1", "f")


def test_the_path_leads_to_what_is_refused() -> None:
    assert refused("a:\n  b:\n    c: &x 1\n").path == ("a", "b", "c")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_depth_is_bounded(opening: str) -> None:
    assert "at most 20 levels" in refused(f"k:\n {opening * 30}").message


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_no_depth_exhausts_the_stack(opening: str) -> None:
    refused(f"k:\n {opening * 5_000}")


def test_nodes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_nodes, "NODES_MAX", 100)
    read_text(f"a: [{'1,' * 97}]", "f")
    assert "at most 100 values" in refused(f"a: [{'1,' * 98}]").message


def test_a_bomb_of_aliases_never_unfolds() -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 100)]
    assert "anchors" in refused("\n".join(lines)).message


@pytest.mark.parametrize("size", [(1 << 20) + 1, 10 << 20])
def test_size_is_bounded(size: int, tmp_path: Path) -> None:
    assert "at most 1 MiB" in refused("#" * size).message
    big = tmp_path / "big.yaml"
    big.write_bytes(b"#" * size)
    with pytest.raises(SettingsError, match=r"big.yaml: expected at most 1 MiB"):
        read_file(big)


def test_a_megabyte_of_utf_8_is_counted_in_bytes() -> None:
    assert "at most 1 MiB" in refused("#" + "é" * (1 << 19)).message


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^cannot read .*gone.yaml: there is no such file$"):
        read_file(tmp_path / "gone.yaml")


def test_a_directory_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot read .*: it is a directory"):
        read_file(tmp_path)


def test_a_name_that_is_none_says_so() -> None:
    with pytest.raises(SettingsError, match=r"cannot read .*: that cannot be the name of a file"):
        read_file(Path("a\0b"))


def test_an_unreadable_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = tmp_path / "locked.yaml"
    locked.write_text("a: 1")
    locked.chmod(0)

    def refuses(*_: Any, **__: Any) -> Any:  # root may read everything
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(Path, "open", refuses)
    with pytest.raises(SettingsError, match=r"cannot read .*locked.yaml: permission"):
        read_file(locked)


def test_without_pyyaml_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_yaml(name: str, *rest: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_yaml)
    assert "pip install 'tidegate[files]'" in refused("a: 1").message
