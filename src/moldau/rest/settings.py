"""The settings of the REST proxy, with the names of Confluent's.

| setting | default | meaning |
|---|---|---|
| `bootstrap.servers` | | the Kafka cluster |
| `schema.registry.url` | not set | registry for the formats avro, jsonschema and protobuf |
| `client.*` | | properties of all Kafka clients, e.g. `client.security.protocol` |
| `producer.*`, `consumer.*`, `admin.*` | | properties of one kind of client; they override `client.*` |
| `id` | empty | part of the names of consumer instances |
| `advertised.listeners` | not set | base URL in links; otherwise the URL of the request |
| `consumer.request.timeout.ms` | 1000 | longest wait of a v2 read |
| `consumer.request.max.bytes` | 67108864 | largest response of a v2 read |
| `consumer.instance.timeout.ms` | 300000 | close a consumer instance that was not used for this time |
| `consumer.instances.max` | 500 | maximum number of consumer instances and streaming reads |
| `fetch.min.bytes` | -1 | a v2 read ends after this many bytes; -1: at its timeout |
| `consumer.threads` | 4 | threads for blocking calls of all consumers |
| `api.v3.produce.batch.maximum.entries` | 10 | records in a v3 batch |
| `streaming.connection.max.duration.ms` | 86400000 | longest streaming request |
| `api.v2.enable`, `api.v3.enable` | true | serve the endpoints of this version |
| `api.endpoints.allowlist` | all | names of the endpoints to serve, such as `api.v3.acls.*` |
| `api.endpoints.blocklist` | none | names of endpoints to disable; others remain |
| `max.block.ms` | 60000 | longest wait for space in the producer's buffer |
| `confluent.rest.auth.propagate.method` | NONE | SASL: log in to Kafka with the caller's credentials |
| `propagated.clients.max` | 64 | users with clients of their own at the same time |
| `propagated.clients.timeout.ms` | 600000 | close the clients of a user after this time without requests |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.config.definition import ConfigError, invalid_value
from moldau.http.settings import boolean, integer

#: Settings of the proxy that begin like properties of consumers.
_OWN_CONSUMER_SETTINGS: Final = frozenset(
    {
        "consumer.instance.timeout.ms",
        "consumer.instances.max",
        "consumer.iterator.backoff.ms",
        "consumer.iterator.timeout.ms",
        "consumer.request.max.bytes",
        "consumer.request.timeout.ms",
        "consumer.threads",
    }
)


@dataclass(frozen=True, slots=True)
class RestSettings:
    bootstrap_servers: str
    registry: Mapping[str, str] | None
    #: Properties by Kafka's names; they may contain secrets.
    admin: Mapping[str, Any] = field(repr=False)
    producer: Mapping[str, Any] = field(repr=False)
    consumer: Mapping[str, Any] = field(repr=False)
    id: str = ""
    base_url: str | None = None
    read_timeout_ms: int = 1000
    read_max_bytes: int = 64 * 1024 * 1024
    instance_timeout_ms: int = 300_000
    max_consumers: int = 500
    fetch_min_bytes: int = -1
    consumer_threads: int = 4
    batch_max_entries: int = 10
    stream_max_ms: int = 86_400_000
    max_block_ms: int = 60_000
    v2_enabled: bool = True
    v3_enabled: bool = True
    #: Names of endpoints; an empty allow list allows all.
    allowed: frozenset[str] = frozenset()
    blocked: frozenset[str] = frozenset()
    propagate: bool = False
    max_propagated: int = 64
    propagated_timeout_ms: int = 600_000
    max_request_bytes: int = 10 * 1024 * 1024

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> RestSettings:
        """Read the settings; `ConfigError` names an invalid one."""
        if not properties.get("bootstrap.servers", "").strip():
            raise ConfigError("bootstrap.servers is missing: the addresses of the Kafka cluster.")
        common = {"bootstrap.servers": properties["bootstrap.servers"], **_with_prefix(properties, "client.")}
        advertised = properties.get("advertised.listeners", "").split(",")[0].strip()
        return cls(
            bootstrap_servers=properties["bootstrap.servers"],
            registry=_registry(properties),
            admin={**common, **_with_prefix(properties, "admin.")},
            producer={**common, **_with_prefix(properties, "producer.")},
            consumer={**common, **_with_prefix(properties, "consumer.", _OWN_CONSUMER_SETTINGS)},
            id=properties.get("id", "").strip(),
            base_url=advertised.rstrip("/") or None,
            read_timeout_ms=integer(properties, "consumer.request.timeout.ms", 1000),
            read_max_bytes=integer(properties, "consumer.request.max.bytes", 64 * 1024 * 1024),
            instance_timeout_ms=integer(properties, "consumer.instance.timeout.ms", 300_000),
            max_consumers=integer(properties, "consumer.instances.max", 500),
            fetch_min_bytes=_fetch_min_bytes(properties),
            consumer_threads=min(16, max(1, integer(properties, "consumer.threads", 4))),
            batch_max_entries=integer(properties, "api.v3.produce.batch.maximum.entries", 10),
            stream_max_ms=integer(properties, "streaming.connection.max.duration.ms", 86_400_000),
            max_block_ms=integer(properties, "max.block.ms", 60_000),
            v2_enabled=boolean(properties, "api.v2.enable", True),
            v3_enabled=boolean(properties, "api.v3.enable", True),
            allowed=_names(properties, "api.endpoints.allowlist"),
            blocked=_names(properties, "api.endpoints.blocklist"),
            propagate=_propagate(properties),
            max_propagated=max(1, integer(properties, "propagated.clients.max", 64)),
            propagated_timeout_ms=integer(properties, "propagated.clients.timeout.ms", 600_000),
            max_request_bytes=integer(properties, "http.request.max.bytes", 10 * 1024 * 1024),
        )


def _with_prefix(
    properties: Mapping[str, str], prefix: str, excluded: frozenset[str] = frozenset()
) -> dict[str, str]:
    return {
        name[len(prefix) :]: value
        for name, value in properties.items()
        if name.startswith(prefix) and name not in excluded
    }


def _registry(properties: Mapping[str, str]) -> dict[str, str] | None:
    """Return the properties of the registry's client: `schema.registry.` is kept for the URL alone."""
    if not properties.get("schema.registry.url", "").strip():
        return None
    return {name: value for name, value in properties.items() if name.startswith("schema.registry.")}


def _fetch_min_bytes(properties: Mapping[str, str]) -> int:
    is_default = properties.get("fetch.min.bytes", "").strip() in ("", "-1")
    return -1 if is_default else integer(properties, "fetch.min.bytes", -1)


def _names(properties: Mapping[str, str], name: str) -> frozenset[str]:
    return frozenset(each.strip() for each in properties.get(name, "").split(",")) - {""}


def _propagate(properties: Mapping[str, str]) -> bool:
    name = "confluent.rest.auth.propagate.method"
    value = properties.get(name, "NONE").strip().upper()
    if value == "SSL":
        raise ConfigError(f"{name}=SSL is not supported: callers log in to Kafka with SASL.")
    if value not in ("NONE", "SASL"):
        raise invalid_value(name, value, "String must be one of: NONE, SASL")
    return value == "SASL"
