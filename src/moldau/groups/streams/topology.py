"""The topology of a streams group: subtopologies with their source and internal topics, as members send it.

A topology is stored with the group and never changes while the group exists; a member with an older epoch is
told that its topology is stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.assignors.java_order import string_order, strings_in_hash_order
from moldau.protocol.messages import streams_group_describe as described
from moldau.protocol.messages import streams_group_heartbeat as sent
from moldau.protocol.stored.streams_groups import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)


@dataclass(frozen=True, slots=True)
class StreamsTopology:
    epoch: int
    #: By id, in the order in which Kafka visits them.
    subtopologies: Mapping[str, Subtopology]

    @classmethod
    def from_request(cls, topology: sent.Topology) -> StreamsTopology:
        if topology.epoch < 0:
            raise invalid_topology("Topology epoch must be non-negative.")
        stored = [_stored(each) for each in topology.subtopologies]
        if len({each.subtopology_id for each in stored}) < len(stored):
            raise invalid_topology("Subtopology ids must be unique.")
        return cls(topology.epoch, _by_id(stored))

    @classmethod
    def from_record(cls, value: StreamsGroupTopologyValue) -> StreamsTopology:
        return cls(value.epoch, _by_id(value.subtopologies))

    @property
    def required_topics(self) -> frozenset[str]:
        """The topics whose metadata the group depends on."""
        return frozenset(
            name
            for each in self.subtopologies.values()
            for name in (*source_names(each), *(topic.name for topic in each.state_changelog_topics))
        )

    def subtopology_of(self, topic: str) -> str | None:
        """Return the id of the subtopology that reads a topic."""
        for subtopology_id, each in self.subtopologies.items():
            if topic in source_names(each):
                return subtopology_id
        return None

    def described(self) -> described.Topology:
        """Describe the topology as sent, without the partition counts of internal topics."""
        return described.Topology(
            epoch=self.epoch,
            subtopologies=[
                described_subtopology(self.subtopologies[subtopology_id])
                for subtopology_id in sorted(self.subtopologies, key=string_order)
            ],
        )


def source_names(subtopology: Subtopology) -> list[str]:
    """Return the topics that a subtopology reads: source topics and repartition topics."""
    return [*subtopology.source_topics, *(each.name for each in subtopology.repartition_source_topics)]


def described_subtopology(
    subtopology: Subtopology, partitions: Mapping[str, int] | None = None
) -> described.Subtopology:
    """Describe a subtopology; `partitions` are the known partition counts of internal topics."""

    def topics(infos: Iterable[TopicInfo]) -> list[described.TopicInfo]:
        return [
            described.TopicInfo(
                name=each.name,
                partitions=each.partitions if partitions is None else partitions[each.name],
                replication_factor=each.replication_factor,
                topic_configs=[
                    described.KeyValue(key=config.key, value=config.value) for config in each.topic_configs
                ],
            )
            for each in sorted(infos, key=lambda info: string_order(info.name))
        ]

    return described.Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=sorted(set(subtopology.source_topics), key=string_order),
        repartition_sink_topics=sorted(set(subtopology.repartition_sink_topics), key=string_order),
        state_changelog_topics=topics(subtopology.state_changelog_topics),
        repartition_source_topics=topics(subtopology.repartition_source_topics),
    )


def topology_value(topology: StreamsTopology, order: Iterable[str]) -> StreamsGroupTopologyValue:
    """Return the value to store; `order` are the subtopology ids as the member sent them."""
    return StreamsGroupTopologyValue(
        epoch=topology.epoch, subtopologies=[topology.subtopologies[each] for each in order]
    )


def invalid_topology(message: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _by_id(subtopologies: Iterable[Subtopology]) -> dict[str, Subtopology]:
    found = {each.subtopology_id: each for each in subtopologies}
    return {subtopology_id: found[subtopology_id] for subtopology_id in strings_in_hash_order(found)}


def _stored(subtopology: sent.Subtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=list(subtopology.source_topics),
        source_topic_regex=list(subtopology.source_topic_regex),
        state_changelog_topics=_topic_infos(subtopology.state_changelog_topics),
        repartition_sink_topics=list(subtopology.repartition_sink_topics),
        repartition_source_topics=_topic_infos(subtopology.repartition_source_topics),
        copartition_groups=[
            CopartitionGroup(
                source_topics=list(each.source_topics),
                source_topic_regex=list(each.source_topic_regex),
                repartition_source_topics=list(each.repartition_source_topics),
            )
            for each in subtopology.copartition_groups
        ],
    )


def _topic_infos(infos: Iterable[Any]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=each.name,
            partitions=each.partitions,
            replication_factor=each.replication_factor,
            topic_configs=[TopicConfig(key=config.key, value=config.value) for config in each.topic_configs],
        )
        for each in infos
    ]
