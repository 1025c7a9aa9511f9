"""Settings of a client: bootstrap addresses, security, timeouts and retries, from Kafka's property names.

Unused names are ignored, as in Kafka's clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from moldau.base.backoff import Backoff
from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.security import PLAIN_TEXT, PROTOCOLS, SecuritySettings

_DEFAULT_BACKOFF = Backoff(0.1, 1.0)


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """`controllers`: the addresses are those of controllers (`bootstrap.controllers`)."""

    bootstrap: tuple[Address, ...]
    controllers: bool = False
    client_id: str = "moldau-admin"
    request_timeout_ms: int = 30_000
    api_timeout_ms: int = 60_000
    #: Maximum time that refused connections are retried at first: long enough for a broker that is starting,
    #: short enough to report a wrong address soon.
    bootstrap_timeout_ms: int = 3_000
    #: `retry.backoff.ms` and `retry.backoff.max.ms`.
    backoff: Backoff = _DEFAULT_BACKOFF
    #: `security.protocol`, `ssl.*` and `sasl.*`.
    security: SecuritySettings = PLAIN_TEXT

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ClientSettings:
        """Read Kafka's names: addresses, client.id, timeouts, back-off, security."""
        controllers = not properties.get("bootstrap.servers") and "bootstrap.controllers" in properties
        name = "bootstrap.controllers" if controllers else "bootstrap.servers"
        security = SecuritySettings.from_properties(properties)
        return cls(
            bootstrap=parse_addresses(properties.get(name, ""), name, security.protocol),
            controllers=controllers,
            client_id=properties.get("client.id") or "moldau-admin",
            request_timeout_ms=_number(properties, "request.timeout.ms", 30_000),
            api_timeout_ms=_number(properties, "default.api.timeout.ms", 60_000),
            backoff=Backoff.of_ms(
                _number(properties, "retry.backoff.ms", 100),
                _number(properties, "retry.backoff.max.ms", 1_000),
            ),
            security=security,
        )


def parse_addresses(
    text: str, name: str = "bootstrap.servers", protocol: str = "PLAINTEXT"
) -> tuple[Address, ...]:
    """Parse `host:port,host:port`; `[::1]:9092` and `PLAINTEXT://host:port` are also allowed.

    A security protocol in an address must be `protocol`, the client's `security.protocol`.
    """
    items = [item.strip() for item in text.split(",")]
    addresses = tuple(_parse_address(item, name, protocol) for item in items if item)
    if not addresses:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"No addresses in {name}: give host:port")
    return addresses


def _parse_address(text: str, name: str, protocol: str) -> Address:
    scheme, _, rest = text.rpartition("://")
    if scheme.upper() in PROTOCOLS and scheme.upper() != protocol:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"{text} in {name} contradicts security.protocol={protocol} of the client",
        )
    host, colon, port = rest.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Invalid url in {name}: {text} (expected host:port)")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Invalid url in {name}: {text} (write an IPv6 address as [{rest}]:port)",
        )
    return Address(host.strip("[]"), int(port))


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    if name not in properties:
        return default
    try:
        value = int(properties[name])
    except ValueError:
        value = -1
    if value < 0:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Invalid value {properties[name]} for configuration {name}: give milliseconds",
        )
    return value
