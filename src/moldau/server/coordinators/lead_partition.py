"""One partition of a coordinator's topic that this node leads, from its loading to its end.

Between the moment in which a partition gets another leader and that in which its shard is dropped, the log is
already that of a follower: what becomes committed there is not what was appended here, so it counts for
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.replication.partition import Partition
from moldau.server.coordinators.shard import Shard
from moldau.server.coordinators.timers import LoopTimers
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision
from moldau.statemachine.runtime import Runtime

S = TypeVar("S", bound=Shard)


class Led(Generic[S]):
    """A partition this node leads: while it loads there is no runtime yet."""

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
    def is_lost(self) -> bool:
        """It could not be loaded, and the partition has had a new leader epoch since: worth another try."""
        return self.failure is not None and self.has_new_epoch

    def _take(self, decide: Callable[[], Decision[Entry, Any]]) -> None:
        if self.runtime is not None:
            self.runtime.take(decide)

    def progressed(self, _size: int) -> None:
        """More may be committed than before."""
        found = self.partition.log
        if self.runtime is not None and found is not None and self.partition.is_leader:
            self.runtime.committed(found.high_watermark - 1)

    def close(self) -> None:
        self.partition.remove_waiter(self.progressed)
        self.timers.close()
        if self.task is not None:
            self.task.cancel()
        if self.runtime is not None:
            self.runtime.close(KafkaError(ErrorCode.NOT_COORDINATOR))
