"""How do records reach a Kafka topic without the client making a storm of its own?

A Kafka client keeps what it was given and sends all of it again at each retry; when a topic has too
few replicas, its bytes on the wire grow by the second (12 times the normal rate within 14 s, with
the usual settings). So here the client holds one batch and no more, tries it twice, and gives it
back. After a failure one record goes ahead, and the rest follow when that one was taken. What of a
failed batch was taken is remembered and not sent again with its next try.

The client's threads are its own; its blocking calls run in one thread of ours for each sink.
"""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, final

from tidegate.core.health import Health
from tidegate.errors import SettingsError, missing_extra
from tidegate.spooler.record import Batch, Record
from tidegate.spooler.sinks.kafka_address import SECRETS, KafkaAddress, kafka_address
from tidegate.spooler.sinks.kafka_answer import judged
from tidegate.spooler.sinks.kafka_wire import KafkaWire
from tidegate.spooler.sinks.sink import Sent
from tidegate.units import MILLISECOND, SECOND, Duration

try:
    from confluent_kafka import KafkaError, KafkaException, Message, Producer, ThrottleEvent
except ModuleNotFoundError as error:
    raise missing_extra(error, "kafka") from None

__all__ = ["KafkaSink"]

_ID: Final = "tidegate-id"
_WORDS_MAX: Final = 200  # characters of what a client says of its connections
_TAKEN_MAX: Final = 100_000  # numbers of records, about 8 MB; past it duplicates instead of memory
_AFTERWARDS_S: Final = 1.0  # for the reports on what was purged, which come at once

_FIXED: Final[dict[str, str | int | bool]] = {
    "acks": "all",
    "enable.idempotence": True,  # the second try of a batch is not appended a second time
    "message.send.max.retries": 1,
    "retry.backoff.ms": 200,
    "retry.backoff.max.ms": 2000,
    "message.timeout.ms": 0,  # time is kept here, for each batch by itself
    "linger.ms": 1000,  # a batch is flushed as a whole, so none goes off half full
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 131_072,  # twice the largest batch
    "log_level": 0,  # its words come through `error_cb`
}
_DEFAULT: Final = {
    "partitioner": "murmur2_random",  # a key is on the partition where Java's clients put it
    "message.max.bytes": "1048576",  # a broker's max.message.bytes, less its 12 of overhead
}


_Headers = list[tuple[str, str | bytes | None]]


