"""Where partitions end, asked of their leaders wherever they are; the lag of share groups follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.base.offsets import LATEST
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from moldau.server.brokers.batched_calls import BatchedCalls, missing
from moldau.server.brokers.peers import BrokerPeers
from moldau.share.keys import ShareKey

if TYPE_CHECKING:
    from moldau.server.node import Node

_CONSUMER = -1


class PartitionEnds:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._others: BatchedCalls[TopicPartition, ListOffsetsPartitionResponse] = BatchedCalls(
            BrokerPeers(node, "partition-ends"), pack=_pack, unpack=_unpack, identity=lambda asked: asked
        )

    async def of(self, key: ShareKey) -> int:
        """The high watermark; KafkaError when the leader cannot tell it."""
        topic = self._node.image.topics.by_id.get(key.topic_id)
        registration = topic.partitions.get(key.partition) if topic is not None else None
        if topic is None or registration is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if registration.leader < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
        if registration.leader == self._node.id:
            return self._node.replicas.by_id(key.topic_id, key.partition).leader_log().high_watermark
        found = await self._others.ask(registration.leader, TopicPartition(topic.name, key.partition))
        if found.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode.of(found.error_code))
        return found.offset

    def apply(self, image: MetadataImage) -> None:
        self._others.apply(image)

    async def close(self) -> None:
        await self._others.close()


def _pack(partitions: Sequence[TopicPartition]) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, index in partitions:
        asked = ListOffsetsPartition(partition_index=index, timestamp=LATEST)
        topics.setdefault(topic, []).append(asked)
    return ListOffsetsRequest(
        replica_id=_CONSUMER,
        topics=[ListOffsetsTopic(name=name, partitions=asked) for name, asked in topics.items()],
    )


def _unpack(
    partitions: Sequence[TopicPartition], response: ListOffsetsResponse
) -> list[ListOffsetsPartitionResponse]:
    answers = ((topic.name, each) for topic in response.topics for each in topic.partitions)
    found = {TopicPartition(name, each.partition_index): each for name, each in answers}
    try:
        return [found[each] for each in partitions]
    except KeyError as error:
        raise missing(error) from error
