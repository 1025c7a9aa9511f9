"""The client for producing and consuming: librdkafka, told in Kafka's own property names.

Most names are the same on both sides. The rest is translated here; what only makes sense in Java (serializer
classes and the like) is dropped, and a name nobody knows is dropped with a warning, as Kafka's clients do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.cli.tool import ToolError, warn

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

T = TypeVar("T")

_RENAMED = {
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "max.request.size": "message.max.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
}
#: Known to Kafka's Java clients, without a counterpart or handled by the tools themselves.
_DROPPED = frozenset(
    {
        "bootstrap.controllers",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.class",
        "ssl.keystore.type",
        "ssl.truststore.type",
        "value.deserializer",
        "value.serializer",
    }
)
_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
_JAAS = re.compile(r'username="?(?P<username>[^"\s;]*)"?\s+password="?(?P<password>[^"\s;]*)"?')


def translate(properties: Mapping[str, str]) -> dict[str, Any]:
    """Kafka's properties as librdkafka wants them."""
    settings: dict[str, Any] = {"log_level": 0}
    for name, value in properties.items():
        if name in _DROPPED:
            continue
        if name == "buffer.memory":
            settings["queue.buffering.max.kbytes"] = max(1, int(value) // 1024)
        elif name == "partition.assignment.strategy":
            assignors = (item.strip().rpartition(".")[2] for item in value.split(","))
            settings[name] = ",".join(_ASSIGNORS.get(item, item) for item in assignors)
        elif name == "sasl.jaas.config":
            settings.update(_credentials(value))
        else:
            settings[_RENAMED.get(name, name)] = value
    return settings


def _credentials(jaas: str) -> dict[str, str]:
    match = _JAAS.search(jaas)
    if match is None:
        raise ToolError('sasl.jaas.config: expected ... required username="..." password="...";')
    return {"sasl.username": match["username"], "sasl.password": match["password"]}


def open_producer(properties: Mapping[str, str], **callbacks: Callable[..., None]) -> Producer:
    """A producer that spreads keys over partitions as Kafka's own does."""
    confluent_kafka = _load()
    settings = {"partitioner": "murmur2_random", **translate(properties), **callbacks}
    producer: Producer = _create(confluent_kafka.Producer, settings)
    return producer


def open_consumer(properties: Mapping[str, str], **callbacks: Callable[..., None]) -> Consumer:
    """A consumer that, as Kafka's own, shows uncommitted records unless told otherwise."""
    confluent_kafka = _load()
    settings = {"isolation.level": "read_uncommitted", **translate(properties), **callbacks}
    consumer: Consumer = _create(confluent_kafka.Consumer, settings)
    return consumer


def _load() -> Any:
    try:
        import confluent_kafka
    except ImportError as error:
        raise ToolError(f"librdkafka is needed here: pip install confluent-kafka ({error})") from error
    return confluent_kafka


def _create(factory: Callable[[dict[str, Any]], T], settings: dict[str, Any]) -> T:
    """Make a client, leaving out names that librdkafka does not know."""
    from confluent_kafka import KafkaException

    while True:
        try:
            return factory(settings)
        except (KafkaException, ValueError, TypeError) as error:
            sentence = error.args[0].str() if isinstance(error, KafkaException) else str(error)
            unknown = re.search(r'No such configuration property: "([^"]+)"', sentence)
            if unknown is None or unknown[1] not in settings:
                raise ToolError(f"The client cannot be configured like this: {sentence}") from error
            warn(f"Warning: the configuration '{unknown[1]}' is not known here and is ignored.")
            del settings[unknown[1]]


def describe_error(error: Any) -> str:
    """An error of librdkafka as a sentence."""
    return f"{error.str()} ({error.name()})"
