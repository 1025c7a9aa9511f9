"""Properties of the clients of a flow: which names are known, and how prefixes combine.

The more specific wins, as in MirrorMaker 2: `us->eu.consumer.x`, `us.consumer.x`, `us.x`, `consumer.x`, `x`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CLIENTS: Final = ("consumer", "producer", "admin")
_PREFIXES = ("ssl.", "sasl.", "security.")
#: Settings that clients here use, and those of Java's clients that have no effect on a copy of whole batches.
_USED = {
    *("bootstrap.servers", "client.id", "request.timeout.ms", "default.api.timeout.ms"),
    *("retry.backoff.ms", "retry.backoff.max.ms", "isolation.level", "auto.offset.reset"),
    *("fetch.max.bytes", "max.partition.fetch.bytes", "delivery.timeout.ms", "max.request.size"),
    *("buffer.memory", "transaction.timeout.ms"),
}
WITHOUT_EFFECT: Final = frozenset(
    {
        *("acks", "batch.size", "linger.ms", "compression.type", "enable.idempotence", "retries"),
        *("max.in.flight.requests.per.connection", "max.block.ms", "partitioner.class"),
        *("compression.gzip.level", "compression.lz4.level", "compression.zstd.level"),
        *("max.poll.records", "max.poll.interval.ms", "fetch.min.bytes", "fetch.max.wait.ms", "group.id"),
        *("session.timeout.ms", "heartbeat.interval.ms", "enable.auto.commit", "check.crcs"),
        *("connections.max.idle.ms", "metadata.max.age.ms", "receive.buffer.bytes", "send.buffer.bytes"),
        *("reconnect.backoff.ms", "reconnect.backoff.max.ms", "client.dns.lookup", "client.rack"),
        *("metric.reporters", "metrics.num.samples", "metrics.recording.level", "interceptor.classes"),
        *("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms"),
        *("key.serializer", "value.serializer", "key.deserializer", "value.deserializer"),
        *("allow.auto.create.topics", "auto.include.jmx.reporter", "metadata.recovery.strategy"),
        *("forwarding.admin.class",),
    }
)
KNOWN: Final = frozenset(_USED | WITHOUT_EFFECT)


def is_client_setting(name: str) -> bool:
    """Return whether a name, with or without `consumer.`, `producer.` or `admin.`, is one of a client."""
    return unprefixed(name) in KNOWN or unprefixed(name).startswith(_PREFIXES)


def unprefixed(name: str) -> str:
    client, _, rest = name.partition(".")
    return rest if client in CLIENTS else name


def client_properties(layers: list[Mapping[str, str]], clients: tuple[str, ...]) -> dict[str, str]:
    """Return the properties of clients from layers of settings, the most general first.

    In each layer settings without a prefix apply to all clients, those with the prefix of a client in
    `clients` to that client.
    """
    merged: dict[str, str] = {}
    for layer in layers:
        known = {name: value for name, value in layer.items() if is_client_setting(name)}
        merged |= {name: value for name, value in known.items() if unprefixed(name) == name}
        for client in clients:
            prefix = f"{client}."
            merged |= {unprefixed(name): value for name, value in known.items() if name.startswith(prefix)}
    return merged
