"""A partition of a coordinator's topic that this node leads, from loading to resignation.

A partition that gets another leader becomes a follower's log before its shard is closed. Offsets committed in
between belong to the new leader's records, not to those appended here, so they are ignored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.replication.partition import Partition
from moldau.server.coordinators.timers import LoopTimers
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision
from moldau.statemachine.runtime import Runtime


class Shard(Protocol):
    """The state machine over one partition of an internal topic.

    It decides synchronously and without I/O. Its stored state changes only in `replay`, which handles new
    decisions and the records of a loading partition alike. Later decisions are scheduled through its timers.
    """

    def replay(self, entries: Sequence[Entry], base_offset: int) -> None:
        """Apply stored entries to the state; the first has the offset `base_offset`."""
        ...

    def activate(self, image: MetadataImage) -> None:
        """Start the timers that the loaded state requires."""
        ...

    def image_changed(self, delta: MetadataDelta, image: MetadataImage) -> None: ...


S = TypeVar("S", bound=Shard)


class LeadPartition(Generic[S]):
    """`runtime` is None while the partition is loading."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.task: asyncio.Task[None] | None = None
        self.failure: KafkaError | None = None
        self.shard: S | None = None
        self.runtime: Runtime[Entry] | None = None
        self.timers = LoopTimers(self._take)

    @property
    def has_new_epoch(self) -> bool:
        return self.leader_epoch != self.partition.leader_epoch

    @property
    def should_reload(self) -> bool:
        """Whether loading failed and a new leader epoch justifies another attempt."""
        return self.failure is not None and self.has_new_epoch

    def _take(self, decide: Callable[[], Decision[Entry, Any]]) -> None:
        if self.runtime is not None:
            self.runtime.take(decide)

    def high_watermark_advanced(self, _size: int) -> None:
        log = self.partition.log
        if self.runtime is not None and log is not None and self.partition.is_leader:
            self.runtime.committed(log.high_watermark - 1)

    def close(self) -> None:
        self.partition.progress.high_watermark.remove(self.high_watermark_advanced)
        self.timers.close()
        if self.task is not None:
            self.task.cancel()
        if self.runtime is not None:
            self.runtime.close(KafkaError(ErrorCode.NOT_COORDINATOR))
