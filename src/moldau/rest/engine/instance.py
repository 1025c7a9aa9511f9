"""A consumer instance of v2: what it reads, and whose turn it is to use it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Collection, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from confluent_kafka import OFFSET_STORED, Message, TopicPartition

from moldau.base.errors import ErrorCode, KafkaError
from moldau.rest import errors
from moldau.rest.engine.consumer import PolledConsumer
from moldau.rest.engine.patterns import subscription_of

#: Topic and number.
Partition = tuple[str, int]

_EXCLUSIVE: Final = "Subscription to topics, partitions and pattern are mutually exclusive"
_SEEK_S: Final = 5.0
_SEEK_RETRY_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class InstanceConfig:
    """What a client chose when it created the instance; None: the proxy's setting."""

    format: str = "binary"
    name: str | None = None
    auto_offset_reset: str | None = None
    auto_commit: str | None = None
    min_bytes: int | None = None
    wait_ms: int | None = None


class Instance:
    """A consumer that a client created. Its requests are served one after the other.

    `exclusive` is the turn of a request. A read that waits for records ends early if another kind of request
    needs its turn, because a seek or a subscription must not wait for the timeout of the read.
    """

    def __init__(
        self, group: str, name: str, config: InstanceConfig, consumer: PolledConsumer, owner: Hashable
    ) -> None:
        self.group, self.name, self.config, self.consumer = group, name, config, consumer
        #: Only requests of this user may use the instance.
        self.owner = owner
        self.topics: list[str] = []
        self.pattern: str | None = None
        #: In the order of the requests.
        self.assigned: dict[Partition, None] = {}
        #: Records that arrived and were not returned yet, in order.
        self.waiting: deque[Message] = deque()
        self._lock = asyncio.Lock()
        #: Requests other than reads that wait for their turn.
        self._claims = 0
        self.expires = 0.0
        #: Requests that use the instance now: it does not expire meanwhile.
        self.users = 0

    @asynccontextmanager
    async def exclusive(self, *, interrupt: bool = True) -> AsyncIterator[None]:
        self._claims += interrupt
        try:
            await self._lock.acquire()
        finally:
            self._claims -= interrupt
        try:
            yield
        finally:
            self._lock.release()

    @property
    def is_claimed(self) -> bool:
        """Whether the read whose turn it is should end."""
        return self._claims > 0

    def subscribe(self, topics: list[str], pattern: str | None) -> None:
        if self.assigned:
            raise errors.illegal_state(_EXCLUSIVE)
        if (pattern is not None and self.topics) or (pattern is None and self.pattern is not None):
            raise errors.illegal_state(_EXCLUSIVE)
        if pattern is None and not topics:
            self.unsubscribe()
            return
        self.consumer.subscribe(topics if pattern is None else [subscription_of(pattern)])
        self.topics, self.pattern = topics, pattern
        if pattern is None:
            self.waiting = deque(each for each in self.waiting if each.topic() in topics)

    def unsubscribe(self) -> None:
        self.topics, self.pattern = [], None
        self.waiting.clear()
        if self.assigned:
            self.assigned = {}
            self.consumer.assign([])
        self.consumer.unsubscribe()

    def subscription(self) -> list[str]:
        if self.pattern is None:
            return list(self.topics)
        return sorted({each.topic for each in self.consumer.assignment()})

    def assign(self, partitions: Iterable[Partition]) -> None:
        """Assign partitions; those that are assigned already continue where they are."""
        if self.topics or self.pattern is not None:
            raise errors.illegal_state(_EXCLUSIVE)
        wanted = dict.fromkeys(partitions, OFFSET_STORED)
        removed = self.assigned.keys() - wanted.keys()
        added = {each: offset for each, offset in wanted.items() if each not in self.assigned}
        self._reassign(removed, added)

    def assignment(self) -> list[Partition]:
        if self.assigned:
            return list(self.assigned)
        return sorted((each.topic, each.partition) for each in self.consumer.assignment())

    def check_held(self, partitions: Iterable[Partition]) -> None:
        held = set(self.assignment())
        for topic, partition in partitions:
            if (topic, partition) not in held:
                raise errors.illegal_state(f"No current assignment for partition {topic}-{partition}")

    async def seek(self, positions: Mapping[Partition, int]) -> None:
        self.check_held(positions)
        if self.assigned:
            self._reassign(positions.keys(), positions)
            return
        self._forget(positions)
        for (topic, partition), offset in positions.items():
            await self._seek(TopicPartition(topic, partition, offset))

    async def _seek(self, position: TopicPartition) -> None:
        """Seek a partition of the group's assignment; its fetcher may not have started yet."""
        deadline = asyncio.get_running_loop().time() + _SEEK_S
        while True:
            try:
                await self.consumer.call(lambda consumer: consumer.seek(position))
                return
            except KafkaError as error:
                if (
                    error.code is not ErrorCode.INVALID_TXN_STATE
                    or asyncio.get_running_loop().time() > deadline
                ):
                    raise
                await asyncio.sleep(_SEEK_RETRY_S)

    def _reassign(self, removed: Collection[Partition], added: Mapping[Partition, int]) -> None:
        """Assign partitions at offsets, after removing some; the others continue where they are.

        Only librdkafka knows the position of a partition that was not read yet. Assigned again, the partition
        would be reset, past records that have arrived since.
        """
        positions = [TopicPartition(*each, offset) for each, offset in added.items()]
        self._forget(removed)
        self.consumer.remove_assigned([TopicPartition(*each) for each in removed])
        for each in removed:
            del self.assigned[each]
        self.consumer.add_assigned(positions)
        self.assigned.update(dict.fromkeys(added))

    def _forget(self, partitions: Collection[Partition]) -> None:
        """Drop the waiting records of partitions that are read from another position or not at all."""
        self.waiting = deque(
            each for each in self.waiting if (each.topic(), each.partition()) not in partitions
        )

    def consumed(self, records: list[Message]) -> None:
        """Mark records as returned to the client."""
        positions: dict[Partition, int] = {}
        for record in records:
            topic, partition, offset = record.topic(), record.partition(), record.offset()
            if topic is not None and partition is not None and offset is not None:
                positions[(topic, partition)] = offset + 1
        self.consumer.store(
            TopicPartition(topic, number, offset) for (topic, number), offset in positions.items()
        )
