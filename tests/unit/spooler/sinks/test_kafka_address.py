"""An address says where and how, sets nothing that is unsafe, and keeps its secrets."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import InputError, SettingsError
from tidegate.spooler.sinks.kafka_address import PROPERTIES, SECRETS, kafka_address

HERE = Path()
PASSWORD = "correct horse"


def test_servers_topic_and_properties_are_read() -> None:
    found = kafka_address("kafka://a:9092,b:9093,[::1]:1/events?compression.type=ZSTD", HERE)
    assert found.servers == ("a:9092", "b:9093", "[::1]:1")
    assert found.topic == "events"
    assert found.properties == {"compression.type": "zstd"}
    assert not found.encrypted
    assert not found.authenticated


def test_a_port_may_be_left_out() -> None:
    assert kafka_address("kafka://a,[::1],c:1/t", HERE).servers == ("a:9092", "[::1]:9092", "c:1")


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("kafka://a:9092", "with a topic"),
        ("kafka://a:9092/", "with a topic"),
        ("kafka://a:9092/one/two", "with a topic"),
        ("kafka://a:9092/..", "with a topic"),
        (f"kafka://a:9092/{'t' * 250}", "with a topic"),
        ("kafka:a:9092/t", "kafka://HOST"),
        ("kafka:///t", "a port from 1"),
        ("kafka://a:0/t", "a port from 1"),
        ("kafka://a:65536/t", "a port from 1"),
        ("kafka://a:9092,,b/t", "a port from 1"),
        ("kafka://::1/t", "brackets"),
        ("kafka://me:secret@a/t", "file that ?config= names"),
        ("kafka://a/t?acks=1", "sets no 'acks'"),
        ("kafka://a/t?compression=zstd", "did you mean 'compression.type'?"),
        ("kafka://a/t?compression.type=zip", "one of none, gzip"),
        ("kafka://a/t?batch.size=1e6", "batch.size as a whole number"),
        ("kafka://a/t?batch.size=10", "from 1,000"),
        ("kafka://a/t?sasl.password=secret", "sasl.password in a file"),
        ("kafka://a/t?security.protocol=sasl_ssl", "sasl.mechanism beside"),
        ("kafka://a/t?sasl.mechanism=PLAIN", "sasl_ssl or sasl_plaintext beside sasl.mechanism"),
        ("kafka://a/t?ssl.ca.location=ca.pem", "ssl or sasl_ssl beside ssl.ca.location"),
    ],
)
def test_a_wrong_address_gets_one_sentence_without_what_was_written(to: str, said: str) -> None:
    with pytest.raises(SettingsError, match=r"^to: ") as refused:
        kafka_address(to, HERE)
    assert said in str(refused.value)
    assert "secret" not in str(refused.value)


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_is_refused(rest: str) -> None:
    try:
        found = kafka_address("kafka://" + rest.replace("config", ""), HERE)
    except SettingsError:
        return
    assert found.servers
    assert 0 < len(found.topic) <= 249
    assert set(found.properties) <= set(PROPERTIES)


def test_a_file_brings_the_secrets_and_the_url_goes_before_it(tmp_path: Path) -> None:
    (tmp_path / "kafka.properties").write_text(
        "# a user of its own\n\nsecurity.protocol = SASL_SSL\nsasl.mechanism=scram-sha-512\n"
        f"sasl.username=spool\nsasl.password = {PASSWORD}\ncompression.type=gzip\n"
        "ssl.ca.location=ca.pem\n"
    )
    found = kafka_address("kafka://a/t?config=kafka.properties&compression.type=lz4", tmp_path)
    assert found.properties == {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "spool",
        "sasl.password": PASSWORD,
        "compression.type": "lz4",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
    }
    assert found.encrypted
    assert found.authenticated
    assert PASSWORD not in repr(found)
    assert set(found.properties) & set(SECRETS) == {"sasl.username", "sasl.password"}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("acks=1", ":1: a Kafka address sets no 'acks'"),
        (f"\nsasl.pasword={PASSWORD}", ":2: a Kafka address sets no 'sasl.pasword'; did you mean"),
        (PASSWORD, ":1: expected name = value"),
        ("#" * 70_000, "is longer than 65,536 characters"),
    ],
)
def test_a_wrong_file_is_named_with_the_line_but_never_shown(
    tmp_path: Path, written: str, said: str
) -> None:
    (tmp_path / "f").write_text(written)
    with pytest.raises(InputError) as refused:
        kafka_address("kafka://a/t?config=f", tmp_path)
    assert said in str(refused.value)
    assert PASSWORD not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*f: No such file"):
        kafka_address("kafka://a/t?config=f", tmp_path)
