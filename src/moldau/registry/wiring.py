"""Creates the registry from properties: the log, the election, the service and its HTTP application."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from moldau.base.clock import Clock, SystemClock
from moldau.config.definition import ConfigError
from moldau.http.asgi import Application
from moldau.http.settings import HttpSettings, boolean, integer
from moldau.http.unsupported_settings import KnownSettings, warn_of_settings
from moldau.registry.api.application import RegistryApplication
from moldau.registry.api.metadata import ServerMetadata
from moldau.registry.authorization import Authorizer
from moldau.registry.log.election import Election
from moldau.registry.log.forwarding import Forwarding, ForwardingSettings
from moldau.registry.log.identity import Identity
from moldau.registry.log.schema_log import SchemaLog
from moldau.registry.log.settings import ElectionSettings, LogSettings
from moldau.registry.service import RegistryService
from moldau.registry.settings import first_of, registry_settings

if TYPE_CHECKING:
    from ssl import SSLContext

_WILDCARDS: Final = ("0.0.0.0", "::")
_NO_PLUGINS: Final = "Java classes are not loaded; permissions are schema.registry.acl.rules"
_NO_ENCODER: Final = "sensitive metadata is stored as it is"
#: Settings of Confluent's store, and of Kafka's clients that it passes on, without effect here.
_STORE_SETTINGS: Final = (
    *("checkpoint.dir", "checkpoint.version", "group.id", "update.handlers", "write.max.retries"),
    *("zk.session.timeout.ms", "acks", "batch.size", "linger.ms", "compression.type", "retries"),
    *("max.block.ms", "max.request.size", "delivery.timeout.ms", "enable.idempotence"),
    *("max.poll.records", "max.poll.interval.ms", "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes"),
    *("max.partition.fetch.bytes", "isolation.level", "check.crcs", "auto.offset.reset"),
    *("client.dns.lookup", "client.rack", "connections.max.idle.ms", "interceptor.classes"),
    *("metadata.max.age.ms", "metadata.recovery.strategy", "metric.reporters", "metrics."),
    *("receive.buffer.bytes", "send.buffer.bytes", "reconnect.backoff.ms", "reconnect.backoff.max.ms"),
    *("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms"),
)
SETTINGS: Final = KnownSettings(
    read=(
        "avro.compatibility.level",
        "host.name",
        "host.port",
        "inter.instance.headers.whitelist",
        "inter.instance.protocol",
        "kafkagroup.heartbeat.interval.ms",
        "kafkagroup.rebalance.timeout.ms",
        "kafkagroup.session.timeout.ms",
        "kafkastore.bootstrap.servers",
        "kafkastore.client.id",
        "kafkastore.default.api.timeout.ms",
        "kafkastore.init.timeout.ms",
        "kafkastore.request.timeout.ms",
        "kafkastore.retry.backoff.max.ms",
        "kafkastore.retry.backoff.ms",
        "kafkastore.sasl.",
        "kafkastore.security.protocol",
        "kafkastore.skip.damaged.records",
        "kafkastore.ssl.",
        "kafkastore.timeout.ms",
        "kafkastore.topic",
        "kafkastore.topic.replication.factor",
        "kafkastore.topic.skip.validation",
        "leader.connect.timeout.ms",
        "leader.election.sticky",
        "leader.eligibility",
        "leader.read.timeout.ms",
        "master.eligibility",
        "mode.mutability",
        "reference.versions.strict",
        "schema.compatibility.level",
        "schema.registry.acl.",
        "schema.registry.group.id",
        "schema.registry.inter.instance.protocol",
        "schema.registry.super.users",
        "schema.reject.empty.subject",
        "schema.search.default.limit",
        "schema.search.max.limit",
        "schema.validate.fields",
        "schema.validate.new.schemas",
        "subject.search.default.limit",
        "subject.search.max.limit",
    ),
    remedies={
        "resource.extension.class": _NO_PLUGINS,
        "schema.registry.resource.extension.class": _NO_PLUGINS,
        "metadata.encoder.secret": _NO_ENCODER,
        "metadata.encoder.old.secret": _NO_ENCODER,
        "kafkastore.connection.url": "ZooKeeper is not used; set kafkastore.bootstrap.servers",
    },
    harmless=(
        "associations.enable",
        "context.search.",
        "enable.store.health.check",
        "init.resource.extension.class",
        "inter.instance.listener.name",
        *(f"kafkastore.{name}" for name in _STORE_SETTINGS),
        "leader.election.delay",
        "metadata.encoder.",
        "resource.static.locations",
        "schema.cache.",
        "schema.canonicalize.on.consume",
        "schema.providers.",
        "schema.registry.zk.namespace",
        "size.limit.filter.",
        "subject.version.search.",
    ),
)


def create_service(properties: Mapping[str, str], version: str) -> SchemaRegistry:
    """Create the registry from properties by Confluent's names; `ConfigError` names an invalid one.

    `version` is what `/v1/metadata/version` returns.
    """
    warn_of_settings(properties, SETTINGS)
    return SchemaRegistry(properties, SystemClock(), version)


class SchemaRegistry:
    """Implements `moldau.http.run.Service`."""

    def __init__(self, properties: Mapping[str, str], clock: Clock, version: str) -> None:
        self._properties = properties
        self._version = version
        self._clock = clock
        self._log_settings = LogSettings.from_properties(properties)
        self._election_settings = ElectionSettings.from_properties(properties)
        self._http = HttpSettings.from_properties(properties, default_port=0)
        self._forwarding = ForwardingSettings.from_properties(properties)
        self._registry_settings = registry_settings(properties)
        self._authorizer = Authorizer.from_properties(properties)
        self._log = SchemaLog(self._log_settings, clock)
        self._started = asyncio.Event()

    @property
    def application(self) -> Application:
        return self._application

    async def start(self, urls: Sequence[str]) -> None:
        """Read the topic and join the group of the instances."""
        identity = identity_of(self._properties, urls)
        self._election = Election(self._log_settings.client, self._election_settings, identity, self._log)
        self._service = RegistryService(
            self._registry_settings,
            self._log,
            self._election,
            self._clock,
            timeout_s=self._log_settings.timeout_ms / 1000,
        )
        await self._service.start()
        metadata = ServerMetadata(
            kafka_cluster_id=self._log.cluster_id or "",
            group_id=self._log_settings.group,
            version=self._version,
        )
        application = RegistryApplication(
            self._service, metadata, self._authorizer, largest_body=self._http.max_request_bytes
        )
        self._application = Forwarding(
            application,
            self._election,
            self._service.catch_up,
            self._forwarding,
            _forwarding_context(self._http),
        )
        self._election.start()
        self._started.set()

    async def close(self) -> None:
        if self._started.is_set():
            await self._election.close()
            await self._service.close()
            await self._application.close()
        await self._log.close()

    async def failed(self) -> str:
        """Wait until the topic or the group cannot be used any more, and return the reason."""
        await self._started.wait()
        waiting = [asyncio.ensure_future(each.failed()) for each in (self._log, self._election)]
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for each in waiting:
                each.cancel()


def identity_of(properties: Mapping[str, str], urls: Sequence[str]) -> Identity:
    """Return the address that other instances forward to: `host.name`, and the listener of the protocol."""
    scheme = first_of(
        properties, "inter.instance.protocol", "schema.registry.inter.instance.protocol"
    ).lower()
    if scheme and all(urlsplit(url).scheme != scheme for url in urls):
        raise ConfigError(f"inter.instance.protocol={scheme}, but no listener has this protocol.")
    chosen = urlsplit(next((url for url in urls if urlsplit(url).scheme == (scheme or "http")), urls[0]))
    host = chosen.hostname or "localhost"
    if host in _WILDCARDS:
        host = socket.gethostname()
    eligible = "leader.eligibility" if "leader.eligibility" in properties else "master.eligibility"
    return Identity(
        host=properties.get("host.name", "").strip() or host,
        port=integer(properties, "host.port", chosen.port or 0),
        scheme=chosen.scheme,
        eligible=boolean(properties, eligible, True),
    )


def _forwarding_context(settings: HttpSettings) -> SSLContext | None:
    """Return how an instance connects to a leader with TLS: with the stores of its own listeners."""
    if not any(name.startswith("ssl.") for name in settings.properties):
        return None
    from moldau.security.tls.context import client_context
    from moldau.security.tls.settings import TlsSettings

    return client_context(TlsSettings.of(settings.tls_property))
