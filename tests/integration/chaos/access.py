"""How the clients of a run connect: addresses and security, for each library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aiokafka.helpers import create_ssl_context

from moldau.testing import Cluster
from tests.integration.chaos.namespaces import NamespaceCluster

#: A request to a paused node times out after this and is sent to the new leader.
REQUEST_TIMEOUT_MS = 3000


@dataclass(frozen=True)
class Access:
    bootstrap: str
    librdkafka_security: Mapping[str, str] = field(default_factory=dict)
    python_security: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def to(cls, cluster: Cluster | NamespaceCluster) -> Access:
        if isinstance(cluster, NamespaceCluster):
            return cls(cluster.bootstrap_servers)
        return cls(cluster.bootstrap_servers, cluster.librdkafka_config, cluster.python_config)

    @property
    def each_server(self) -> list[Access]:
        """The access to each node alone."""
        return [replace(self, bootstrap=server) for server in self.bootstrap.split(",")]

    def librdkafka(self) -> dict[str, Any]:
        return {
            **self.librdkafka_security,
            "bootstrap.servers": self.bootstrap,
            "socket.timeout.ms": REQUEST_TIMEOUT_MS,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "retry.backoff.ms": 50,
            "retry.backoff.max.ms": 500,
            "log_level": 0,
        }

    def kafka_python(self) -> dict[str, Any]:
        return {**self.python_security, "bootstrap_servers": self.bootstrap.split(",")}

    def aiokafka(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {**self.python_security, "bootstrap_servers": self.bootstrap}
        authority = arguments.pop("ssl_cafile", None)
        if authority is not None:
            arguments["ssl_context"] = create_ssl_context(cafile=authority)
        return arguments
