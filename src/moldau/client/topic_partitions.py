"""Convert partitions and offsets to and from librdkafka's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import confluent_kafka

from moldau.base.ids import TopicPartition
from moldau.client.librdkafka.errors import called, client_error
from moldau.client.records import OffsetAndMetadata, PartitionInfo


def to_librdkafka(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
) -> list[confluent_kafka.TopicPartition]:
    result = []
    for (topic, partition), wanted in offsets.items():
        position = wanted if isinstance(wanted, OffsetAndMetadata) else OffsetAndMetadata(wanted)
        result.append(
            confluent_kafka.TopicPartition(
                topic,
                partition,
                position.offset,
                position.metadata,
                -1 if position.leader_epoch is None else position.leader_epoch,
            )
        )
    return result


def named(partitions: Iterable[TopicPartition]) -> list[confluent_kafka.TopicPartition]:
    return [confluent_kafka.TopicPartition(topic, index) for topic, index in partitions]


def from_librdkafka(partitions: Iterable[Any]) -> list[TopicPartition]:
    return [TopicPartition(each.topic, each.partition) for each in partitions]


def committed_offsets(partitions: Iterable[Any] | None) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the committed offsets; raise the first error."""
    result = {}
    for each in partitions or ():
        if each.error is not None:
            raise client_error(each.error)
        if each.offset >= 0:
            result[TopicPartition(each.topic, each.partition)] = OffsetAndMetadata(
                each.offset, each.metadata or "", each.leader_epoch
            )
    return result


def partition_infos(client: Any, topic: str, timeout: float) -> list[PartitionInfo]:
    """Request the metadata of a topic's partitions."""
    found = called(client.list_topics, topic, timeout).topics[topic]
    if found.error is not None:
        raise client_error(found.error)
    return [
        PartitionInfo(topic, each.id, each.leader, list(each.replicas), list(each.isrs))
        for _, each in sorted(found.partitions.items())
    ]
