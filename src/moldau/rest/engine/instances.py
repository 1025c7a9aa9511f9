"""The consumer instances of v2: created, found by group and name, expired when idle, bounded in number."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import AsyncIterator, Hashable, Iterable, Mapping
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message, TopicPartition

from moldau.base.errors import ErrorCode, KafkaError
from moldau.rest import errors
from moldau.rest.engine.consumer import PolledConsumer
from moldau.rest.engine.patterns import subscription_of
from moldau.rest.settings import RestSettings

logger = logging.getLogger(__name__)


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
        self.assigned: dict[tuple[str, int], int] = {}
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

    def assign(self, partitions: list[tuple[str, int]]) -> None:
        if self.topics or self.pattern is not None:
            raise errors.illegal_state(_EXCLUSIVE)
        self._keep_positions()
        self.assigned = {each: self.assigned.get(each, _STORED) for each in dict.fromkeys(partitions)}
        self._reassign()

    def assignment(self) -> list[tuple[str, int]]:
        if self.assigned:
            return list(self.assigned)
        return sorted((each.topic, each.partition) for each in self.consumer.assignment())

    def check_held(self, partitions: Iterable[tuple[str, int]]) -> None:
        held = set(self.assignment())
        for topic, partition in partitions:
            if (topic, partition) not in held:
                raise errors.illegal_state(f"No current assignment for partition {topic}-{partition}")

    async def seek(self, positions: Mapping[tuple[str, int], int]) -> None:
        self.check_held(positions)
        if self.assigned:
            self._keep_positions()
            self.assigned.update(positions)
            self._reassign()
            return
        self.waiting = deque(
            each for each in self.waiting if (each.topic(), each.partition()) not in positions
        )
        for (topic, partition), offset in positions.items():
            await self._seek(TopicPartition(topic, partition, offset))

    async def _seek(self, position: TopicPartition) -> None:
        """Seek a partition of the group's assignment; its fetcher may not have started yet."""
        deadline = asyncio.get_running_loop().time() + 5.0
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
                await asyncio.sleep(0.05)

    def _keep_positions(self) -> None:
        """Let assigned partitions continue at their first record that was not returned."""
        for each in reversed(self.waiting):
            key = (str(each.topic()), each.partition() or 0)
            if key in self.assigned:
                self.assigned[key] = each.offset() or 0

    def _reassign(self) -> None:
        """Assign all partitions again; they are fetched from their positions."""
        self.waiting.clear()
        self.consumer.assign(
            [TopicPartition(topic, number, offset) for (topic, number), offset in self.assigned.items()]
        )

    def consumed(self, records: list[Message]) -> None:
        """Mark records as returned to the client."""
        positions: dict[tuple[str, int], int] = {}
        for record in records:
            topic, partition, offset = record.topic(), record.partition(), record.offset()
            if topic is not None and partition is not None and offset is not None:
                positions[(topic, partition)] = offset + 1
        for key, offset in positions.items():
            if key in self.assigned:
                self.assigned[key] = offset
        self.consumer.store(
            TopicPartition(topic, number, offset) for (topic, number), offset in positions.items()
        )


_RESETS = {"none": "error"}
_EXCLUSIVE = "Subscription to topics, partitions and pattern are mutually exclusive"
#: librdkafka's offset for the committed one.
_STORED = -1000


class Instances:
    def __init__(self, settings: RestSettings, pool: Executor) -> None:
        self._settings, self.pool = settings, pool
        self._instances: dict[tuple[str, str], Instance] = {}
        #: The number of streaming reads; they share the limit.
        self.streams = 0
        self._closing: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._instances)

    def check_room(self) -> None:
        if len(self._instances) + self.streams >= self._settings.max_consumers:
            raise errors.too_many_consumers(self._settings.max_consumers)

    def create(
        self, group: str, config: InstanceConfig, properties: Mapping[str, Any], owner: Hashable
    ) -> Instance:
        server = f"{self._settings.id}-" if self._settings.id else ""
        name = config.name or f"rest-consumer-{server}{uuid.uuid4()}"
        if (group, name) in self._instances:
            raise errors.already_exists()
        self.check_room()
        wanted = {**properties, "group.id": group}
        if config.auto_offset_reset is not None:
            # librdkafka's name for Java's.
            wanted["auto.offset.reset"] = _RESETS.get(config.auto_offset_reset, config.auto_offset_reset)
        if config.auto_commit is not None:
            wanted["enable.auto.commit"] = config.auto_commit
        try:
            consumer = PolledConsumer(wanted, self.pool)
        except KafkaError as error:
            raise errors.unprocessable(42204, f"Invalid consumer configuration: {error}") from None
        instance = Instance(group, name, config, consumer, owner)
        self._instances[(group, name)] = instance
        self.touch(instance)
        return instance

    def get(self, group: str, name: str, owner: Hashable) -> Instance:
        instance = self._instances.get((group, name))
        if instance is None or instance.owner != owner:
            raise errors.instance_not_found()
        self.touch(instance)
        return instance

    def touch(self, instance: Instance) -> None:
        instance.expires = asyncio.get_running_loop().time() + self._settings.instance_timeout_ms / 1000

    async def delete(self, group: str, name: str, owner: Hashable) -> None:
        instance = self.get(group, name, owner)
        del self._instances[(group, name)]
        await instance.consumer.close()

    def expire(self) -> None:
        """Close the instances that were not used for `consumer.instance.timeout.ms`."""
        now = asyncio.get_running_loop().time()
        for key, instance in list(self._instances.items()):
            if instance.users == 0 and instance.expires <= now:
                logger.info("Consumer instance %s of group %s expired", instance.name, instance.group)
                del self._instances[key]
                task = asyncio.ensure_future(instance.consumer.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        closing = [each.consumer.close() for each in self._instances.values()]
        self._instances.clear()
        await asyncio.gather(*closing, *self._closing, return_exceptions=True)
