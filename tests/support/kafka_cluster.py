"""Three real brokers of Apache Kafka on the loopback, for what no imitation can show.

Only Kafka itself takes a replica out of step when a broker freezes. Java must be on the machine;
the classpath is resolved once by Maven into $TIDEGATE_KAFKA_HOME or ~/.cache/tidegate-tests/kafka,
never into the repository. What is missing raises `KafkaMissingError` with the reason, for a skip.
"""

import datetime as dt
import ipaddress
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from ports import free_port

VERSION: Final = "4.3.1"  # runs on Java 17
_CLUSTER: Final = "TideGateTideGateTideGQ"  # 16 bytes in base64, as a cluster's id must be
_LOOPBACK: Final = ipaddress.ip_address("127.0.0.1")
_START_S: Final = 90
USER: Final = "spool"
PASSWORD: Final = "pencil"  # of nobody: it lives as long as the test
# Little heap and no second compiler: three of them share the machine with the tests.
_JVM: Final = ("-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

_POM: Final = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>kafka-home</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
    <version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""

# Failures show within seconds: 2 s until a replica counts as behind, 3 s until a broker is fenced.
_PROPERTIES: Final = f"""
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain\\
.PlainLoginModule required user_{USER}="{PASSWORD}";
listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram\\
.ScramLoginModule required;
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram\\
.ScramLoginModule required;
ssl.keystore.type=PEM
process.roles=broker,controller
controller.listener.names=CONTROLLER
auto.create.topics.enable=false
default.replication.factor=3
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
min.insync.replicas=2
replica.lag.time.max.ms=2000
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
controller.quorum.election.timeout.ms=1000
controller.quorum.fetch.timeout.ms=2000
group.initial.rebalance.delay.ms=0
num.network.threads=2
num.io.threads=4
offsets.topic.num.partitions=3
transaction.state.log.num.partitions=3
"""


class KafkaMissingError(Exception):
    """Kafka cannot run here; the message says what is missing."""


class KafkaCluster:
    """The brokers 1, 2 and 3, each a process with a port and a directory of its own."""

    def __init__(self, jars: Path, directory: Path) -> None:
        self._classpath = f"{jars}/*"
        self._directory = directory
        self._ports = {node: free_port() for node in (1, 2, 3)}
        self._secured = {node: free_port() for node in (1, 2, 3)}
        self._voted = {node: free_port() for node in (1, 2, 3)}
        self._voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in self._voted.items())
        self.authority = directory / "ca.pem"
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def addresses(self) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self._ports.values()]

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses)

    @property
    def secured(self) -> str:
        """The same brokers where they speak TLS and want a name and a password."""
        return ",".join(f"127.0.0.1:{port}" for port in self._secured.values())

    def start(self) -> None:
        _certify(self.authority, self._directory / "broker.pem")
        formatting = [
            self._java("kafka.tools.StorageTool", node, *_format_of(self._configure(node)))
            for node in self._ports
        ]
        if any(process.wait(_START_S) for process in formatting):
            raise KafkaMissingError(f"Kafka did not format its directories: {self.log(1)[-300:]}")
        for node in self._ports:
            self.start_broker(node)
        self._await_all()

    def start_broker(self, node: int) -> None:
        self._processes[node] = self._java("kafka.Kafka", node, str(self._file(node)))

    def freeze(self, node: int) -> None:
        self._processes[node].send_signal(signal.SIGSTOP)

    def thaw(self, node: int) -> None:
        self._processes[node].send_signal(signal.SIGCONT)

    def kill(self, node: int) -> None:
        process = self._processes.pop(node)
        process.kill()
        process.wait(10)

    def close(self) -> None:
        for node in list(self._processes):
            self.kill(node)

    def log(self, node: int) -> str:
        return (self._directory / f"{node}.log").read_text(errors="replace")

    def create_topic(self, name: str, partitions: int = 3, **settings: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        config = {key.replace("_", "."): value for key, value in settings.items()}
        made = admin.create_topics([NewTopic(name, partitions, 3, config=config)])
        made[name].result(30)

    def _file(self, node: int) -> Path:
        return self._directory / f"{node}.properties"

    def _configure(self, node: int) -> Path:
        controller = self._voted[node]
        open_to_all = (
            f"PLAINTEXT://127.0.0.1:{self._ports[node]},SECURE://127.0.0.1:{self._secured[node]}"
        )
        self._file(node).write_text(
            f"node.id={node}\n"
            f"controller.quorum.voters={self._voters}\n"
            f"listeners={open_to_all},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners={open_to_all}\n"
            f"ssl.keystore.location={self._directory / 'broker.pem'}\n"
            f"log.dirs={self._directory / str(node)}\n" + _PROPERTIES
        )
        return self._file(node)

    def _java(self, main: str, node: int, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._directory / f"{node}.log").open("ab") as log:
            return subprocess.Popen(
                ["java", *_JVM, "-cp", self._classpath, main, *arguments], stdout=log, stderr=log
            )

    def _await_all(self) -> None:
        until = time.monotonic() + _START_S
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        while time.monotonic() < until:
            for node, process in self._processes.items():
                if process.poll() is not None:
                    raise KafkaMissingError(f"broker {node} did not start: {self.log(node)[-300:]}")
            try:
                if len(admin.list_topics(timeout=1).brokers) == len(self._ports):
                    return
            except KafkaException:
                time.sleep(0.2)
        raise KafkaMissingError(f"Kafka was not ready within {_START_S} s")


def _certify(authority: Path, broker: Path) -> None:
    """A certificate for this machine that signs itself, and its key, for a day."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(_LOOPBACK)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.PEM)
    )
    authority.write_bytes(certificate)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    broker.write_bytes(secret + certificate)


def _format_of(properties: Path) -> tuple[str, ...]:
    scram = [
        part
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        for part in ("--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]")
    ]
    return ("format", "--cluster-id", _CLUSTER, "--config", str(properties), *scram)


def _jars() -> Path:
    if not shutil.which("java"):
        raise KafkaMissingError("there is no java")
    if home := os.environ.get("TIDEGATE_KAFKA_HOME"):
        found = Path(home) / "libs"
        if not found.is_dir():
            raise KafkaMissingError(f"there is no {found}")
        return found
    found = Path.home() / ".cache" / "tidegate-tests" / f"kafka-{VERSION}"
    if not found.is_dir():
        _resolve(found)
    return found


def _resolve(target: Path) -> None:
    if not shutil.which("mvn"):
        raise KafkaMissingError("there is no mvn to fetch Kafka with, nor TIDEGATE_KAFKA_HOME")
    target.parent.mkdir(parents=True, exist_ok=True)
    work = target.with_suffix(f".{os.getpid()}")
    work.mkdir()
    try:
        (work / "pom.xml").write_text(_POM)
        command = [
            "mvn",
            "-q",
            "-B",
            "-f",
            str(work / "pom.xml"),
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            f"-DoutputDirectory={work / 'libs'}",
        ]
        ran = subprocess.run(command, capture_output=True, timeout=300, check=False)
        if ran.returncode:
            raise KafkaMissingError("Maven could not fetch Kafka")
        (work / "libs").rename(target)
    except subprocess.TimeoutExpired:
        raise KafkaMissingError("Maven did not fetch Kafka within five minutes") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def kafka_cluster(directory: Path) -> Iterator[KafkaCluster]:
    """A running cluster; its processes end with the block. Raises `KafkaMissingError`."""
    cluster = KafkaCluster(_jars(), directory)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
