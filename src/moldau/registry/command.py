"""Creates the registry from properties: the log, the election, the service and its HTTP application."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from moldau.base.clock import Clock, SystemClock
from moldau.http.asgi import Application
from moldau.http.settings import boolean, integer
from moldau.registry.api.application import RegistryApplication
from moldau.registry.api.metadata import ServerMetadata
from moldau.registry.authorization import Authorizer
from moldau.registry.log.election import Election
from moldau.registry.log.forwarding import Forwarding, ForwardingSettings
from moldau.registry.log.identity import Identity
from moldau.registry.log.membership import Membership
from moldau.registry.log.schema_log import SchemaLog
from moldau.registry.log.settings import ElectionSettings, LogSettings
from moldau.registry.service import RegistryService
from moldau.registry.state.registry import RegistrySettings


def create_service(properties: Mapping[str, str], version: str) -> SchemaRegistry:
    """Create the registry from properties by Confluent's names; `ConfigError` names an invalid one.

    `version` is what `/v1/metadata/version` returns.
    """
    return SchemaRegistry(properties, SystemClock(), version)


class SchemaRegistry:
    """Implements `moldau.http.run.Service`."""

    def __init__(self, properties: Mapping[str, str], clock: Clock, version: str) -> None:
        self._properties = properties
        self._version = version
        self._clock = clock
        self._log_settings = LogSettings.from_properties(properties)
        self._election_settings = ElectionSettings.from_properties(properties)
        self._forwarding = ForwardingSettings.from_properties(properties)
        self._registry_settings = _registry_settings(properties)
        self._authorizer = Authorizer.from_properties(properties)
        self._log = SchemaLog(self._log_settings, clock)
        self._started = asyncio.Event()

    @property
    def application(self) -> Application:
        return self._application

    async def start(self, urls: Sequence[str]) -> None:
        """Read the topic and join the group of the instances."""
        membership = Membership(self._log_settings.client, self._election_settings)
        identity = _identity(self._properties, urls)
        self._election = Election(membership, self._election_settings, identity, self._log)
        self._service = RegistryService(self._registry_settings, self._log, self._election, self._clock)
        await self._service.start()
        metadata = ServerMetadata(
            kafka_cluster_id=self._log.cluster_id or "",
            group_id=self._log_settings.group,
            version=self._version,
        )
        self._application = Forwarding(
            RegistryApplication(self._service, metadata, self._authorizer), self._forwarding
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


def _identity(properties: Mapping[str, str], urls: Sequence[str]) -> Identity:
    """Return the address that other instances forward to: `host.name`, and the listener of the protocol."""
    scheme = properties.get("inter.instance.protocol", "").strip().lower() or "http"
    chosen = urlsplit(next((url for url in urls if urlsplit(url).scheme == scheme), urls[0]))
    return Identity(
        host=properties.get("host.name", "").strip() or chosen.hostname or "localhost",
        port=integer(properties, "host.port", chosen.port or 0),
        scheme=chosen.scheme,
        eligible=boolean(properties, "leader.eligibility", True),
    )


def _registry_settings(properties: Mapping[str, str]) -> RegistrySettings:
    level = properties.get("schema.compatibility.level") or properties.get("avro.compatibility.level")
    return RegistrySettings(
        compatibility_level=(level or "BACKWARD").strip().upper(),
        mode_mutability=boolean(properties, "mode.mutability", True),
        validate_fields=boolean(properties, "schema.validate.fields", False),
        validate_new_schemas=boolean(properties, "schema.validate.new.schemas", True),
        reject_empty_subject=boolean(properties, "schema.reject.empty.subject", False),
        reference_versions_strict=boolean(properties, "reference.versions.strict", False),
    )
