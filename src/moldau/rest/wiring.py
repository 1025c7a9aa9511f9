"""Creates the proxy from properties, and names the properties that it knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.http.unsupported_settings import KnownSettings, warn_of_settings
from moldau.rest.service import RestProxy
from moldau.rest.settings import RestSettings

DEFAULT_PORT: Final = 8082
_QUOTAS: Final = "limit the requests of users with Kafka's quotas"
SETTINGS: Final = KnownSettings(
    read=(
        "admin.",
        "advertised.listeners",
        "api.endpoints.allowlist",
        "api.endpoints.blocklist",
        "api.v2.enable",
        "api.v3.enable",
        "api.v3.produce.batch.maximum.entries",
        "bootstrap.servers",
        "client.",
        "confluent.rest.auth.propagate.method",
        "consumer.",
        "fetch.min.bytes",
        "id",
        "max.block.ms",
        "producer.",
        "propagated.clients.max",
        "propagated.clients.timeout.ms",
        "schema.registry.",
        "streaming.connection.max.duration.ms",
    ),
    remedies={
        "kafka.rest.resource.extension.class": "Java classes are not loaded; see authentication.*",
        "rate.limit.enable": _QUOTAS,
        "api.v3.produce.rate.limit.enabled": _QUOTAS,
        "api.v3.produce.request.size.limit.max.bytes": "http.request.max.bytes limits bodies and records",
        "zookeeper.connect": "ZooKeeper is not used; set bootstrap.servers",
    },
    harmless=(
        "api.v3.produce.",
        "enable.idempotence",
        "host.name",
        "kafka.rest.extension.classes",
        "max.poll.records",
        "null.request.body.always.publishes.empty.record",
        "rate.limit.",
        "simpleconsumer.",
        "streaming.connection.max.duration.grace.period.ms",
        "use.custom.request.logging",
    ),
)


def create_service(properties: Mapping[str, str], version: str) -> RestProxy:
    """Create the proxy from properties by Confluent's names; `ConfigError` names an invalid one."""
    warn_of_settings(properties, SETTINGS)
    return RestProxy(RestSettings.from_properties(properties), version)
