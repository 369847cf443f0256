"""What does Kafka's answer to a batch mean for the lane?

Every record of a batch is answered for itself. The lane wants one word: it goes by the worst that
is the sink's state, and only when all that went wrong is wrong with the records is it poison.
"""

from collections.abc import Mapping
from typing import Final

from tidegate.core.outcome import FAILURE, OVERLOADED, TIMEOUT
from tidegate.errors import missing_extra
from tidegate.spooler.sinks.sink import DELIVERED, Sent
from tidegate.units import Duration

try:
    from confluent_kafka import KafkaError
except ModuleNotFoundError as error:
    raise missing_extra(error, "kafka") from None

__all__ = ["judged"]

# The numbers of the protocol's error table; those below zero are the client's own.
_STARVED: Final = frozenset(
    {KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
)
_SHED: Final = frozenset({KafkaError.THROTTLING_QUOTA_EXCEEDED, KafkaError.KAFKA_STORAGE_ERROR})
_LATE: Final = frozenset(
    {
        KafkaError._PURGE_INFLIGHT,
        KafkaError._PURGE_QUEUE,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
# What a broker says of these records whatever its health: too large, malformed, from a time that
# the topic does not take, without the key that a compacted topic needs.
_POISON: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_RECORD,
        KafkaError._INVALID_DIFFERENT_RECORD,
        KafkaError.INVALID_TIMESTAMP,
    }
)


def judged(errors: Mapping[int, str], throttled: Duration, last_error: str) -> Sent:
    """What became of a batch, by the codes of the errors that its records met.

    `errors` gives for each code its words; `last_error` what the client last said of its
    connections, shown where the codes only say that time has passed.
    """
    if not errors:
        return DELIVERED._replace(throttled=throttled) if throttled else DELIVERED
    for codes, outcome in ((_STARVED, OVERLOADED), (_SHED, OVERLOADED), (_LATE, TIMEOUT)):
        code = next((code for code in errors if code in codes), None)
        if code is not None:
            why = _late(last_error) if codes is _LATE else errors[code]
            return Sent(outcome, why, starved=codes is _STARVED, throttled=throttled)
    states = [code for code in errors if code not in _POISON]
    code = next(iter(states or errors))
    return Sent(FAILURE, errors[code], poison=not states, throttled=throttled)


def _late(last_error: str) -> str:
    return f"no answer in time ({last_error})" if last_error else "no answer in time"
