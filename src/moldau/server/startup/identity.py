"""The identity of a node process as it registers it with the controller; fixed until the process ends."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.base.ids import Uuid
from moldau.config.broker.config import BrokerConfig
from moldau.config.listeners import SECURITY_PROTOCOLS
from moldau.config.listeners import Endpoint as ConfiguredEndpoint
from moldau.metadata.features import supported_features
from moldau.metadata.image import Endpoint, MetadataImage


@dataclass(frozen=True, slots=True)
class Identity:
    node_id: int
    cluster_id: str
    #: Chosen at random for each process.
    incarnation_id: Uuid
    rack: str | None
    broker_endpoints: tuple[Endpoint, ...]
    controller_endpoints: tuple[Endpoint, ...]

    @classmethod
    def of(
        cls, config: BrokerConfig, cluster_id: str, incarnation_id: Uuid, ports: Mapping[str, int]
    ) -> Identity:
        return cls(
            node_id=config.node_id,
            cluster_id=cluster_id,
            incarnation_id=incarnation_id,
            rack=config.text("broker.rack"),
            broker_endpoints=_advertised(config.advertised_listeners, ports),
            controller_endpoints=_advertised(config.advertised_controller_listeners, ports),
        )


def feature_ranges(image: MetadataImage) -> list[dict[str, Any]]:
    """Return the supported feature levels as fields of a broker or controller registration."""
    return [
        {"name": name, "min_supported_version": each.min, "max_supported_version": each.max}
        for name, each in supported_features(image.features.levels).items()
    ]


def _advertised(endpoints: Iterable[ConfiguredEndpoint], ports: Mapping[str, int]) -> tuple[Endpoint, ...]:
    """Resolve endpoints: port 0 becomes the bound port, an empty host the canonical host name."""
    return tuple(
        Endpoint(
            each.name,
            each.host or _canonical_host_name(),
            each.port or ports.get(each.name, 0),
            SECURITY_PROTOCOLS[each.protocol],
        )
        for each in endpoints
    )


def _canonical_host_name() -> str:
    """Return the fully qualified host name, or `localhost` if it cannot be resolved."""
    name = socket.getfqdn()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name
