"""Listeners: `NAME://host:port`, the security protocol of a name, and which listeners may share a port.

Names are compared in upper case. An empty host means every interface; port 0 lets the system choose one; IPv6
hosts are in brackets. Two listeners may share a port only if one is bound to an IPv4 and the other to an IPv6
address.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from moldau.config.definition import ConfigError

PLAINTEXT = "PLAINTEXT"
#: Security protocols with their numbers in registrations.
SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

_ENDPOINT = r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)"


class Endpoint(NamedTuple):
    """One listener: an address to bind to, or an advertised one."""

    name: str
    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{format_address(self.host, self.port)}"


def format_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_protocol_map(setting: str, text: str) -> dict[str, str]:
    """Parse `NAME:PROTOCOL,...`; names become upper case."""
    protocols = {}
    for name, written in parse_map(setting, text).items():
        protocol = written.upper()
        if protocol not in SECURITY_PROTOCOLS:
            allowed = ", ".join(SECURITY_PROTOCOLS)
            raise ConfigError(
                f"{setting} gives listener {name} the protocol '{protocol}'; allowed are {allowed}."
            )
        protocols[name.upper()] = protocol
    return protocols


def parse_map(setting: str, text: str) -> dict[str, str]:
    """Parse `key:value,...`; the value begins after the last colon, so that keys may be IPv6 addresses."""
    entries = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        key, colon, value = entry.rpartition(":")
        if not colon:
            raise ConfigError(f"{setting} has the entry '{entry}'; each entry must have the form name:value.")
        entries[key.strip()] = value.strip()
    return entries


def parse_endpoints(setting: str, texts: Sequence[str], protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    endpoints = tuple(_parse_endpoint(setting, text, protocols) for text in texts)
    _check_names(setting, endpoints)
    return endpoints


def listener_name(text: str) -> str:
    """The name of a listener such as `PLAINTEXT://:9092`."""
    return text.partition(":")[0].upper()


def _parse_endpoint(setting: str, text: str, protocols: Mapping[str, str]) -> Endpoint:
    match = re.fullmatch(_ENDPOINT, text)
    if match is None:
        raise ConfigError(
            f"{setting} has the entry '{text}'; a listener has the form NAME://host:port, for example "
            "PLAINTEXT://localhost:9092 or PLAINTEXT://[::1]:9092; an empty host means every interface."
        )
    name, host, port = match[1].upper(), match[2], int(match[3])
    if not 0 <= port <= 65535:
        raise ConfigError(f"{setting} has the entry '{text}'; a port is a number from 0 to 65535.")
    if name not in protocols:
        raise ConfigError(
            f"{setting} has a listener named {name}, but listener.security.protocol.map does not say which "
            f"protocol it speaks; add {name}:PLAINTEXT to it."
        )
    return Endpoint(name, protocols[name], host, port)


def _check_names(setting: str, endpoints: Sequence[Endpoint]) -> None:
    names = [endpoint.name for endpoint in endpoints]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{setting} has two listeners named {name}; every listener needs its own name.")


def check_ports(setting: str, endpoints: Iterable[Endpoint]) -> None:
    """Refuse listeners that cannot be bound together."""
    by_port: dict[int, list[Endpoint]] = defaultdict(list)
    for endpoint in endpoints:
        if endpoint.port:
            by_port[endpoint.port].append(endpoint)
    for port, sharing in by_port.items():
        versions = [_ip_version(endpoint.host) for endpoint in sharing]
        if len(sharing) > 1 and not _may_share(versions):
            listed = ", ".join(map(str, sharing))
            raise ConfigError(
                f"{setting} uses port {port} more than once ({listed}); every listener needs its own port, "
                "unless one has an IPv4 and the other an IPv6 address."
            )


def _may_share(versions: Sequence[int]) -> bool:
    return sorted(versions) == [4, 6]


def _ip_version(host: str) -> int:
    """4 or 6 for an address, 0 for a host name."""
    if ":" in host:
        return 6
    octets = host.split(".")
    return 4 if len(octets) == 4 and all(octet.isdigit() and int(octet) < 256 for octet in octets) else 0
