"""The offsets at which the tiers of a tiered topic begin and end, which Kafka's tools do not print.

A partition whose leader does not tell them, as one without a leader, has none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.configs import ConfigEntry

_TIERED = "remote.storage.enable"


class TierOffsets(NamedTuple):
    """The first offset, the first on the leader's disk, and the last in the remote tier (-1: none)."""

    earliest: int
    earliest_local: int
    latest_tiered: int


def is_tiered(configs: Iterable[ConfigEntry]) -> bool:
    return any(config.name == _TIERED and config.value == "true" for config in configs)


def tiered_topics(admin: AdminClient, topics: Collection[str]) -> set[str]:
    """Return the tiered ones of these topics, as far as their configs may be read."""
    from moldau.client.admin.configs import ConfigResource, ResourceType

    if not topics:
        return set()
    try:
        found = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic) for topic in topics])
    except KafkaError:
        return set()
    return {
        resource.name
        for resource, configs in found.items()
        if not isinstance(configs, KafkaError) and is_tiered(configs)
    }


def tier_offsets(
    admin: AdminClient, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, TierOffsets]:
    """Return the offsets of partitions of tiered topics that have a leader."""
    from moldau.client.admin.offsets import OffsetSpec

    if not partitions:
        return {}
    answers = []
    for spec in (OffsetSpec.EARLIEST, OffsetSpec.EARLIEST_LOCAL, OffsetSpec.LATEST_TIERED):
        try:
            answers.append(admin.list_offsets(dict.fromkeys(partitions, spec)))
        except KafkaError:
            return {}
    found = {}
    for partition in partitions:
        listed = [answer.get(partition) for answer in answers]
        offsets = [each.offset for each in listed if each is not None and not isinstance(each, KafkaError)]
        if len(offsets) == len(answers):
            found[partition] = TierOffsets(*offsets)
    return found
