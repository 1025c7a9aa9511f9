"""The share-state persister: requests of group coordinators and partition leaders to the share coordinator.

The coordinator may be this node or another broker, and may still have to be created, elected or loaded. Every
attempt looks it up again; retriable errors are retried with exponential back-off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from moldau.base.backoff import Backoff
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import SHARE_STATE_TOPIC, TopicId
from moldau.groups.share.topics import DeleteShareGroupState
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from moldau.server.brokers.peers import BrokerPeers
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.internal_topics import InternalTopics
from moldau.server.publisher import MetadataPublisher
from moldau.server.share.state_channel import StateChannels
from moldau.share.keys import SharePartitionKey
from moldau.share.persisted_state import ShareGroupOffset, read_batches
from moldau.share.shard import ShareShard, StateWrite
from moldau.statemachine.effects import InitializeShareGroupState

R = TypeVar("R")

#: Errors by topic and partition; successful partitions are left out.
Failures = dict[TopicId, dict[int, KafkaError]]

_RETRIABLE = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        # Errors of the connection to the coordinator.
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_ATTEMPTS = 12
_BACKOFF = Backoff(0.02, 1.0)


class Persister:
    def __init__(
        self,
        node_id: int,
        metadata: MetadataPublisher,
        coordinator: Coordinator[ShareShard],
        internal_topics: InternalTopics,
        peers: BrokerPeers,
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._coordinator = coordinator
        self._internal_topics = internal_topics
        self._peers = peers
        self._channels = StateChannels(peers)

    def apply(self, image: MetadataImage) -> None:
        self._peers.apply(image)

    async def close(self) -> None:
        await self._channels.close()

    async def initialize(self, request: InitializeShareGroupState) -> Failures:
        epoch = request.state_epoch

        async def one(key: SharePartitionKey) -> None:
            offset = request.offsets[key.topic_id][key.partition]
            data = initialize_share_group_state.PartitionData(
                partition=key.partition, state_epoch=epoch, start_offset=offset
            )
            await self._call(
                key,
                lambda: self._coordinator.write(key.name, lambda shard: shard.initialize(key, epoch, offset)),
                lambda broker: self._channels.initialize.send(broker, key, data),
            )

        return await _all(one, _keys(request.group_id, request.offsets))

    async def delete(self, request: DeleteShareGroupState) -> Failures:
        async def one(key: SharePartitionKey) -> None:
            data = delete_share_group_state.PartitionData(partition=key.partition)
            await self._call(
                key,
                lambda: self._coordinator.write(key.name, lambda shard: shard.delete(key)),
                lambda broker: self._channels.delete.send(broker, key, data),
            )

        return await _all(one, _keys(request.group_id, request.partitions))

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareGroupOffset:
        async def remote(broker: int) -> ShareGroupOffset:
            data = read_share_group_state.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
            result = await self._channels.read.send(broker, key, data)
            return ShareGroupOffset(
                state_epoch=result.state_epoch,
                leader_epoch=leader_epoch,
                start_offset=result.start_offset,
                batches=read_batches(result.state_batches),
            )

        return await self._call(
            key,
            lambda: self._coordinator.write(key.name, lambda shard: shard.read(key, leader_epoch)),
            remote,
        )

    async def write(self, key: SharePartitionKey, write: StateWrite) -> None:
        async def remote(broker: int) -> None:
            await self._channels.write.send(broker, key, _partition_data(key, write))

        await self._call(
            key, lambda: self._coordinator.write(key.name, lambda shard: shard.write(key, write)), remote
        )

    async def summary(self, key: SharePartitionKey) -> ShareGroupOffset:
        async def remote(broker: int) -> ShareGroupOffset:
            # A reader without a leader epoch is never fenced.
            data = read_share_group_state_summary.PartitionData(partition=key.partition, leader_epoch=-1)
            result = await self._channels.summary.send(broker, key, data)
            return ShareGroupOffset(
                state_epoch=result.state_epoch,
                leader_epoch=result.leader_epoch,
                start_offset=result.start_offset,
                complete_count=result.delivery_complete_count,
            )

        return await self._call(
            key, lambda: self._coordinator.read(key.name, lambda shard: shard.summary(key)), remote
        )

    async def _call(
        self,
        key: SharePartitionKey,
        local: Callable[[], Awaitable[R]],
        remote: Callable[[int], Awaitable[R]],
    ) -> R:
        for failures in range(1, _ATTEMPTS + 1):
            try:
                return await self._call_once(key, local, remote)
            except KafkaError as error:
                if error.code not in _RETRIABLE:
                    raise
            if SHARE_STATE_TOPIC not in self._metadata.image.topics.by_name:
                await self._internal_topics.ensure(SHARE_STATE_TOPIC)
            await asyncio.sleep(_BACKOFF.seconds(failures))
        return await self._call_once(key, local, remote)

    async def _call_once(
        self,
        key: SharePartitionKey,
        local: Callable[[], Awaitable[R]],
        remote: Callable[[int], Awaitable[R]],
    ) -> R:
        coordinator = self._coordinator.leader_of(key.name)
        if coordinator is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return await (local() if coordinator == self._node_id else remote(coordinator))


def _partition_data(key: SharePartitionKey, write: StateWrite) -> write_share_group_state.PartitionData:
    return write_share_group_state.PartitionData(
        partition=key.partition,
        state_epoch=write.state_epoch,
        leader_epoch=write.leader_epoch,
        start_offset=write.start_offset,
        delivery_complete_count=write.complete_count,
        state_batches=[
            write_share_group_state.StateBatch(
                first_offset=each.first_offset,
                last_offset=each.last_offset,
                delivery_state=each.state,
                delivery_count=each.delivery_count,
            )
            for each in write.batches
        ],
    )


def _keys(group_id: str, partitions: Mapping[TopicId, Iterable[int]]) -> list[SharePartitionKey]:
    return [
        SharePartitionKey(group_id, topic_id, index)
        for topic_id, found in partitions.items()
        for index in found
    ]


async def _all(
    one: Callable[[SharePartitionKey], Awaitable[None]], keys: list[SharePartitionKey]
) -> Failures:
    """Run `one` for every key and collect the errors."""
    results = await asyncio.gather(*(one(key) for key in keys), return_exceptions=True)
    failures: Failures = {}
    for key, result in zip(keys, results, strict=True):
        if isinstance(result, KafkaError):
            failures.setdefault(key.topic_id, {})[key.partition] = result
        elif isinstance(result, BaseException):
            raise result
    return failures
