"""Fetch by followers: what a leader learns from the request, and what it holds back.

A session of a follower has thousands of partitions of which few have anything new. One that had nothing when
it was looked at, and of which the follower knows all there is to know, is remembered as quiet: as long as
nothing changed there it costs next to nothing to look again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.config.broker.support import RACK_AWARE_SELECTOR
from moldau.metadata.image import PartitionRegistration
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData
from moldau.replication.partition import Partition
from moldau.replication.remote_replica import RemoteReplica
from moldau.server.fetch_sessions import SessionPartition
from moldau.storage.log.log import Log

if TYPE_CHECKING:
    from moldau.server.node import Node


class Quiet:
    """A partition whose log ended where the follower's does, when this was asked for."""

    __slots__ = ("asked", "end", "log", "partition", "registration", "replica")

    def __init__(self, partition: Partition, log: Log, replica: RemoteReplica, asked: FetchPartition) -> None:
        self.partition = partition
        self.registration: PartitionRegistration | None = partition.current
        self.log = log
        self.replica = replica
        self.asked = asked
        self.end = log.log_end_offset


class Follower:
    """The broker that asks. `is_fresh` until its request waits: what it tells of the broker is news then."""

    def __init__(self, node: Node, request: FetchRequest) -> None:
        self.id = max(request.replica_id, request.replica_state.replica_id)
        self.is_fresh = True
        self._epoch = request.replica_state.replica_epoch
        self._throttle = node.replicas.throttles.leader
        self._now_ms = node.clock.monotonic() * 1000
        #: Consumers may read from followers: these should know soon what is committed.
        self._eager = node.config.text("replica.selector.class") == RACK_AWARE_SELECTOR

    @property
    def wants_commits(self) -> bool:
        return self._eager

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

    def note(self, partition: Partition, asked: FetchPartition, leader_end: int, size: int) -> None:
        """What is sent counts for the throttle; what was asked for tells how far the follower is."""
        if size and self._throttle.covers(*partition.topic_partition):
            self._throttle.record(size)
        if self.is_fresh:
            partition.note_fetch(self.id, asked.fetch_offset, asked.log_start_offset, leader_end, self._epoch)

    def has_news(self, known: SessionPartition, answer: PartitionData) -> bool:
        """Whether the follower should hear of it at once, though there are no records."""
        if known.log_start_offset not in (-1, answer.log_start_offset):
            return True
        return self._eager and answer.high_watermark > known.high_watermark >= 0

    def is_quiet(self, known: SessionPartition) -> Quiet | None:
        """The partition, when nothing has changed since it was found to have nothing."""
        quiet = known.quiet
        if not isinstance(quiet, Quiet) or quiet.asked is not known.request:
            return None
        log, partition = quiet.log, quiet.partition
        if (
            log.log_end_offset != quiet.end
            or partition.log is not log
            or partition.current is not quiet.registration
            or log.high_watermark != known.high_watermark
            or log.log_start_offset != known.log_start_offset
        ):
            return None
        if self.is_fresh and quiet.replica.broker_epoch == self._epoch:
            quiet.replica.still_at_end(self._now_ms)
        return quiet
