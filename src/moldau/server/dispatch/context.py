"""Who asks, how and what for: handed to every handler with its request."""

from __future__ import annotations

from typing import NamedTuple

from moldau.network.connection import Connection

ANONYMOUS = "User:ANONYMOUS"


class RequestContext(NamedTuple):
    api_key: int
    api_version: int
    client_id: str | None
    listener_name: str
    security_protocol: str
    principal: str
    client_host: str
    connection: Connection
    correlation_id: int = 0

    @property
    def client_software(self) -> tuple[str, str]:
        return self.connection.client_software
