"""Each broker is asked for itself, and what it says is read as it was written, or not at all."""

import asyncio
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka_fake import HANDSHAKE, FakeBroker, fake_brokers, metadata, whole

from tidegate.core.health import Partition, View, flaw
from tidegate.spooler.sinks.kafka_address import kafka_address
from tidegate.spooler.sinks.kafka_wire import (
    KafkaWire,
    RefusalError,
    ScramTalk,
    read_metadata,
)

NOBODY = "127.0.0.1:1"  # a port that no test listens on
COUNTS = st.integers(0, 5)
PARTS = st.lists(
    st.tuples(st.none() | st.integers(0, 99).map(str), COUNTS, COUNTS), min_size=1, max_size=12
).map(lambda drawn: tuple(Partition(f"events-{n}", *part) for n, part in enumerate(drawn)))


@given(st.text(max_size=30), st.integers(0, 9), PARTS)
def test_an_answer_is_read_as_it_was_written(
    cluster: str, brokers: int, parts: tuple[Partition, ...]
) -> None:
    view = View("me", cluster, "", brokers, parts)
    assert read_metadata(metadata(view), "me") == view


@given(st.binary(max_size=300))
def test_any_bytes_are_an_answer_or_are_refused(data: bytes) -> None:
    with suppress(RefusalError, struct.error, ValueError):
        assert read_metadata(data, "me").seen_from == "me"


@given(st.integers(0, 400))
def test_an_answer_that_is_cut_off_is_refused(size: int) -> None:
    written = metadata(whole())
    if size < len(written):
        with pytest.raises((RefusalError, struct.error)):
            read_metadata(written[:size], "me")


@pytest.mark.parametrize("error", [3, 5, 29])
def test_a_topic_that_is_not_there_or_not_shown_has_no_leader(error: int) -> None:
    view = read_metadata(metadata(View("", partitions=()), error=error), "me")
    assert view.partitions == (Partition("events", None, 1, 0),)


def looked(
    *brokers: FakeBroker, query: str = "", base: Path = Path(), also: Sequence[str] = ()
) -> list[View | None]:
    async def look() -> list[View | None]:
        async with fake_brokers(*brokers) as hosts:
            address = kafka_address(f"kafka://{','.join((hosts, *also))}/events{query}", base)
            wire = KafkaWire(address, "tidegate-test")
            asking = [asyncio.create_task(wire.ask(server)) for server in address.servers]
            await asyncio.wait(asking, timeout=5)
            await wire.close()
            return [task.result() for task in asking]

    return asyncio.run(look())


def test_every_broker_is_heard_with_what_it_says() -> None:
    brokers = [FakeBroker(whole()), FakeBroker(whole(in_sync=2)), FakeBroker(whole(brokers=2))]
    views = looked(*brokers, also=[NOBODY])
    for broker, view in zip(brokers, views, strict=False):
        assert view == whole()._replace(
            seen_from=broker.address,
            brokers=view.brokers if view else 0,
            partitions=view.partitions if view else (),
        )
    assert [view and view.brokers for view in views] == [3, 3, 2, None]
    assert [view and view.partitions[0].in_sync for view in views] == [3, 2, 3, None]


def test_asking_creates_no_topic() -> None:
    broker = FakeBroker(whole())
    looked(broker)
    assert broker.asked == [(3, struct.pack(">ih6sb", 1, 6, b"events", 0))]


@pytest.mark.parametrize("answer", [b"", b"\0" * 7, b"\xff" * 40, metadata(whole())[:-1]])
def test_an_answer_that_cannot_be_understood_is_silence(answer: bytes) -> None:
    assert looked(FakeBroker(answer)) == [None]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_who_has_the_password_is_let_in(tmp_path: Path, mechanism: str) -> None:
    (tmp_path / "f").write_text(
        f"security.protocol=sasl_plaintext\nsasl.mechanism={mechanism}\n"
        "sasl.username=sp,o=ol\nsasl.password=pencil\n"
    )
    right = FakeBroker(whole(), "sp,o=ol", "pencil")
    wrong = FakeBroker(whole(), "sp,o=ol", "other")
    let_in, kept_out = looked(right, wrong, query="?config=f", base=tmp_path)
    assert let_in is not None
    assert kept_out is None
    assert right.asked[0][0] == HANDSHAKE


def test_scram_is_as_its_standard_shows_it() -> None:
    talk = ScramTalk("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert talk.first == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    proof = talk.answer(b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert proof == b"c=biws,r=" + nonce + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    talk.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(RefusalError):
        talk.check(b"v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize(
    "challenge",
    [b"", b"r=else,s=AAAA,i=4096", b"r=mine1,s=AAAA,i=0", b"r=mine1,s=AAAA,i=9999999999"],
)
def test_a_server_cannot_choose_another_nonce_or_endless_work(challenge: bytes) -> None:
    with pytest.raises(RefusalError):
        ScramTalk("SCRAM-SHA-512", "user", "pencil", "mine").answer(challenge)


def test_a_server_that_never_shows_that_it_knows_the_password_is_refused() -> None:
    with pytest.raises(RefusalError):
        ScramTalk("SCRAM-SHA-256", "user", "pencil", "mine").check(b"v=")


def test_a_connection_is_kept_and_made_anew_when_it_was_closed() -> None:
    broker = FakeBroker(whole())

    async def look() -> list[View | None]:
        async with fake_brokers(broker) as hosts:
            wire = KafkaWire(kafka_address(f"kafka://{hosts}/events", Path()), "tidegate-test")
            views = [await wire.ask(broker.address) for _ in range(3)]
            assert broker.connections == 1
            broker.hang_up()
            views += [await wire.ask(broker.address) for _ in range(2)]
            await wire.close()
            return views

    assert all(view and view.brokers == 3 for view in asyncio.run(look()))
    assert broker.connections == 2


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next() -> None:
    broker = FakeBroker(None)

    async def look() -> View | None:
        async with fake_brokers(broker) as hosts:
            wire = KafkaWire(kafka_address(f"kafka://{hosts}/events", Path()), "tidegate-test")
            asking = asyncio.create_task(wire.ask(broker.address))
            while not broker.asked:
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
            broker.view = whole(in_sync=1)
            view = await wire.ask(broker.address)
            await wire.close()
            return view

    view = asyncio.run(look())
    assert view is not None
    assert view.partitions[0].in_sync == 1
    assert broker.connections == 2


def test_two_brokers_that_disagree_are_a_flaw() -> None:
    from tidegate.core.health import Health

    views = looked(FakeBroker(whole()), FakeBroker(whole(leader="3")))
    health = Health(tuple(view for view in views if view is not None))
    assert "disagree on events-0" in str(flaw(health, 3))
