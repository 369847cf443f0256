"""What does `kafka://HOST:PORT,HOST:PORT/TOPIC?property=value` mean, and what may it set?

The brokers to begin with, the topic, and a few of the client's properties under the client's own
names: how to get in, how to pack, how to choose a partition. What makes a delivery safe (acks,
idempotence, retries) is not for a URL to change. Whoever must not be read over a shoulder lives in
a file: `?config=FILE`, lines of `name = value` as in Kafka's own property files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, final
from urllib.parse import parse_qsl, unquote

from tidegate.errors import InputError, SettingsError, nearest

__all__ = ["PROPERTIES", "SECRETS", "KafkaAddress", "kafka_address"]

_PORT: Final = 9092  # what Kafka listens on by default
_TOPIC_MAX: Final = 249  # Kafka's own limit, and its letters
_TOPIC_LETTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)
_FILE_MAX: Final = 64 * 1024
_WHOLE: Final = "a whole number of bytes"
_PATH: Final = "the path of a file"

PROPERTIES: Final[Mapping[str, tuple[str, ...] | str]] = {
    "security.protocol": ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
    "sasl.mechanism": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    "ssl.ca.location": _PATH,
    "ssl.certificate.location": _PATH,
    "ssl.key.location": _PATH,
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "partitioner": ("murmur2_random", "consistent_random", "fnv1a_random", "random"),
    "batch.size": _WHOLE,
    "message.max.bytes": _WHOLE,
}
"""What a URL or a file may set: the words that are allowed, or what kind of value it takes."""

SECRETS: Final = ("sasl.username", "sasl.password", "ssl.key.password")
"""What only a file may set."""


@final
class KafkaAddress:
    """Where a lane's records go. Its text form shows nothing of the properties.

    `servers` are `host:port`, as many as were given; `properties` are the client's, with paths that
    no longer depend on the folder of the file. Some of their values are secrets (`SECRETS`).
    """

    __slots__ = ("properties", "servers", "topic")

    def __init__(self, servers: tuple[str, ...], topic: str, properties: dict[str, str]) -> None:
        self.servers: Final = servers
        self.topic: Final = topic
        self.properties: Final = properties

    def __repr__(self) -> str:
        return f"KafkaAddress({','.join(self.servers)}/{self.topic})"

    @property
    def encrypted(self) -> bool:
        """Whether TLS is spoken."""
        return self.properties.get("security.protocol", "plaintext").endswith("ssl")

    @property
    def authenticated(self) -> bool:
        """Whether a name and a password are asked for."""
        return self.properties.get("security.protocol", "plaintext").startswith("sasl")


def kafka_address(to: str, base: Path) -> KafkaAddress:
    """The parts of a lane's `to`. `base` is the folder that paths are relative to.

    Raises `SettingsError` for what the URL gets wrong, `InputError` for the file that it names.
    """
    scheme, _, rest = to.partition("://")
    if scheme != "kafka":
        raise _refuse("kafka://HOST:PORT/TOPIC")
    place, _, query = rest.partition("?")
    hosts, _, topic = place.partition("/")
    if "@" in hosts:
        raise _refuse("no name or password before the hosts: a file that ?config= names has those")
    servers = tuple(_server(host) for host in hosts.split(","))
    topic = unquote(topic)
    if not (0 < len(topic) <= _TOPIC_MAX and set(topic) <= _TOPIC_LETTERS and topic.strip(".")):
        raise _refuse("kafka://HOST:PORT/TOPIC with a topic of letters, digits, '.', '_' and '-'")
    written = dict(parse_qsl(query, keep_blank_values=True))
    config = written.pop("config", None)
    for name in written:
        if name in SECRETS:
            raise _refuse(f"{name} in a file that ?config= names, never in the URL itself")
        _known(name, tuple(PROPERTIES))
    in_file = {} if config is None else _read(base / config)
    return KafkaAddress(servers, topic, _checked(in_file | written, base))


def _refuse(expected: str) -> SettingsError:
    # Without what was found: it may hold a secret that somebody put into the wrong place.
    return SettingsError(f"expected {expected}", path=("to",), expected=expected)


def _known(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise SettingsError(
            f"a Kafka address sets no {name!r}{nearest(name, known)}",
            path=("to",),
            expected=f"one of {', '.join(known)}",
        )


def _server(host: str) -> str:
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):  # an IPv6 address in brackets has colons of its own
        name, port = host, str(_PORT)
    if ":" in name and not (name.startswith("[") and name.endswith("]")):
        raise _refuse("an IPv6 address in brackets, as [::1]:9092")
    if not name or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise _refuse("kafka://HOST:PORT,HOST:PORT/TOPIC with a port from 1 to 65535")
    return f"{name}:{int(port)}"


def _read(path: Path) -> dict[str, str]:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_FILE_MAX + 1)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise InputError(f"cannot read {path}: {reason}") from None
    if len(text) > _FILE_MAX:
        raise InputError(f"{path} is longer than {_FILE_MAX:,} characters")
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith(("#", "!")):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals:
            raise InputError(f"{path}:{number}: expected name = value")
        try:
            _known(name, (*PROPERTIES, *SECRETS))
        except SettingsError as error:
            raise InputError(f"{path}:{number}: {error.message}") from None
        found[name] = value
    return found


def _checked(properties: dict[str, str], base: Path) -> dict[str, str]:
    for name, value in properties.items():
        rule = PROPERTIES.get(name)
        if isinstance(rule, tuple):
            by_small = {word.lower(): word for word in rule}
            if value.lower() not in by_small:
                raise _refuse(f"{name} as one of {', '.join(rule)}")
            properties[name] = by_small[value.lower()]
        elif rule is _WHOLE and not (value.isascii() and value.isdigit() and int(value) >= 1000):
            raise _refuse(f"{name} as {_WHOLE} from 1,000")
        elif rule is _PATH:
            properties[name] = str(base / value)
    _complete(properties)
    return properties


def _complete(properties: dict[str, str]) -> None:
    with_name = properties.get("security.protocol", "plaintext").startswith("sasl")
    for name in ("sasl.mechanism", "sasl.username", "sasl.password"):
        if with_name and not properties.get(name):
            raise _refuse(f"{name} beside security.protocol={properties['security.protocol']}")
        if not with_name and name in properties:
            raise _refuse(f"security.protocol of sasl_ssl or sasl_plaintext beside {name}")
    if not properties.get("security.protocol", "plaintext").endswith("ssl"):
        stray = next((name for name in properties if name.startswith("ssl.")), None)
        if stray is not None:
            raise _refuse(f"security.protocol of ssl or sasl_ssl beside {stray}")
