"""Helpers of the group handlers: the requesting client, existing partitions, the enabled protocols."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.broker.config import BrokerConfig
from moldau.groups.context import Requester
from moldau.groups.group import CONSUMER, STREAMS
from moldau.metadata.features import GROUP_VERSION, STREAMS_VERSION
from moldau.metadata.image import MetadataImage
from moldau.security.acl.permissions import DESCRIBE_TOPIC
from moldau.server.dispatch.context import RequestContext


class _Indexed(Protocol):
    partition_index: int


P = TypeVar("P", bound=_Indexed)


def check_consumer_protocol(config: BrokerConfig, image: MetadataImage) -> None:
    """Raise UNSUPPORTED_VERSION unless the broker config and `group.version` enable KIP-848."""
    _check_protocol(config, image, CONSUMER, GROUP_VERSION)


def check_streams_protocol(config: BrokerConfig, image: MetadataImage) -> None:
    """Raise UNSUPPORTED_VERSION unless the broker config and `streams.version` enable KIP-1071."""
    _check_protocol(config, image, STREAMS, STREAMS_VERSION)


def _check_protocol(config: BrokerConfig, image: MetadataImage, protocol: str, feature: str) -> None:
    protocols: Any = config["group.coordinator.rebalance.protocols"]
    if protocol not in protocols or image.features.level(feature) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def requester(context: RequestContext) -> Requester:
    may_describe = None
    if context.listener.authorizer is not None:
        may_describe = partial(context.allows, DESCRIBE_TOPIC, log_denied=False)
    host = "/" + _java_host(context.client_host)
    return Requester(context.api_version, context.client_id or "", host, may_describe)


def _java_host(host: str) -> str:
    """Return an address as Java formats it: IPv6 without abbreviation."""
    if ":" not in host:
        return host
    import ipaddress

    address, _, scope = host.partition("%")
    parts = (f"{int(part, 16):x}" for part in ipaddress.IPv6Address(address).exploded.split(":"))
    return ":".join(parts) + (f"%{scope}" if scope else "")


def known_partitions(image: MetadataImage, topic: str, partitions: Sequence[P]) -> tuple[list[P], list[P]]:
    """Split partitions into those that exist and those that do not."""
    found = image.topics.by_name.get(topic)
    existing = found.partitions if found is not None else {}
    known = [each for each in partitions if each.partition_index in existing]
    return known, [each for each in partitions if each.partition_index not in existing]