@final
class KafkaSink:
    """Delivers to one topic, `acks=all`.

    `to` is a lane's address (`kafka_address`), `base` the folder that paths in it are relative to.
    `sender` is who sends (collector and lane): with its number a record has the id
    `SENDER/NUMBER` in the header `tidegate-id`. `agent` is the `client.id`, by which a broker's
    quotas and metrics can tell live records and replay apart. Raises `SettingsError` for an address
    that the client does not take, `InputError` for a file that cannot be read.
    """

    __slots__ = (
        "_address",
        "_agent",
        "_attempt",
        "_closed",
        "_last_error",
        "_producer",
        "_sender",
        "_taken",
        "_throttled",
        "_wary",
        "_wire",
        "_worker",
    )

    def __init__(self, to: str, *, sender: str, agent: str, base: Path = Path()) -> None:
        self._address: Final = kafka_address(to, base)
        self._sender: Final = sender
        self._agent: Final = agent
        self._taken: set[int] = set()  # acknowledged, but of a batch that failed as a whole
        self._last_error = ""
        self._throttled: Duration = 0
        self._wary = False
        self._attempt = _Attempt(0.0)
        self._closed = False
        try:
            self._wire: Final = KafkaWire(self._address, agent)
            self._producer: Producer | None = self._made()
        except (KafkaException, OSError, ValueError) as error:
            raise SettingsError(
                f"the Kafka client does not take this: {_without_secrets(error, self._address)}",
                path=("to",),
            ) from None
        self._worker: Final = ThreadPoolExecutor(1, thread_name_prefix=agent)

    async def send(self, batch: Batch, timeout: Duration) -> Sent:
        """Deliver all of it, or say why not; what is left over after `timeout` is purged.

        When the task is cancelled the batch is given up at once; some of it may have gone.
        """
        assert not self._closed, "the sink is closed"
        attempt = self._attempt = _Attempt(time.monotonic() + timeout / SECOND)
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._worker, self._deliver, batch, attempt)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self._give_up()
            raise

    async def health(self, timeout: Duration) -> Health:
        """What each of the address's servers says of the cluster, asked for itself, all at once."""
        servers = self._address.servers
        asking = [asyncio.ensure_future(self._wire.ask(server)) for server in servers]
        try:
            await asyncio.wait(asking, timeout=timeout / SECOND)
        finally:
            for task in asking:
                task.cancel()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        said = [None if isinstance(answer, BaseException) else answer for answer in answers]
        return Health(
            tuple(view for view in said if view is not None),
            tuple(name for name, view in zip(servers, said, strict=True) if view is None),
        )

    async def close(self) -> None:
        """Give up what is on its way and end the client with its threads."""
        if self._closed:
            return
        self._closed = True
        self._give_up()
        await self._wire.close()
        await asyncio.get_running_loop().run_in_executor(self._worker, self._retire)
        self._worker.shutdown()

    def _give_up(self) -> None:
        self._attempt.given_up = True
        producer = self._producer
        if producer is not None:
            producer.purge(blocking=False)

    # From here on in the thread of the sink, one call at a time.

    def _deliver(self, batch: Batch, attempt: "_Attempt") -> Sent:
        self._throttled = 0
        left = [
            (number, record)
            for number, record in enumerate(batch.records, batch.first)
            if number not in self._taken
        ]
        if self._wary:
            self._push(left[:1], attempt)
            del left[:1]
        if not attempt.errors:
            self._push(left, attempt)
        sent = judged(attempt.errors, self._throttled, self._last_error)
        self._wary = bool(attempt.errors) and not sent.poison
        if not attempt.errors:
            self._last_error = ""
            self._taken.difference_update(range(batch.first, batch.last + 1))
        elif attempt.fatal or not (sent.poison or sent.starved):
            self._retire()  # it is not asked to find its feet again
        return sent

    def _push(self, records: list[tuple[int, Record]], attempt: "_Attempt") -> None:
        """Hand these to the client and wait until each was taken or refused."""
        producer = self._producer
        if producer is None:
            producer = self._producer = self._made()
        for number, record in records:
            if not self._hand_over(producer, number, record, attempt):
                break
        if attempt.flush(producer):
            producer.purge(blocking=False)
            producer.flush(_AFTERWARDS_S)

    def _hand_over(
        self, producer: Producer, number: int, record: Record, attempt: "_Attempt"
    ) -> bool:
        """Whether there is more to be asked of this attempt."""
        report = partial(self._on_delivery, attempt, number)
        headers: _Headers = [(_ID, f"{self._sender}/{number}".encode())]
        while not attempt.given_up:
            try:
                producer.produce(
                    self._address.topic,
                    record.value,
                    record.key or None,
                    on_delivery=report,
                    timestamp=record.time // MILLISECOND,
                    headers=headers,
                )
            except BufferError:
                if not attempt.flush(producer):
                    continue
            except KafkaException as error:
                attempt.note(error.args[0])
                return not attempt.fatal
            else:
                return True
            break
        attempt.note(KafkaError(KafkaError._PURGE_QUEUE))
        return False

    def _on_delivery(
        self, attempt: "_Attempt", number: int, error: KafkaError | None, _: Message
    ) -> None:
        if error is not None:
            attempt.note(error)
            return
        if len(self._taken) >= _TAKEN_MAX:
            self._taken.clear()
        self._taken.add(number)

    def _on_error(self, error: KafkaError) -> None:
        self._last_error = error.str()[:_WORDS_MAX]

    def _on_throttle(self, event: ThrottleEvent) -> None:
        self._throttled = max(self._throttled, round(event.throttle_time * SECOND))

    def _made(self) -> Producer:
        return Producer(
            {
                **_DEFAULT,
                **self._address.properties,
                **_FIXED,
                "bootstrap.servers": ",".join(self._address.servers),
                "client.id": self._agent,
                "error_cb": self._on_error,
                "throttle_cb": self._on_throttle,
            }
        )

    def _retire(self) -> None:
        self._producer = None  # the client ends with its last reference


@final
class _Attempt:
    """One try of one batch: until when, what went wrong, and whether somebody has called it off."""

    __slots__ = ("_until", "errors", "fatal", "given_up")

    def __init__(self, until: float) -> None:
        self._until: Final = until
        self.errors: dict[int, str] = {}
        self.fatal = False
        self.given_up = False

    def note(self, error: KafkaError) -> None:
        self.errors.setdefault(error.code(), error.str())
        self.fatal = self.fatal or error.fatal()

    def flush(self, producer: Producer) -> int:
        """Wait for what the client holds; how much of it is left when the time is over."""
        return producer.flush(max(0.0, self._until - time.monotonic()))


def _without_secrets(error: Exception, address: KafkaAddress) -> str:
    said = error.args[0] if error.args else error
    text = said.str() if isinstance(said, KafkaError) else str(error)
    for name in SECRETS:
        if value := address.properties.get(name):
            text = text.replace(value, "...")
    return text
