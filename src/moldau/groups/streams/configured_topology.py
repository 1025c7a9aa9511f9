"""A topology as it applies to the existing topics: tasks of each subtopology, and topics to be created.

It is derived from the stored topology and the metadata, and is not stored itself. A topology is ready once
all of its topics exist with the right number of partitions; before, no task is assigned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.groups.assignors.java_order import string_order, strings_in_hash_order
from moldau.groups.streams.partition_counts import PartitionCounts, TopicConfigurationError
from moldau.groups.streams.statuses import StatusCode, status
from moldau.groups.streams.topology import StreamsTopology, described_subtopology, invalid_topology
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from moldau.protocol.messages.streams_group_describe import Topology as DescribedTopology
from moldau.protocol.messages.streams_group_heartbeat import Status
from moldau.protocol.stored.streams_groups import Subtopology, TopicInfo

_MAX_NAMED = 3


class ConfiguredSubtopology(NamedTuple):
    tasks: int
    subtopology: Subtopology

    @property
    def is_stateful(self) -> bool:
        return bool(self.subtopology.state_changelog_topics)


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    epoch: int
    #: By id, in ascending order; None if the existing topics do not fit.
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    #: The partition counts of internal topics.
    partitions: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, CreatableTopic] = field(default_factory=dict)
    #: The reason if the topology is not ready.
    problem: Status | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None

    def described(self) -> DescribedTopology:
        return DescribedTopology(
            epoch=self.epoch,
            subtopologies=[
                described_subtopology(each.subtopology, self.partitions)
                for each in (self.subtopologies or {}).values()
            ],
        )


def configure(topology: StreamsTopology, image: MetadataImage) -> ConfiguredTopology:
    """Derive the tasks and internal topics; raise STREAMS_INVALID_TOPOLOGY if no topics could fit."""
    try:
        _check_sources(topology, image)
        counts = PartitionCounts(topology, image)
        counts.decide()
        subtopologies = {
            key: ConfiguredSubtopology(counts.tasks_of(each), each)
            for key, each in sorted(topology.subtopologies.items(), key=lambda item: string_order(item[0]))
        }
        partitions = _internal_partitions(topology, counts.internal)
        missing = _missing(topology, partitions, image)
    except TopicConfigurationError as error:
        return ConfiguredTopology(topology.epoch, None, problem=status(error.code, error.message))
    problem = None
    if missing:
        problem = status(
            StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_summary(missing)}"
        )
    return ConfiguredTopology(topology.epoch, subtopologies, partitions, missing, problem)


def _check_sources(topology: StreamsTopology, image: MetadataImage) -> None:
    missing = {
        name
        for each in topology.subtopologies.values()
        for name in each.source_topics
        if name not in image.topics.by_name
    }
    if missing:
        raise TopicConfigurationError(
            StatusCode.MISSING_SOURCE_TOPICS,
            f"Source topics {_summary(sorted(missing, key=string_order))} are missing.",
        )


def _internal_topics(topology: StreamsTopology) -> dict[str, TopicInfo]:
    return {
        topic.name: topic
        for each in topology.subtopologies.values()
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics)
    }


def _internal_partitions(topology: StreamsTopology, decided: Mapping[str, int]) -> dict[str, int]:
    partitions = {
        name: topic.partitions or decided[name] for name, topic in _internal_topics(topology).items()
    }
    for name, count in partitions.items():
        if count < 1:
            raise invalid_topology(f"Internal topic {name} must have at least one partition.")
    return partitions


def _missing(
    topology: StreamsTopology, partitions: Mapping[str, int], image: MetadataImage
) -> dict[str, CreatableTopic]:
    topics = _internal_topics(topology)
    missing = {}
    for name in strings_in_hash_order(topics):
        existing = image.topics.by_name.get(name)
        if existing is None:
            missing[name] = _creatable(topics[name], partitions[name])
        elif len(existing.partitions) != partitions[name]:
            raise TopicConfigurationError(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {partitions[name]}, "
                f"found {len(existing.partitions)}",
            )
    return missing


def _creatable(topic: TopicInfo, partitions: int) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=partitions,
        replication_factor=topic.replication_factor or -1,
        configs=[CreatableTopicConfig(name=each.key, value=each.value) for each in topic.topic_configs],
    )


def _summary(names: Iterable[str] | Collection[str]) -> str:
    found = list(names)
    more = len(found) - _MAX_NAMED
    text = ", ".join(found[:_MAX_NAMED])
    return f"{text} and {more} additional topics" if more > 0 else text
