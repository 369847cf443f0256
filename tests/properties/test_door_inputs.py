"""Whatever is sent to the door: it is kept exactly or refused as a whole, and nothing breaks."""

from random import Random

import pytest
from door_inputs import KINDS, check, judged, made, taken
from hypothesis import given
from hypothesis import strategies as st


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
