"""Questions to share coordinators on other brokers, each about one partition as one group reads it.

The five APIs have one shape: topics with partitions of one group, asked and answered. Questions of one group
to one broker share a request; two about the same partition go one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from moldau.protocol.schema import Message
from moldau.server.brokers.batched_calls import BatchedCalls, missing
from moldau.server.brokers.peers import BrokerPeers
from moldau.share.keys import ShareKey


class _Result(Protocol):
    error_code: int
    error_message: str | None


P = TypeVar("P")
R = TypeVar("R", bound=_Result)


class Question(NamedTuple):
    key: ShareKey
    #: What the request says about the partition.
    partition: Any


class StateChannel(Generic[P, R]):
    """One of the APIs: `P` is what is said about a partition, `R` what is answered."""

    def __init__(self, peers: BrokerPeers, request: type[Message], topic: type[Any]) -> None:
        self._request: type[Any] = request
        self._topic = topic
        self.calls: BatchedCalls[Question, R] = BatchedCalls(
            peers, pack=self._pack, unpack=_unpack, identity=lambda asked: asked.key
        )

    async def ask(self, broker_id: int, key: ShareKey, partition: P) -> R:
        """What the coordinator answers; KafkaError when it refuses or cannot be reached."""
        result = await self.calls.ask(broker_id, Question(key, partition), lane=key.group_id)
        if result.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode.of(result.error_code), result.error_message)
        return result

    def _pack(self, questions: Sequence[Question]) -> Message:
        topics: dict[TopicId, list[Any]] = {}
        for key, partition in questions:
            topics.setdefault(key.topic_id, []).append(partition)
        packed: Message = self._request(
            group_id=questions[0].key.group_id,
            topics=[self._topic(topic_id=topic_id, partitions=each) for topic_id, each in topics.items()],
        )
        return packed


def _unpack(questions: Sequence[Question], response: Any) -> list[Any]:
    found = {
        (topic.topic_id, result.partition): result
        for topic in response.results
        for result in topic.partitions
    }
    try:
        return [found[each.key.topic_id, each.key.partition] for each in questions]
    except KeyError as error:
        raise missing(error) from error


class StateChannels:
    """All five, over one connection to each broker."""

    def __init__(self, peers: BrokerPeers) -> None:
        initialize, read = initialize_share_group_state, read_share_group_state
        write, delete = write_share_group_state, delete_share_group_state
        summary = read_share_group_state_summary
        self.initialize: StateChannel[initialize.PartitionData, initialize.PartitionResult] = StateChannel(
            peers, initialize.InitializeShareGroupStateRequest, initialize.InitializeStateData
        )
        self.read: StateChannel[read.PartitionData, read.PartitionResult] = StateChannel(
            peers, read.ReadShareGroupStateRequest, read.ReadStateData
        )
        self.write: StateChannel[write.PartitionData, write.PartitionResult] = StateChannel(
            peers, write.WriteShareGroupStateRequest, write.WriteStateData
        )
        self.delete: StateChannel[delete.PartitionData, delete.PartitionResult] = StateChannel(
            peers, delete.DeleteShareGroupStateRequest, delete.DeleteStateData
        )
        self.summary: StateChannel[summary.PartitionData, summary.PartitionResult] = StateChannel(
            peers, summary.ReadShareGroupStateSummaryRequest, summary.ReadStateSummaryData
        )
        self._peers = peers

    async def close(self) -> None:
        for each in (self.initialize, self.read, self.write, self.delete, self.summary):
            await each.calls.close()
