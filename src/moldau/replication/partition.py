"""One partition as this node sees it: its log, its role, and how far it is committed.

Invariants:

- the high watermark never goes back while this node leads, and equals the smallest log end of the
  in-sync replicas; with an ISR of one that is our own log end, on the same code;
- state changes synchronously on the event loop; whoever waits is woken after the change is complete.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId, TopicPartition
from moldau.metadata.image import PartitionRegistration
from moldau.storage.disk import Buffer
from moldau.storage.log import AppendInfo, Log, Origin
from moldau.storage.verification import NOT_REQUIRED, Guard

#: Called with the number of bytes that became readable.
Waiter = Callable[[int], None]


class Partition:
    __slots__ = (
        "_registration",
        "_waiters",
        "local_id",
        "log",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self, topic_partition: TopicPartition, topic_id: TopicId, log: Log | None, local_id: int
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        #: None while the directory that holds it is offline.
        self.log = log
        self.local_id = local_id
        self._registration: PartitionRegistration | None = None
        self._waiters: dict[Waiter, None] = {}

    @property
    def registration(self) -> PartitionRegistration:
        if self._registration is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic_partition} has no role yet")
        return self._registration

    @property
    def leader_epoch(self) -> int:
        return self.registration.leader_epoch

    @property
    def is_leader(self) -> bool:
        return self._registration is not None and self._registration.leader == self.local_id

    def take_role(self, registration: PartitionRegistration) -> None:
        """Adopt what the metadata log says about leader, epoch and in-sync replicas."""
        previous = self._registration
        self._registration = registration
        if self.log is None or not self.is_leader:
            return
        if previous is None or previous.leader_epoch != registration.leader_epoch:
            self.log.leader_epochs.assign(registration.leader_epoch, self.log.log_end_offset)
        self._advance_high_watermark()

    def leader_log(self, current_leader_epoch: int = -1) -> Log:
        """The log, when this node leads in the epoch the caller knows (-1: any)."""
        registration = self.registration
        if current_leader_epoch >= 0:
            if current_leader_epoch < registration.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            if current_leader_epoch > registration.leader_epoch:
                raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if registration.leader != self.local_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.usable_log()

    def usable_log(self) -> Log:
        if self.log is None:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the disk that holds {self.topic_partition} is offline"
            )
        return self.log

    def check_in_sync(self) -> None:
        """With acks=all the write is refused when too few replicas would hold it."""
        registration = self.registration
        min_insync_replicas = min(self.usable_log().config.min_insync_replicas, len(registration.replicas))
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
            self._advance_high_watermark()
            self._wake(info.size)
        return info

    def committed(self, offset: int) -> bool:
        """Whether every in-sync replica has the record at `offset`."""
        return self.log is not None and self.log.high_watermark > offset

    def add_waiter(self, waiter: Waiter) -> None:
        self._waiters[waiter] = None

    def remove_waiter(self, waiter: Waiter) -> None:
        self._waiters.pop(waiter, None)

    def stop(self) -> None:
        """The replica leaves this node; whoever waits looks again and finds it gone."""
        self._registration = None
        self._wake(0)

    def take_log(self, log: Log) -> None:
        """The log, when it could not be opened before, or now lies elsewhere."""
        self.log = log
        if self.is_leader:
            if self.leader_epoch != log.leader_epochs.latest:
                log.leader_epochs.assign(self.leader_epoch, log.log_end_offset)
            self._advance_high_watermark()

    def go_offline(self) -> None:
        """The disk below it has failed; whoever waits looks again and is told."""
        self.log = None
        self._wake(0)

    def _advance_high_watermark(self) -> None:
        log = self.log
        if log is not None and self.registration.isr == (self.local_id,):
            log.high_watermark = log.log_end_offset

    def _wake(self, size: int) -> None:
        for waiter in list(self._waiters):
            waiter(size)
