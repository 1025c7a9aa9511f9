"""Requests to share coordinators on other brokers, each for one share partition.

The five share-state APIs of KIP-932 have the same shape: the topics and partitions of one group. Requests of
one group to one broker travel together; two for the same share partition travel one after the other.
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
from moldau.share.keys import SharePartitionKey


class _Result(Protocol):
    error_code: int
    error_message: str | None


P = TypeVar("P")
R = TypeVar("R", bound=_Result)


class StateRequest(NamedTuple):
    key: SharePartitionKey
    #: The PartitionData of the request.
    partition: Any


class StateChannel(Generic[P, R]):
    """One of the APIs; `P` is the partition data of its request, `R` that of its response."""

    def __init__(self, peers: BrokerPeers, request: type[Message], topic: type[Any]) -> None:
        self._request: type[Any] = request
        self._topic = topic
        self.calls: BatchedCalls[StateRequest, R] = BatchedCalls(
            peers, pack=self._pack, unpack=_unpack, identity=lambda request: request.key
        )

    async def send(self, broker_id: int, key: SharePartitionKey, partition: P) -> R:
        """Return the coordinator's result; raise KafkaError if it refuses or cannot be reached."""
        result = await self.calls.ask(broker_id, StateRequest(key, partition), lane=key.group_id)
        if result.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode.of(result.error_code), result.error_message)
        return result

    def _pack(self, requests: Sequence[StateRequest]) -> Message:
        topics: dict[TopicId, list[Any]] = {}
        for key, partition in requests:
            topics.setdefault(key.topic_id, []).append(partition)
        packed: Message = self._request(
            group_id=requests[0].key.group_id,
            topics=[self._topic(topic_id=topic_id, partitions=each) for topic_id, each in topics.items()],
        )
        return packed


def _unpack(requests: Sequence[StateRequest], response: Any) -> list[Any]:
    found = {
        (topic.topic_id, result.partition): result
        for topic in response.results
        for result in topic.partitions
    }
    try:
        return [found[each.key.topic_id, each.key.partition] for each in requests]
    except KeyError as error:
        raise missing(error) from error


class StateChannels:
    """The channels of all five APIs, over one connection to each broker."""

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
