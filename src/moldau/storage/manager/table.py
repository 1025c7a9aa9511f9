"""The table of a node's logs, shared by the parts of the log manager.

A partition's directory is created, renamed or removed by one coroutine at a time (`exclusive`).
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from moldau.base.ids import TopicPartition
from moldau.storage.log.log import Log


class LogTable:
    """`current` holds the replicas in use; `future` those being moved to another data directory."""

    def __init__(self) -> None:
        self.current: dict[TopicPartition, Log] = {}
        self.future: dict[TopicPartition, Log] = {}
        self._changing: dict[TopicPartition, asyncio.Event] = {}

    def all(self) -> list[Log]:
        return [*self.current.values(), *self.future.values()]

    def in_directory(self, path: str) -> list[Log]:
        return [log for log in self.all() if posixpath.dirname(log.directory) == path]

    def holds(self, log: Log) -> bool:
        topic_partition = log.topic_partition
        return self.current.get(topic_partition) is log or self.future.get(topic_partition) is log

    def remove(self, log: Log) -> None:
        table = self.current if self.current.get(log.topic_partition) is log else self.future
        del table[log.topic_partition]

    def clear(self) -> None:
        self.current.clear()
        self.future.clear()

    @asynccontextmanager
    async def exclusive(self, topic_partition: TopicPartition) -> AsyncIterator[None]:
        """Wait until no other coroutine changes the partition's directory, and keep others out."""
        while topic_partition in self._changing:
            await self._changing[topic_partition].wait()
        self._changing[topic_partition] = asyncio.Event()
        try:
            yield
        finally:
            self._changing.pop(topic_partition).set()
