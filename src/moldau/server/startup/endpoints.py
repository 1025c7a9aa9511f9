"""What a node tells others about where to find it."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping

from moldau.config.listeners import SECURITY_PROTOCOLS
from moldau.config.listeners import Endpoint as ConfiguredEndpoint
from moldau.metadata.image import Endpoint


def advertised(endpoints: Iterable[ConfiguredEndpoint], ports: Mapping[str, int]) -> tuple[Endpoint, ...]:
    """With the port that was really taken where the setting says 0, and this machine's name for no host."""
    return tuple(
        Endpoint(
            each.name,
            each.host or _own_name(),
            each.port or ports.get(each.name, 0),
            SECURITY_PROTOCOLS[each.protocol],
        )
        for each in endpoints
    )


def _own_name() -> str:
    """The name others can resolve, as Java's canonical host name; `localhost` when there is none."""
    name = socket.getfqdn()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name
