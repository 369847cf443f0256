"""An address says which sink is meant, and one that cannot be meant is refused without a secret."""

from pathlib import Path

import pytest

from tidegate.errors import SettingsError
from tidegate.settings.spool import Lane
from tidegate.spooler.sinks.choose import open_sink, shown
from tidegate.spooler.sinks.file import FileSink
from tidegate.spooler.sinks.http import HttpSink
from tidegate.spooler.sinks.sink import Sink


def opened(to: str) -> Sink:
    lane = Lane(to=to)
    return open_sink(lane, sender="here/events", log=7, purpose="live", base=Path("/nowhere"))


@pytest.mark.parametrize(
    ("to", "kind"),
    [
        ("file:out.jsonl", FileSink),
        ("file:///tmp/out.jsonl", FileSink),
        ("http://127.0.0.1:1/in", HttpSink),
        ("https://sink.example/in?x=1", HttpSink),
        ("spool://127.0.0.1:8471/events", HttpSink),
    ],
)
def test_the_scheme_says_which(to: str, kind: type) -> None:
    assert type(opened(to)) is kind


@pytest.mark.parametrize(
    ("to", "says"),
    [
        ("kafak://127.0.0.1/x", "did you mean 'kafka'"),
        ("out.jsonl", "expected an address, as kafka:"),
        ("http://", "expected a host"),
        ("http://127.0.0.1:99999/", "cannot read"),
        ("spool://127.0.0.1:8471", "expected the lane of another spool"),
        ("http://me:secret@127.0.0.1/in", "no password in it"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(to: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says) as refused:
        opened(to)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("to", "as_shown"),
    [
        ("file:out.jsonl", "file:out.jsonl"),
        ("kafka://a:9092,b:9092/events?config=kafka.properties", "kafka://a:9092,b:9092/events"),
        ("nats://me:secret@a:4222/events", "nats://a:4222/events"),
        ("https://sink.example/in?key=secret", "https://sink.example/in"),
    ],
)
def test_an_address_is_shown_without_secrets(to: str, as_shown: str) -> None:
    assert shown(to) == as_shown
