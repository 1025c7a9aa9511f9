"""The tiered partitions of this broker: what it does with each, as leader or follower."""

from __future__ import annotations

import logging

from moldau.base.backoff import Backoff
from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.json_log import event
from moldau.base.log_throttle import LogThrottle
from moldau.replication.partition import Partition
from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.segments import PartitionId

logger = logging.getLogger(__name__)

_BACKOFF = Backoff(0.5, 30.0)


class Attempts:
    """When a task of a partition runs again: not while it is running, nor during its back-off."""

    __slots__ = ("_failures", "_log_throttle", "_retry_at", "is_running")

    def __init__(self) -> None:
        self.is_running = False
        self._failures = 0
        self._retry_at = 0.0
        self._log_throttle = LogThrottle()

    def is_due(self, now: float) -> bool:
        """Return whether the task may start (monotonic seconds)."""
        return not self.is_running and now >= self._retry_at

    def succeeded(self) -> None:
        self._failures, self._retry_at = 0, 0.0
        self._log_throttle.reset()

    def failed(self, partition_id: PartitionId, error: Exception, clock: Clock) -> None:
        now = clock.monotonic()
        self._failures += 1
        self._retry_at = now + _BACKOFF.seconds(self._failures)
        if self._log_throttle.is_due(now, str(error)):
            trace = None if isinstance(error, KafkaError) else error
            logger.warning(
                "tiered storage of %s failed and is tried again: %s",
                partition_id,
                error,
                exc_info=trace,
                extra=event("tiered.failed", partition=str(partition_id)),
            )


class TieredPartition:
    """`led_epoch` is the leader epoch in which the remote log was last synchronized by this leader,
    `refused_epoch` the one in which nothing more is copied, because the store's metadata are too large.
    A follower has synchronized the remote log once, since the partition is tiered.
    """

    __slots__ = (
        "copies",
        "copy_lag_bytes",
        "copy_lag_segments",
        "delete_lag_bytes",
        "delete_lag_segments",
        "expirations",
        "follows",
        "id",
        "is_synchronized",
        "led_epoch",
        "log_size_bytes",
        "metadata_count",
        "partition",
        "refused_epoch",
    )

    def __init__(self, partition_id: PartitionId, partition: Partition) -> None:
        self.id = partition_id
        self.partition = partition
        self.led_epoch = self.refused_epoch = -1
        self.is_synchronized = False
        # The tasks are independent: none waits for another, or for its back-off.
        self.copies, self.expirations, self.follows = Attempts(), Attempts(), Attempts()
        # What metrics show.
        self.copy_lag_bytes = self.copy_lag_segments = 0
        self.delete_lag_bytes = self.delete_lag_segments = 0
        self.log_size_bytes = self.metadata_count = 0

    @property
    def is_led(self) -> bool:
        return self.partition.is_leader

    def leads_in(self, epoch: int) -> bool:
        """Return whether this broker is still the leader in an epoch."""
        current = self.partition.current
        return self.partition.is_leader and current is not None and current.leader_epoch == epoch

    def show(self, remote: RemoteLog) -> None:
        self.metadata_count, self.log_size_bytes = remote.sizes()
