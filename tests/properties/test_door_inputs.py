"""Whatever is sent to the door: it is kept exactly or refused as a whole, and nothing breaks."""

from random import Random

import pytest
from asgi_client import Exchange
from door_inputs import BODY_MAX, KINDS, LARGEST, check, judged, made, taken
from fake_keeper import FakeKeeper
from hypothesis import given
from hypothesis import strategies as st
from virtual_seconds import told

from tidegate.settings import spool as settings
from tidegate.spooler.door.app import Door

HEADERS = st.dictionaries(
    st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20),
    st.text(st.characters(max_codepoint=255), max_size=40),
    max_size=4,
)


@pytest.mark.slow  # a hundred bodies with each seed
@given(st.integers(0, 2**64))
def test_spoilt_bodies_are_kept_exactly_or_not_at_all(seed: int) -> None:
    luck = Random(seed)
    kept = sum(check(*made(luck)) for _ in range(100))
    assert 0 < kept < 100


@given(st.sampled_from(KINDS), st.binary(max_size=300), st.booleans())
def test_any_bytes_are_kept_exactly_or_not_at_all(kind: str, body: bytes, packed: bool) -> None:
    check(kind, body, packed)


def test_the_judge_and_the_door_agree_on_what_is_plain() -> None:
    body = b'{"a": 1}\r\n\n[2]'
    found = taken("application/x-ndjson", body, packed=False)
    assert not isinstance(found, int)
    assert [record.value for record in found] == judged("application/x-ndjson", body, packed=False)


@pytest.mark.slow  # thirty requests with each seed
@given(st.integers(0, 2**64), HEADERS)
def test_however_a_body_is_cut_and_whatever_stands_in_headers_it_is_the_same_body(
    seed: int, headers: dict[str, str]
) -> None:
    luck = Random(seed)

    async def story() -> None:
        keeper = FakeKeeper()
        limits = settings.Door(body=BODY_MAX, record=LARGEST)
        door = Door(keeper, limits, token=None, rng=Random(1))
        for _ in range(30):
            kind, body, packed = made(luck)
            cuts = sorted(luck.randrange(len(body) + 1) for _ in range(luck.randrange(4)))
            ends = [*cuts, len(body)]
            parts = [body[a:b] for a, b in zip([0, *cuts], ends, strict=True)]
            said = {**headers, "content-type": kind}
            said.pop("tidegate-key", None)
            said["content-encoding"] = "gzip" if packed else "identity"
            said["content-length"] = str(len(body))
            exchange = Exchange("/v1/events", "POST", said)
            exchange._body = [
                {"type": "http.request", "body": part, "more_body": number < len(parts)}
                for number, part in enumerate(parts, 1)
            ]
            await door.app(exchange.scope, exchange.receive, exchange.send)
            right = 413 if len(body) > BODY_MAX else taken(kind, body, packed)
            if isinstance(right, int):
                assert exchange.status == right
                assert keeper.kept["events"] == []
            else:
                assert exchange.status == 202
                assert keeper.kept["events"] == right
            keeper.kept["events"].clear()
            assert door.inside == 0

    told(story)
