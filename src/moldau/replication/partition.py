"""One partition on this node: its log, its role, and how far it is committed.

A leader has a `Leadership`, which is the pure part of leading; a follower has none. `Progress` has the
callbacks of those who wait.

Invariants:

- the high watermark never decreases, except where the log is truncated below it after an unclean election;
- state changes synchronously on the event loop; observers are notified after the change is complete.
"""

from __future__ import annotations

import logging

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId, TopicPartition
from moldau.base.json_log import event
from moldau.metadata.image import PartitionRegistration
from moldau.protocol.messages.alter_partition import ResponsePartitionData
from moldau.replication.leadership import IsrChange, Leadership
from moldau.replication.local_broker import LocalBroker
from moldau.replication.partition_changes import PartitionChanges
from moldau.replication.progress import Progress
from moldau.replication.traffic import TopicTraffic
from moldau.storage.disk.disk import Buffer
from moldau.storage.log.append import AppendInfo, Origin
from moldau.storage.log.log import Log
from moldau.storage.producers.verification import NOT_REQUIRED, Guard

logger = logging.getLogger(__name__)


class Partition:
    __slots__ = (
        "_broker",
        "_changes",
        "_registration",
        "leadership",
        "log",
        "progress",
        "topic_id",
        "topic_partition",
        "traffic",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        log: Log | None,
        broker: LocalBroker,
        changes: PartitionChanges,
        traffic: TopicTraffic | None = None,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        #: None while its log directory is offline.
        self.log = log
        #: None unless this node is the leader.
        self.leadership: Leadership | None = None
        self.progress = Progress()
        #: Shared by the replicas of the topic on this node.
        self.traffic = traffic or TopicTraffic()
        self._registration: PartitionRegistration | None = None
        self._broker = broker
        self._changes = changes

    # Role.

    @property
    def registration(self) -> PartitionRegistration:
        if self._registration is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic_partition} has no role yet")
        return self._registration

    @property
    def current(self) -> PartitionRegistration | None:
        """The registration; None before the first role and after the last."""
        return self._registration

    def is_added(self, broker_id: int) -> bool:
        """Whether a reassignment adds a replica on a broker."""
        registration = self._registration
        return registration is not None and broker_id in registration.adding

    @property
    def leader_epoch(self) -> int:
        return self.registration.leader_epoch

    @property
    def is_leader(self) -> bool:
        return self.leadership is not None

    def take_role(self, registration: PartitionRegistration) -> None:
        """Adopt leader, epoch and in-sync replicas of the metadata log."""
        previous = self._registration
        if previous is not None and registration.partition_epoch < previous.partition_epoch + self.is_leader:
            # The controller's response to a proposal arrived before the metadata log. Adopting the same
            # change again would drop the next proposal, and with it a replica that may already be in sync
            # by it.
            return
        self._registration = registration
        if registration.leader == self._broker.id:
            self._lead(registration, previous)
        elif self.leadership is not None:
            self.leadership = None
            self.progress.abandon(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _lead(self, registration: PartitionRegistration, previous: PartitionRegistration | None) -> None:
        # If an epoch was skipped, another broker may have led in it: the known state of followers is void.
        new_leader = (
            self.leadership is None
            or previous is None
            or registration.leader_epoch > previous.leader_epoch + 1
        )
        leadership = self.leadership = self.leadership or Leadership(self._broker, registration)
        leadership.adopt(registration)
        if self.log is None:
            return
        if new_leader or (previous is not None and registration.leader_epoch > previous.leader_epoch):
            leadership.begin_epoch(self.log, new_leader=new_leader)
            self.progress.begin_epoch()
        self._advance(self.log)

    def stop(self) -> None:
        """Give up the replica, which leaves this node."""
        self._registration = None
        self.leadership = None
        self.progress.abandon(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # Log.

    def take_log(self, log: Log) -> None:
        """Use a log that could not be opened before, or has moved to another directory."""
        self.log = log
        leadership = self.leadership
        if leadership is not None:
            if self.leader_epoch != log.leader_epochs.latest or leadership.epoch_start_offset is None:
                leadership.begin_epoch(log, new_leader=True)
            self._advance(log)

    def go_offline(self) -> None:
        """Give up the log, whose directory has failed."""
        self.log = None
        self.progress.abandon(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def leader_log(self, current_leader_epoch: int = -1) -> Log:
        """Return the log if this node leads in the client's leader epoch (-1: any)."""
        self._check_epoch(current_leader_epoch)
        if self.leadership is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.usable_log()

    def readable_log(self, current_leader_epoch: int = -1) -> Log:
        """Return the log of a leader or follower, for consumers that may read from either (KIP-392)."""
        self._check_epoch(current_leader_epoch)
        return self.usable_log()

    def usable_log(self) -> Log:
        if self.log is None:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {self.topic_partition} is offline"
            )
        return self.log

    def _check_epoch(self, current_leader_epoch: int) -> None:
        registration = self.registration
        if current_leader_epoch >= 0:
            if current_leader_epoch < registration.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            if current_leader_epoch > registration.leader_epoch:
                raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    # Commits.

    def committed(self, offset: int) -> bool:
        """Return whether the record at `offset` is below the high watermark."""
        return self.log is not None and self.log.high_watermark > offset

    @property
    def may_have_committed_more(self) -> bool:
        """Whether an earlier leader may have committed records above the present high watermark."""
        start = None if self.leadership is None else self.leadership.epoch_start_offset
        return start is not None and self.log is not None and self.log.high_watermark < start

    def _advance(self, log: Log) -> None:
        leadership = self.leadership
        if leadership is not None:
            self.progress.advance(log, leadership.committed_end(log), self._commit_code)

    def _commit_code(self, log: Log) -> ErrorCode:
        """The ISR may have shrunk below `min.insync.replicas` after the append."""
        leadership = self.leadership
        if leadership is not None and len(leadership.maximal_isr) < leadership.min_isr(log):
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    # Leading.

    def check_in_sync(self) -> None:
        """Refuse a write with acks=all if the ISR is smaller than `min.insync.replicas`."""
        registration, log = self.registration, self.leader_log()
        min_insync_replicas = min(log.config.min_insync_replicas, len(registration.replicas))
        if len(registration.isr) < min_insync_replicas:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {list(registration.isr)} is insufficient to satisfy "
                f"the min.isr requirement of {min_insync_replicas} for partition {self.topic_partition}",
            )

    def append(
        self,
        records: Buffer,
        *,
        origin: Origin = Origin.CLIENT,
        prepared: bool = False,
        guard: Guard | None = NOT_REQUIRED,
        transaction_version: int = 0,
    ) -> AppendInfo:
        log = self.leader_log()
        info = log.append_as_leader(
            records,
            self.registration.leader_epoch,
            origin=origin,
            prepared=prepared,
            guard=guard,
            transaction_version=transaction_version,
        )
        traffic = self.traffic
        traffic.produce_requests += 1
        if not info.duplicate:
            traffic.messages_in += info.last_offset - info.first_offset + 1
            traffic.bytes_in += info.size
            progress = self.progress
            progress.appended(info.size)
            self._advance(log)
            progress.log_end.notify(info.size)
        return info

    def note_fetch(self, replica_id: int, offset: int, log_start: int, leader_end: int, epoch: int) -> None:
        """Record a follower's fetch at `offset`, sent when our log ended at `leader_end`."""
        log, leadership = self.leader_log(), self.leadership
        if leadership is None:
            return
        replica = leadership.follower(replica_id, epoch_known=True)
        before = replica.log_start_offset, replica.log_end_offset
        leadership.fetched(replica, offset, log_start, leader_end, epoch)
        growth = leadership.proposed_growth(replica, log)
        if growth is not None:
            logger.info("%s: broker %d has caught up", self.topic_partition, replica_id)
            self._changes.submit(self, growth)
        if before[1] != offset:
            self._advance(log)
        if before[0] != log_start:
            self.progress.log_start.notify(0)

    # In-sync replicas.

    def shrink_isr(self) -> None:
        """Propose to remove in-sync replicas that lag longer than `replica.lag.time.max.ms`."""
        if self.leadership is None or self.log is None:
            return
        # Replicas that were about to join the ISR and have fallen behind no longer hold back the high
        # watermark.
        self._advance(self.log)
        change = self.leadership.proposed_shrinking(self.log)
        if change is not None:
            isr = self.registration.isr
            logger.info(
                "%s: in-sync replicas %s shrink to %s",
                self.topic_partition,
                isr,
                change.isr,
                extra=event("isr.shrinks", partition=str(self.topic_partition)),
            )
            self._changes.submit(self, change)

    def still_wants(self, change: IsrChange) -> bool:
        return self.leadership is not None and self.leadership.pending is change

    def change_made(self, change: IsrChange, answer: ResponsePartitionData) -> None:
        leadership, size = self.leadership, len(self.registration.isr)
        if leadership is None or not leadership.confirmed(
            change, tuple(answer.isr), answer.leader_epoch, answer.partition_epoch
        ):
            return
        self._changes.count(len(answer.isr) - size)
        self._registration = leadership.registration
        logger.info(
            "%s: in-sync replicas are %s",
            self.topic_partition,
            answer.isr,
            extra=event("isr.changed", partition=str(self.topic_partition)),
        )
        if self.log is not None:
            self._advance(self.log)

    def change_refused(self, change: IsrChange, code: ErrorCode) -> bool:
        logger.info("%s: in-sync replicas %s refused: %s", self.topic_partition, change.isr, code.name)
        return self.leadership is not None and self.leadership.refused(change, code)

    # Following.

    def append_as_follower(self, records: Buffer, leader_epoch: int) -> int:
        """Append batches of the leader of an epoch; return the size of the whole batches among them."""
        if self.leadership is not None:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker is the leader of {self.topic_partition}"
            )
        info = self.usable_log().append_as_follower(records, leader_epoch)
        if info is None:
            return 0
        self.progress.appended(info.size)
        self.traffic.replication_bytes_in += info.size
        if self.is_added(self._broker.id):
            self.traffic.reassignment_bytes_in += info.size
        return info.size

    def adopt_offsets(self, high_watermark: int, log_start_offset: int) -> None:
        """Adopt the leader's high watermark, as far as the log reaches, and its log start offset."""
        log = self.usable_log()
        self.progress.advance(log, high_watermark, self._commit_code)
        if log_start_offset > log.log_start_offset:
            log.delete_records_before(min(log_start_offset, log.high_watermark))
