"""Topics and partitions in results of the admin client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moldau.base.errors import KafkaError
from moldau.base.ids import ZERO_UUID, Uuid
from moldau.client.wire.errors import error_of
from moldau.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsResponse
from moldau.protocol.messages.metadata import MetadataResponse


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 stands for the broker's default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicListing:
    name: str
    id: Uuid
    internal: bool


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """`elr` and `last_known_elr` are None if the broker does not return them."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    elr: list[int] | None = None
    last_known_elr: list[int] | None = None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    name: str
    id: Uuid
    internal: bool
    partitions: list[PartitionDescription]


@dataclass(frozen=True, slots=True)
class Reassignment:
    replicas: list[int]
    adding: list[int]
    removing: list[int]


def add_page(
    results: dict[str, TopicDescription | KafkaError], page: DescribeTopicPartitionsResponse
) -> None:
    for topic in page.topics:
        name = topic.name or ""
        if topic.error_code:
            results[name] = error_of(topic.error_code)
            continue
        partitions = [
            PartitionDescription(
                partition.partition_index,
                partition.leader_id,
                partition.leader_epoch,
                partition.replica_nodes,
                partition.isr_nodes,
                partition.eligible_leader_replicas,
                partition.last_known_elr,
            )
            for partition in topic.partitions
        ]
        known = results.get(name)
        if isinstance(known, TopicDescription):
            known.partitions.extend(partitions)
        else:
            results[name] = TopicDescription(name, topic.topic_id, topic.is_internal, partitions)


def described(metadata: MetadataResponse) -> dict[str, TopicDescription | KafkaError]:
    results: dict[str, TopicDescription | KafkaError] = {}
    for topic in metadata.topics:
        name = topic.name or ""
        if topic.error_code:
            results[name] = error_of(topic.error_code)
            continue
        partitions = [
            PartitionDescription(p.partition_index, p.leader_id, p.leader_epoch, p.replica_nodes, p.isr_nodes)
            for p in sorted(topic.partitions, key=lambda partition: partition.partition_index)
        ]
        results[name] = TopicDescription(name, topic.topic_id or ZERO_UUID, topic.is_internal, partitions)
    return results
