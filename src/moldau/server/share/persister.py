"""Asking the share coordinator, wherever it is: what groups and the leaders of partitions want kept.

The coordinator may still have to be made, found or loaded; that is waited for, for some seconds. Every try
looks it up anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from moldau.base.backoff import Backoff
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import SHARE_STATE_TOPIC, TopicId
from moldau.groups.share.topics import DeleteState, InitializeState
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from moldau.server.brokers.peers import BrokerPeers
from moldau.server.share.state_channel import StateChannels
from moldau.share.keys import ShareKey
from moldau.share.shard import ShareShard, StateWrite
from moldau.share.state import ShareState, read_batches

if TYPE_CHECKING:
    from moldau.server.coordinators.coordinator import Coordinator
    from moldau.server.node import Node

R = TypeVar("R")

#: Errors by topic and partition; what is not in there went well.
Failures = dict[TopicId, dict[int, KafkaError]]

_AGAIN = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        # Of the connection to it.
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_ATTEMPTS = 12
_BACKOFF = Backoff(0.02, 1.0)


class Persister:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._peers = BrokerPeers(node, "share-state")
        self._others = StateChannels(self._peers)

    @property
    def _states(self) -> Coordinator[ShareShard]:
        return self._node.coordinators.share

    def apply(self, image: MetadataImage) -> None:
        self._peers.apply(image)

    async def close(self) -> None:
        await self._others.close()

    async def initialize(self, wanted: InitializeState) -> Failures:
        epoch = wanted.state_epoch

        async def one(key: ShareKey) -> None:
            offset = wanted.offsets[key.topic_id][key.partition]
            asked = initialize_share_group_state.PartitionData(
                partition=key.partition, state_epoch=epoch, start_offset=offset
            )
            await self._ask(
                key,
                lambda: self._states.write(key.name, lambda shard: shard.initialize(key, epoch, offset)),
                lambda broker: self._others.initialize.ask(broker, key, asked),
            )

        return await _all(one, _keys(wanted.group_id, wanted.offsets))

    async def delete(self, wanted: DeleteState) -> Failures:
        async def one(key: ShareKey) -> None:
            asked = delete_share_group_state.PartitionData(partition=key.partition)
            await self._ask(
                key,
                lambda: self._states.write(key.name, lambda shard: shard.delete(key)),
                lambda broker: self._others.delete.ask(broker, key, asked),
            )

        return await _all(one, _keys(wanted.group_id, wanted.partitions))

    async def read(self, key: ShareKey, leader_epoch: int) -> ShareState:
        async def remote(broker: int) -> ShareState:
            asked = read_share_group_state.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
            result = await self._others.read.ask(broker, key, asked)
            return ShareState(
                state_epoch=result.state_epoch,
                leader_epoch=leader_epoch,
                start_offset=result.start_offset,
                batches=read_batches(result.state_batches),
            )

        return await self._ask(
            key, lambda: self._states.write(key.name, lambda shard: shard.read(key, leader_epoch)), remote
        )

    async def write(self, key: ShareKey, wanted: StateWrite) -> None:
        async def remote(broker: int) -> None:
            await self._others.write.ask(broker, key, _written(key, wanted))

        await self._ask(
            key, lambda: self._states.write(key.name, lambda shard: shard.write(key, wanted)), remote
        )

    async def summary(self, key: ShareKey) -> ShareState:
        async def remote(broker: int) -> ShareState:
            # Who only looks has no leader's epoch to be fenced by.
            asked = read_share_group_state_summary.PartitionData(partition=key.partition, leader_epoch=-1)
            result = await self._others.summary.ask(broker, key, asked)
            return ShareState(
                state_epoch=result.state_epoch,
                leader_epoch=result.leader_epoch,
                start_offset=result.start_offset,
                complete_count=result.delivery_complete_count,
            )

        return await self._ask(
            key, lambda: self._states.read(key.name, lambda shard: shard.summary(key)), remote
        )

    async def _ask(
        self,
        key: ShareKey,
        here: Callable[[], Awaitable[R]],
        there: Callable[[int], Awaitable[R]],
    ) -> R:
        for failures in range(1, _ATTEMPTS + 1):
            try:
                return await self._ask_once(key, here, there)
            except KafkaError as error:
                if error.code not in _AGAIN:
                    raise
            if SHARE_STATE_TOPIC not in self._node.image.topics.by_name:
                await self._node.coordinators.internal_topics.ensure(SHARE_STATE_TOPIC)
            await asyncio.sleep(_BACKOFF.seconds(failures))
        return await self._ask_once(key, here, there)

    async def _ask_once(
        self,
        key: ShareKey,
        here: Callable[[], Awaitable[R]],
        there: Callable[[int], Awaitable[R]],
    ) -> R:
        coordinator = self._states.leader_of(key.name)
        if coordinator is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return await (here() if coordinator == self._node.id else there(coordinator))


def _written(key: ShareKey, wanted: StateWrite) -> write_share_group_state.PartitionData:
    return write_share_group_state.PartitionData(
        partition=key.partition,
        state_epoch=wanted.state_epoch,
        leader_epoch=wanted.leader_epoch,
        start_offset=wanted.start_offset,
        delivery_complete_count=wanted.complete_count,
        state_batches=[
            write_share_group_state.StateBatch(
                first_offset=each.first_offset,
                last_offset=each.last_offset,
                delivery_state=each.state,
                delivery_count=each.delivery_count,
            )
            for each in wanted.batches
        ],
    )


def _keys(group_id: str, partitions: Mapping[TopicId, Iterable[int]]) -> list[ShareKey]:
    return [ShareKey(group_id, topic_id, index) for topic_id, found in partitions.items() for index in found]


async def _all(one: Callable[[ShareKey], Awaitable[None]], keys: list[ShareKey]) -> Failures:
    """Ask for each; what went wrong with which."""
    done = await asyncio.gather(*(one(key) for key in keys), return_exceptions=True)
    failures: Failures = {}
    for key, result in zip(keys, done, strict=True):
        if isinstance(result, KafkaError):
            failures.setdefault(key.topic_id, {})[key.partition] = result
        elif isinstance(result, BaseException):
            raise result
    return failures
