"""The settings of an HTTP service, with the names of Confluent's services.

| setting | default | meaning |
|---|---|---|
| `listeners` | `http://127.0.0.1:PORT` | URLs to listen on, separated by commas: `https://host:port`, … |
| `ssl.*` | | key and trust store of https listeners, as for brokers |
| `ssl.client.authentication` | NONE | NONE, REQUESTED or REQUIRED: certificates of clients |
| `ssl.principal.mapping.rules` | DEFAULT | principal of a client's certificate, as for brokers |
| `authentication.*` | | see `authentication.authenticator` and `authentication.users` |
| `access.control.allow.*` | | see `cors` |
| `server.connection.limit` | 1000 | maximum number of open connections |
| `idle.timeout.ms` | 30000 | close a connection without requests after this time |
| `shutdown.graceful.ms` | 1000 | time for running requests at shutdown |
| `http.request.max.bytes` | 10485760 | maximum size of a request body |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from moldau.config.definition import ConfigError, invalid_value

LOOPBACK: Final = "127.0.0.1"
_CLIENT_AUTHENTICATION: Final = {"none": "none", "requested": "requested", "required": "required"}


class HttpListener(NamedTuple):
    host: str
    port: int
    tls: bool

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class HttpSettings:
    listeners: tuple[HttpListener, ...]
    max_connections: int = 1000
    idle_timeout_ms: int = 30_000
    shutdown_timeout_ms: int = 1000
    max_request_bytes: int = 10 * 1024 * 1024
    #: All properties of the service; they may contain secrets.
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], *, default_port: int) -> HttpSettings:
        """Read the settings; `ConfigError` names an invalid one."""
        return cls(
            listeners=_listeners(properties, default_port),
            max_connections=integer(properties, "server.connection.limit", 1000) or 1_000_000,
            idle_timeout_ms=integer(properties, "idle.timeout.ms", 30_000),
            shutdown_timeout_ms=integer(properties, "shutdown.graceful.ms", 1000),
            max_request_bytes=integer(properties, "http.request.max.bytes", 10 * 1024 * 1024),
            properties=dict(properties),
        )

    @property
    def tls(self) -> bool:
        return any(listener.tls for listener in self.listeners)

    def tls_property(self, name: str) -> str | None:
        """Return a property of the https listeners by Kafka's name."""
        prefixed = self.properties.get(f"listener.name.https.{name}")
        if prefixed is not None:
            return prefixed
        if name == "ssl.client.auth":
            return self._client_auth()
        return self.properties.get(name)

    def _client_auth(self) -> str | None:
        """Translate Confluent's `ssl.client.authentication`, and the older boolean `ssl.client.auth`."""
        name = "ssl.client.authentication"
        value = self.properties.get(name)
        if value is None:
            older = self.properties.get("ssl.client.auth", "").strip().lower()
            return {"true": "required", "false": "none"}.get(older, older or None)
        chosen = _CLIENT_AUTHENTICATION.get(value.strip().lower())
        if chosen is None:
            raise invalid_value(name, value, "String must be one of: NONE, REQUESTED, REQUIRED")
        return chosen


def integer(properties: Mapping[str, str], name: str, default: int) -> int:
    """Return a number that is not negative."""
    text = properties.get(name, "").strip()
    if not text:
        return default
    try:
        value = int(text)
    except ValueError:
        raise invalid_value(name, text, "Not a number of type INT") from None
    if value < 0:
        raise invalid_value(name, text, "Value must be at least 0")
    return value


def boolean(properties: Mapping[str, str], name: str, default: bool) -> bool:
    text = properties.get(name, "").strip().lower()
    if text not in ("", "true", "false"):
        raise invalid_value(name, text, "Expected value to be either true or false")
    return default if not text else text == "true"


def _listeners(properties: Mapping[str, str], default_port: int) -> tuple[HttpListener, ...]:
    text = properties.get("listeners", "").strip()
    if not text:
        return (HttpListener(LOOPBACK, integer(properties, "port", default_port), tls=False),)
    return tuple(_listener(each.strip()) for each in text.split(",") if each.strip())


def _listener(text: str) -> HttpListener:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        port = None
    if port is None or parts.scheme not in ("http", "https") or parts.path not in ("", "/"):
        raise ConfigError(f"listeners has {text}; a listener is http://host:port or https://host:port.")
    return HttpListener(parts.hostname or "0.0.0.0", port, parts.scheme == "https")
