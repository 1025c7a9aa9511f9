"""Who this process is, as it tells the controller: fixed from start to stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.base.ids import Uuid
from moldau.config.broker.config import BrokerConfig
from moldau.metadata.features import supported_features
from moldau.metadata.image import Endpoint, MetadataImage
from moldau.server.startup.endpoints import advertised


@dataclass(frozen=True, slots=True)
class Identity:
    node_id: int
    cluster_id: str
    #: Of this process: another one that runs later has another.
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
            broker_endpoints=advertised(config.advertised_listeners, ports),
            controller_endpoints=advertised(config.advertised_controller_listeners, ports),
        )


def feature_ranges(image: MetadataImage) -> list[dict[str, Any]]:
    """The features this release supports, as both kinds of registration carry them."""
    return [
        {"name": name, "min_supported_version": each.min, "max_supported_version": each.max}
        for name, each in supported_features(image.features.levels).items()
    ]
