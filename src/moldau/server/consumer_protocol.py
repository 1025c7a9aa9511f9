"""Checks whether the consumer group protocol (KIP-848) is enabled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.group import CONSUMER
from moldau.metadata.features import GROUP_VERSION

if TYPE_CHECKING:
    from moldau.server.node import Node


def check_offered(node: Node) -> None:
    """Raise UNSUPPORTED_VERSION unless the broker config and the feature `group.version` enable it."""
    protocols: Any = node.config["group.coordinator.rebalance.protocols"]
    if CONSUMER not in protocols or node.image.features.level(GROUP_VERSION) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
