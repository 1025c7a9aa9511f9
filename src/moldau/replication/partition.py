"""One partition as this node sees it: its log, its role, and how far it is committed.

A leader keeps a `Leadership`, a follower none. What both can do is in `Replica`.

Invariants:

- the high watermark never goes back, except where a log is cut below it after an unclean election;
- state changes synchronously on the event loop; whoever waits is woken after the change is complete.
"""

from __future__ import annotations

import logging

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId, TopicPartition
from moldau.metadata.image import PartitionRegistration
from moldau.protocol.messages.alter_partition import ResponsePartitionData
from moldau.replication.leadership import IsrChange, Leadership
from moldau.replication.local_broker import LocalBroker
from moldau.replication.partition_changes import PartitionChanges
from moldau.replication.replica import Replica
from moldau.replication.waiters import Waiter
from moldau.storage.disk.disk import Buffer
from moldau.storage.log.append import AppendInfo, Origin
from moldau.storage.log.log import Log
from moldau.storage.producers.verification import NOT_REQUIRED, Guard

__all__ = ["Partition", "Waiter"]

logger = logging.getLogger(__name__)


class Partition(Replica):
    __slots__ = ("_broker", "_changes")

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        log: Log | None,
        broker: LocalBroker,
        changes: PartitionChanges,
    ) -> None:
        super().__init__(topic_partition, topic_id, log)
        self._broker = broker
        self._changes = changes

    # The role.

    def take_role(self, registration: PartitionRegistration) -> None:
        """Adopt what the metadata log says about leader, epoch and in-sync replicas."""
        previous = self._registration
        if previous is not None and registration.partition_epoch < previous.partition_epoch + self.is_leader:
            # The controller's answer to a proposal was faster than the metadata log. To adopt it again would
            # drop the next proposal, and with it the replica that may already be in sync by it.
            return
        self._registration = registration
        if registration.leader == self._broker.id:
            self._lead(registration, previous)
        elif self.leadership is not None:
            self.leadership = None
            self._look_again(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _lead(self, registration: PartitionRegistration, previous: PartitionRegistration | None) -> None:
        # In an epoch that we did not hear of somebody else may have led: what we know of followers is void.
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
            self._uncommitted_bytes = 0
            # Fetches that wait were asked in an epoch that is over.
            self.appended.wake(0)
        self._advance(self.log)

    def stop(self) -> None:
        """The replica leaves this node; whoever waits looks again and finds it gone."""
        self._registration = None
        self.leadership = None
        self._look_again(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def take_log(self, log: Log) -> None:
        """The log, when it could not be opened before, or now lies elsewhere."""
        self.log = log
        leadership = self.leadership
        if leadership is not None:
            if self.leader_epoch != log.leader_epochs.latest or leadership.epoch_start_offset is None:
                leadership.begin_epoch(log, new_leader=True)
            self._advance(log)

    def go_offline(self) -> None:
        """The disk below it has failed; whoever waits looks again and is told."""
        self.log = None
        self._look_again(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # Leading.

    def check_in_sync(self) -> None:
        """With acks=all the write is refused when too few replicas would hold it."""
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
        if not info.duplicate:
            self._uncommitted_bytes += info.size
            self._advance(log)
            self.appended.wake(info.size)
        return info

    def note_fetch(self, replica_id: int, offset: int, log_start: int, leader_end: int, epoch: int) -> None:
        """A follower asked for `offset` when our log ended at `leader_end`: it has everything before."""
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
            self.cut.wake(0)

    def shrink_isr(self) -> None:
        """Let go of in-sync replicas that are too far behind."""
        if self.leadership is None or self.log is None:
            return
        # Who was about to come in and did not need not be waited for any longer.
        self._advance(self.log)
        change = self.leadership.proposed_shrinking(self.log)
        if change is not None:
            isr = self.registration.isr
            logger.info("%s: in-sync replicas %s shrink to %s", self.topic_partition, isr, change.isr)
            self._changes.submit(self, change)

    # What became of proposals.

    def still_wants(self, change: IsrChange) -> bool:
        return self.leadership is not None and self.leadership.pending is change

    def change_made(self, change: IsrChange, answer: ResponsePartitionData) -> None:
        leadership = self.leadership
        if leadership is None or not leadership.confirmed(
            change, tuple(answer.isr), answer.leader_epoch, answer.partition_epoch
        ):
            return
        self._registration = leadership.registration
        logger.info("%s: in-sync replicas are %s", self.topic_partition, answer.isr)
        if self.log is not None:
            self._advance(self.log)

    def change_refused(self, change: IsrChange, code: ErrorCode) -> bool:
        logger.info("%s: in-sync replicas %s refused: %s", self.topic_partition, change.isr, code.name)
        return self.leadership is not None and self.leadership.refused(change, code)

    def _advance(self, log: Log) -> None:
        leadership = self.leadership
        if leadership is not None:
            self._commit_to(log, leadership.committed_end(log))
