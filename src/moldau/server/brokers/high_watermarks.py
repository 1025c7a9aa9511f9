"""The high watermarks of partitions, requested from their leaders with ListOffsets.

The lag of groups is computed from them, and the end of the topic with the metadata of remote segments.
"""

from __future__ import annotations

from collections.abc import Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId, TopicPartition
from moldau.base.offsets import LATEST
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.brokers.batched_calls import BatchedCalls, missing
from moldau.server.brokers.peers import BrokerPeers
from moldau.server.publisher import MetadataPublisher

_CONSUMER_REPLICA_ID = -1


class LeaderHighWatermarks:
    def __init__(
        self, node_id: int, metadata: MetadataPublisher, replicas: ReplicaManager, peers: BrokerPeers
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._replicas = replicas
        self._channel: BatchedCalls[TopicPartition, ListOffsetsPartitionResponse] = BatchedCalls(
            peers,
            pack=_pack,
            unpack=_unpack,
            identity=lambda partition: partition,
        )

    async def of(self, topic_id: TopicId, partition: int) -> int:
        """Return the high watermark of a partition; raise the KafkaError of its leader."""
        topic = self._metadata.image.topics.by_id.get(topic_id)
        registration = topic.partitions.get(partition) if topic is not None else None
        if topic is None or registration is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if registration.leader < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
        if registration.leader == self._node_id:
            return self._replicas.by_id(topic_id, partition).leader_log().high_watermark
        found = await self._channel.ask(registration.leader, TopicPartition(topic.name, partition))
        if found.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode.of(found.error_code))
        return found.offset

    def apply(self, image: MetadataImage) -> None:
        self._channel.apply(image)

    async def close(self) -> None:
        await self._channel.close()


def _pack(partitions: Sequence[TopicPartition]) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(ListOffsetsPartition(partition_index=index, timestamp=LATEST))
    return ListOffsetsRequest(
        replica_id=_CONSUMER_REPLICA_ID,
        topics=[ListOffsetsTopic(name=name, partitions=found) for name, found in topics.items()],
    )


def _unpack(
    partitions: Sequence[TopicPartition], response: ListOffsetsResponse
) -> list[ListOffsetsPartitionResponse]:
    partition_responses = ((topic.name, each) for topic in response.topics for each in topic.partitions)
    found = {TopicPartition(name, each.partition_index): each for name, each in partition_responses}
    try:
        return [found[each] for each in partitions]
    except KeyError as error:
        raise missing(error) from error
