"""Asking the share coordinator: what the group coordinator and the leaders of partitions want kept.

The coordinator may still have to be made or loaded; that is waited for, for some seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import SHARE_STATE_TOPIC, TopicId
from moldau.groups.share_topics import DeleteState, InitializeState
from moldau.share.keys import ShareKey
from moldau.share.shard import ShareShard, StateWrite
from moldau.share.state import ShareState

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
    }
)
_ATTEMPTS = 12
_BACKOFF_SECONDS = 0.02
_MAX_BACKOFF_SECONDS = 1.0


class Persister:
    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def _states(self) -> Coordinator[ShareShard]:
        return self._node.coordinators.share

    async def initialize(self, wanted: InitializeState) -> Failures:
        epoch = wanted.state_epoch

        async def one(key: ShareKey) -> None:
            offset = wanted.offsets[key.topic_id][key.partition]
            await self._retried(
                lambda: self._states.write(key.name, lambda shard: shard.initialize(key, epoch, offset))
            )

        return await _all(one, _keys(wanted.group_id, wanted.offsets))

    async def delete(self, wanted: DeleteState) -> Failures:
        async def one(key: ShareKey) -> None:
            await self._retried(lambda: self._states.write(key.name, lambda shard: shard.delete(key)))

        return await _all(one, _keys(wanted.group_id, wanted.partitions))

    async def read(self, key: ShareKey, leader_epoch: int) -> ShareState:
        return await self._retried(
            lambda: self._states.write(key.name, lambda shard: shard.read(key, leader_epoch))
        )

    async def write(self, key: ShareKey, wanted: StateWrite) -> None:
        await self._retried(lambda: self._states.write(key.name, lambda shard: shard.write(key, wanted)))

    async def summary(self, key: ShareKey) -> ShareState:
        return await self._retried(lambda: self._states.read(key.name, lambda shard: shard.summary(key)))

    async def _retried(self, ask: Callable[[], Awaitable[R]]) -> R:
        delay = _BACKOFF_SECONDS
        for _ in range(_ATTEMPTS):
            try:
                return await ask()
            except KafkaError as error:
                if error.code not in _AGAIN:
                    raise
            if SHARE_STATE_TOPIC not in self._node.image.topics.by_name:
                await self._node.coordinators.internal_topics.ensure(SHARE_STATE_TOPIC)
            await asyncio.sleep(delay)
            delay = min(2 * delay, _MAX_BACKOFF_SECONDS)
        return await ask()


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
