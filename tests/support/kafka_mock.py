"""A Kafka cluster of the client library's own making, in this process, that fails as it is told.

The library carries an imitation of the brokers for its own tests; it starts in 50 ms. It answers
metadata, produce and fetch requests, with errors from a queue if one is filled, and its brokers can
be taken down. It has no replication: replicas are always in step, and nothing is throttled.

In front of each broker stands a relay that counts the bytes which clients send, and which can stop
passing any on, as a broker does that is frozen.
"""

import ctypes
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Final

import confluent_kafka
from confluent_kafka import Consumer, TopicPartition

PRODUCE: Final = 0  # the request's number in Kafka's protocol
METADATA: Final = 3
NOT_ENOUGH_REPLICAS: Final = 19
_PRODUCER: Final = 0  # rd_kafka_type_t


class MockMissingError(Exception):
    """The client library here carries no imitation of brokers; the message says why."""


class KafkaMock:
    """`brokers` of them, numbered from 1. Topics have as many partitions as is asked for."""

    def __init__(self, brokers: int, relays: dict[int, "Relay"]) -> None:
        self._lib = _library()
        self.relays = relays
        error = ctypes.create_string_buffer(512)
        conf = ctypes.c_void_p(self._lib.rd_kafka_conf_new())
        self._lib.rd_kafka_conf_set(conf, b"log_level", b"0", error, ctypes.c_size_t(512))
        handle = self._lib.rd_kafka_new(_PRODUCER, conf, error, ctypes.c_size_t(512))
        self._handle = ctypes.c_void_p(handle)
        self._cluster = ctypes.c_void_p(
            self._lib.rd_kafka_mock_cluster_new(self._handle, ctypes.c_int(brokers))
        )
        real = self._lib.rd_kafka_mock_cluster_bootstraps(self._cluster).decode().split(",")
        for (node, relay), address in zip(relays.items(), real, strict=True):
            relay.target = ("127.0.0.1", int(address.rpartition(":")[2]))
            self._lib.rd_kafka_mock_broker_set_host_port(
                self._cluster, ctypes.c_int32(node), b"127.0.0.1", ctypes.c_int(relay.port)
            )

    @property
    def addresses(self) -> list[str]:
        return [f"127.0.0.1:{relay.port}" for relay in self.relays.values()]

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses)

    @property
    def sent(self) -> int:
        """Bytes that clients have sent to the brokers, all of them together."""
        return sum(relay.sent for relay in self.relays.values())

    def create_topic(self, name: str, partitions: int = 3) -> None:
        """Partition 0 is led by broker 1, and so on around."""
        self._did(
            self._lib.rd_kafka_mock_topic_create(
                self._cluster, name.encode(), ctypes.c_int(partitions), ctypes.c_int(3)
            )
        )

        for number in range(partitions):
            node = number % len(self.relays) + 1
            self._did(
                self._lib.rd_kafka_mock_partition_set_leader(
                    self._cluster, name.encode(), ctypes.c_int32(number), ctypes.c_int32(node)
                )
            )

    def fail(self, request: int, *errors: int) -> None:
        """The next requests of this kind are answered with these errors, one each."""
        array = (ctypes.c_int * len(errors))(*errors)
        self._lib.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(request), ctypes.c_size_t(len(errors)), array
        )

    def fail_partition(self, topic: str, partition: int, *errors: int) -> None:
        """The next batches for this partition are answered with these errors, one each."""
        for error in errors:
            self._did(
                self._lib.rd_kafka_mock_partition_push_request_errors(
                    self._cluster, topic.encode(), ctypes.c_int32(partition),
                    ctypes.c_int16(PRODUCE), ctypes.c_size_t(1), ctypes.c_int(error),
                )
            )  # fmt: skip

    def heal(self, request: int = PRODUCE) -> None:
        self._lib.rd_kafka_mock_clear_request_errors(self._cluster, ctypes.c_int16(request))

    def down(self, node: int) -> None:
        self._did(self._lib.rd_kafka_mock_broker_set_down(self._cluster, ctypes.c_int32(node)))

    def up(self, node: int) -> None:
        self._did(self._lib.rd_kafka_mock_broker_set_up(self._cluster, ctypes.c_int32(node)))

    def records(self, topic: str, partitions: int = 3) -> list[Any]:
        """All messages of the topic, partition by partition, in their order there."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "look", "log_level": 0}
        consumer = Consumer({**settings, "fetch.wait.max.ms": 10})
        found = []
        try:
            for number in range(partitions):
                place = TopicPartition(topic, number)
                _, end = consumer.get_watermark_offsets(place, timeout=5)
                consumer.assign([TopicPartition(topic, number, 0)])
                until, got = time.monotonic() + 10, 0
                while got < end and time.monotonic() < until:
                    message = consumer.poll(0.1)
                    if message is not None and message.error() is None:
                        found.append(message)
                        got += 1
        finally:
            consumer.close()
        return found

    def close(self) -> None:
        self._lib.rd_kafka_mock_cluster_destroy(self._cluster)
        self._lib.rd_kafka_destroy(self._handle)

    def _did(self, error: int) -> None:
        assert error == 0, f"the mock cluster answered {error}"


class Relay:
    """Passes bytes between clients and one broker. `sent` counts those towards the broker."""

    def __init__(self) -> None:
        self.target: tuple[str, int] = ("", 0)
        self.sent = 0
        self._frozen = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._selector = DefaultSelector()
        self._selector.register(self._listening, EVENT_READ, None)
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._thread.start()

    def freeze(self) -> None:
        """Pass nothing on, and keep everything open."""
        self._frozen.set()

    def thaw(self) -> None:
        self._frozen.clear()

    def close(self) -> None:
        self._ending = True
        self._thread.join(5)

    def _run(self) -> None:
        while not self._ending:
            if self._frozen.is_set():
                time.sleep(0.01)
                continue
            for key, _ in self._selector.select(0.02):
                if key.data is None:
                    self._accept()
                else:
                    self._pass_on(key.fileobj, key.data)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _accept(self) -> None:
        client, _ = self._listening.accept()
        try:
            broker = socket.create_connection(self.target, timeout=1)
        except OSError:
            client.close()
            return
        broker.settimeout(10)
        client.settimeout(10)
        self._selector.register(client, EVENT_READ, (broker, True))
        self._selector.register(broker, EVENT_READ, (client, False))

    def _pass_on(self, source: Any, data: tuple[socket.socket, bool]) -> None:
        target, upwards = data
        if source.fileno() < 0:  # closed together with its other end, a moment ago
            return
        piece = b""
        with suppress(OSError):
            piece = source.recv(1 << 18)
            target.sendall(piece)
        if upwards:
            self.sent += len(piece)
        if not piece:
            for end in (source, target):
                with suppress(KeyError):
                    self._selector.unregister(end)
                end.close()


def _library() -> Any:
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    found = sorted(folder.glob("librdkafka*"))
    if not found:
        raise MockMissingError(f"there is no library of the Kafka client in {folder}")
    library = ctypes.CDLL(str(found[0]))
    if not hasattr(library, "rd_kafka_mock_cluster_new"):
        raise MockMissingError("the library of the Kafka client keeps its mock cluster to itself")
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return library


@contextmanager
def kafka_mock(brokers: int = 3) -> Iterator[KafkaMock]:
    """A cluster that ends with the block. Raises `MockMissingError`."""
    _library()
    with ExitStack() as stack:
        relays = {node: Relay() for node in range(1, brokers + 1)}
        for relay in relays.values():
            stack.callback(relay.close)
        mock = KafkaMock(brokers, relays)
        stack.callback(mock.close)
        yield mock
