"""A batch has one verdict: the sink's state before the records' faults, and both in words."""

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.outcome import Outcome
from tidegate.spooler.sinks.kafka_answer import judged
from tidegate.spooler.sinks.sink import DELIVERED, Sent

STARVED = (KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
POISON = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP)
LATE = (KafkaError._PURGE_INFLIGHT, KafkaError._MSG_TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)
STATE = (KafkaError._TRANSPORT, KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._ALL_BROKERS_DOWN)
ANY = (*STARVED, *POISON, *LATE, *STATE, KafkaError.THROTTLING_QUOTA_EXCEEDED)


def verdict(*codes: int, throttled: int = 0, last: str = "") -> Sent:
    return judged({code: f"words of {code}" for code in codes}, throttled, last)


def test_no_error_is_delivered() -> None:
    assert verdict() is DELIVERED
    assert verdict(throttled=5) == DELIVERED._replace(throttled=5)


@pytest.mark.parametrize("code", STARVED)
def test_too_few_replicas_are_starvation(code: int) -> None:
    assert verdict(code, throttled=3) == Sent(
        Outcome.OVERLOADED, f"words of {code}", starved=True, throttled=3
    )


@pytest.mark.parametrize("code", POISON)
def test_a_fault_of_the_records_is_poison(code: int) -> None:
    assert verdict(code) == Sent(Outcome.FAILURE, f"words of {code}", poison=True)


@pytest.mark.parametrize("code", LATE)
def test_time_that_has_passed_is_told_with_what_the_client_last_said(code: int) -> None:
    assert verdict(code) == Sent(Outcome.TIMEOUT, "no answer in time")
    assert verdict(code, last="refused").why == "no answer in time (refused)"


@pytest.mark.parametrize("code", STATE)
def test_what_may_be_put_right_is_no_poison(code: int) -> None:
    assert verdict(code) == Sent(Outcome.FAILURE, f"words of {code}")


@given(st.lists(st.sampled_from(ANY), min_size=1, unique=True))
def test_of_several_errors_the_state_of_the_sink_goes_first(codes: list[int]) -> None:
    said = verdict(*codes)
    assert said.outcome is not Outcome.SUCCESS
    assert said.starved == any(code in STARVED for code in codes)
    assert said.poison == all(code in POISON for code in codes)
    assert not (said.poison and said.starved)
    assert said.why
