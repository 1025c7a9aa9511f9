"""Fetch requests of followers: what the leader learns from them, and replication throttling.

The session of a follower may have thousands of partitions of which few have new records. A partition without
new records whose follower is fully up to date is remembered as idle; as long as it does not change, later
fetches skip it at almost no cost.
"""

from __future__ import annotations

from moldau.base.clock import Clock
from moldau.config.broker.config import BrokerConfig
from moldau.config.broker.support import RACK_AWARE_SELECTOR
from moldau.metadata.image import PartitionRegistration
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData
from moldau.replication.partition import Partition
from moldau.replication.remote_replica import RemoteReplica
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.partitions.fetch_sessions import SessionPartition
from moldau.storage.log.log import Log


class IdlePartition:
    """A partition whose follower had reached the log end offset when it fetched `request`."""

    __slots__ = ("end_offset", "log", "partition", "registration", "replica", "request")

    def __init__(
        self, partition: Partition, log: Log, replica: RemoteReplica, request: FetchPartition
    ) -> None:
        self.partition = partition
        self.registration: PartitionRegistration | None = partition.current
        self.log = log
        self.replica = replica
        self.request = request
        self.end_offset = log.log_end_offset


class Follower:
    """The follower that sent a fetch request.

    `is_fresh` until the request waits: only then does it tell the current position of the follower.
    """

    def __init__(
        self, replicas: ReplicaManager, clock: Clock, config: BrokerConfig, request: FetchRequest
    ) -> None:
        self.id = max(request.replica_id, request.replica_state.replica_id)
        self.is_fresh = True
        self._epoch = request.replica_state.replica_epoch
        self._throttle = replicas.throttles.leader
        self._now_ms = clock.monotonic() * 1000
        #: If consumers read from followers (KIP-392), these need a new high watermark soon.
        self._wants_commits = config.text("replica.selector.class") == RACK_AWARE_SELECTOR

    @property
    def wants_commits(self) -> bool:
        return self._wants_commits

    def replica(self, partition: Partition, asked: FetchPartition) -> RemoteReplica | None:
        if partition.leadership is None:
            return None
        return partition.leadership.follower(self.id, epoch_known=asked.current_leader_epoch >= 0)

    def is_throttled(self, partition: Partition, replica: RemoteReplica) -> bool:
        return (
            self._throttle.covers(*partition.topic_partition)
            and replica.id not in partition.registration.isr
            and self._throttle.is_exceeded()
        )

    def record_fetch(self, partition: Partition, asked: FetchPartition, leader_end: int, size: int) -> None:
        """Count sent bytes for the throttle, and record the position of the follower."""
        if size and self._throttle.covers(*partition.topic_partition):
            self._throttle.record(size)
        if self.is_fresh:
            partition.note_fetch(self.id, asked.fetch_offset, asked.log_start_offset, leader_end, self._epoch)

    def has_news(self, known: SessionPartition, answer: PartitionData) -> bool:
        """Return whether a response without records must be sent at once."""
        if known.log_start_offset not in (-1, answer.log_start_offset):
            return True
        return self._wants_commits and answer.high_watermark > known.high_watermark >= 0

    def idle_partition(self, known: SessionPartition) -> IdlePartition | None:
        """Return the idle partition if it has not changed since the last fetch."""
        idle = known.idle
        if not isinstance(idle, IdlePartition) or idle.request is not known.request:
            return None
        log, partition = idle.log, idle.partition
        if (
            log.log_end_offset != idle.end_offset
            or partition.log is not log
            or partition.current is not idle.registration
            or log.high_watermark != known.high_watermark
            or log.log_start_offset != known.log_start_offset
        ):
            return None
        if self.is_fresh and idle.replica.broker_epoch == self._epoch:
            idle.replica.still_at_end(self._now_ms)
        return idle
