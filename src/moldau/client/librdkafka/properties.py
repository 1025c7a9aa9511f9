"""Create librdkafka clients from Kafka's property names.

Most names are the same. The others are translated here, those about security in `security`; names that only
Java's clients use are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaException

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.librdkafka.security import explain, is_about_security, translate_security

T = TypeVar("T")

_RENAMED = {
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "max.request.size": "message.max.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
}
#: Switches spans of OpenTelemetry on; ours, not Kafka's.
TRACING = "enable.tracing"
#: Configs of Kafka's Java clients that librdkafka does not have, or that are handled in Python.
_DROPPED = frozenset(
    {
        TRACING,
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
        "value.deserializer",
        "value.serializer",
    }
)
#: Configs of a schema registry and of its serializers.
_OF_A_REGISTRY = (
    "auto.register.schemas",
    "avro.",
    "basic.auth.",
    "bearer.auth.",
    "context.name.strategy",
    "derive.type",
    "execution.environment",
    "id.compatibility.strict",
    "json.",
    "key.schema.id.",
    "key.subject.name.strategy",
    "latest.cache.",
    "latest.compatibility.strict",
    "max.schemas.per.subject",
    "normalize.schemas",
    "propagate.schema.tags",
    "proxy.",
    "reference.lookup.only",
    "reference.subject.name.strategy",
    "request.header.",
    "rule.",
    "schema.",
    "skip.known.types",
    "specific.",
    "subject.name.strategy",
    "type.property",
    "use.deprecated.format",
    "use.latest.",
    "use.schema.",
    "validate.",
    "validation.rules.",
    "value.schema.id.",
    "value.subject.name.strategy",
)
_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def translate(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Translate Kafka's properties into librdkafka's."""
    settings: dict[str, Any] = {"log_level": 0, **translate_security(properties)}
    for name, value in properties.items():
        if name in _DROPPED or is_about_security(name) or name.startswith(_OF_A_REGISTRY):
            continue
        if name == "buffer.memory":
            settings["queue.buffering.max.kbytes"] = max(1, int(value) // 1024)
        elif name == "partition.assignment.strategy":
            assignors = (item.strip().rpartition(".")[2] for item in value.split(","))
            settings[name] = ",".join(_ASSIGNORS.get(item, item) for item in assignors)
        else:
            settings[_RENAMED.get(name, name)] = value
    return settings


def is_traced(properties: Mapping[str, Any]) -> bool:
    return str(properties.get(TRACING, False)).strip().lower() == "true"


def create(
    factory: Callable[[dict[str, Any]], T], settings: dict[str, Any], on_unknown: Callable[[str], None]
) -> T:
    """Create a client; unknown names are left out, because Kafka's clients only warn about them."""
    while True:
        try:
            return factory(settings)
        except (KafkaException, ValueError, TypeError) as error:
            sentence = error.args[0].str() if isinstance(error, KafkaException) else str(error)
            unknown = re.search(r'No such configuration property: "([^"]+)"', sentence)
            if unknown is None or unknown[1] not in settings:
                raise KafkaError(ErrorCode.INVALID_CONFIG, explain(sentence)) from error
            on_unknown(unknown[1])
            del settings[unknown[1]]
