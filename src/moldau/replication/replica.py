"""A replica on this node, whatever its role: its log, the epoch it is in, who waits for it.

Whoever waits is of three kinds: consumers and coordinators for what is committed, followers for what is
appended, producers with acks=all for one offset.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId, TopicPartition
from moldau.metadata.image import PartitionRegistration
from moldau.replication.commits import Commits, Done
from moldau.replication.leadership import Leadership
from moldau.replication.waiters import Waiter, Waiters
from moldau.storage.disk.disk import Buffer
from moldau.storage.log.log import Log


class Replica:
    __slots__ = (
        "_commits",
        "_registration",
        "_uncommitted_bytes",
        "appended",
        "cut",
        "leadership",
        "log",
        "progress",
        "topic_id",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, topic_id: TopicId, log: Log | None) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        #: None while the directory that holds it is offline.
        self.log = log
        #: None unless this node leads.
        self.leadership: Leadership | None = None
        self._registration: PartitionRegistration | None = None
        #: For what consumers may read, for what followers may, and for the start of the log.
        self.progress, self.appended, self.cut = Waiters(), Waiters(), Waiters()
        self._commits = Commits()
        self._uncommitted_bytes = 0

    @property
    def registration(self) -> PartitionRegistration:
        if self._registration is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic_partition} has no role yet")
        return self._registration

    @property
    def current(self) -> PartitionRegistration | None:
        """The same, None before the first role and after the last."""
        return self._registration

    @property
    def leader_epoch(self) -> int:
        return self.registration.leader_epoch

    @property
    def is_leader(self) -> bool:
        return self.leadership is not None

    # The log.

    def leader_log(self, current_leader_epoch: int = -1) -> Log:
        """The log, when this node leads in the epoch the caller knows (-1: any)."""
        self._check_epoch(current_leader_epoch)
        if self.leadership is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.usable_log()

    def readable_log(self, current_leader_epoch: int = -1) -> Log:
        """The log of a leader or a follower, for consumers that may read from either."""
        self._check_epoch(current_leader_epoch)
        return self.usable_log()

    def _check_epoch(self, current_leader_epoch: int) -> None:
        registration = self.registration
        if current_leader_epoch >= 0:
            if current_leader_epoch < registration.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            if current_leader_epoch > registration.leader_epoch:
                raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def usable_log(self) -> Log:
        if self.log is None:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the disk that holds {self.topic_partition} is offline"
            )
        return self.log

    # Progress.

    def committed(self, offset: int) -> bool:
        """Whether every in-sync replica has the record at `offset`."""
        return self.log is not None and self.log.high_watermark > offset

    @property
    def may_have_committed_more(self) -> bool:
        """Whether a leader before this one may have committed what is not committed here yet."""
        start = None if self.leadership is None else self.leadership.epoch_start_offset
        return start is not None and self.log is not None and self.log.high_watermark < start

    def when_committed(self, offset: int, done: Done) -> None:
        """`done` is told once the record at `offset` is committed, or never will be by this leader."""
        self._commits.add(offset + 1, done)

    def _commit_to(self, log: Log, offset: int) -> None:
        before = log.high_watermark
        if offset <= before:
            return
        log.high_watermark = offset
        reached = log.high_watermark
        if reached == before:
            return
        size = self._uncommitted_bytes
        if reached < log.log_end_offset:
            size = size * (reached - before) // (log.log_end_offset - before)
        self._uncommitted_bytes -= size
        self.progress.wake(max(1, size))
        self._commits.reached(reached, self._commit_code(log))

    def _commit_code(self, log: Log) -> ErrorCode:
        """What was written may be committed by fewer replicas than were asked for."""
        leadership = self.leadership
        if leadership is not None and len(leadership.maximal_isr) < leadership.min_isr(log):
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    def _look_again(self, code: ErrorCode) -> None:
        self._commits.fail(code)
        for waiters in (self.progress, self.appended, self.cut):
            waiters.wake(0)

    # Following.

    def append_as_follower(self, records: Buffer, leader_epoch: int) -> int:
        """Batches of the leader of an epoch; how many bytes of them were whole."""
        if self.leadership is not None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic_partition} is led here")
        info = self.usable_log().append_as_follower(records, leader_epoch)
        if info is None:
            return 0
        self._uncommitted_bytes += info.size
        return info.size

    def adopt_offsets(self, high_watermark: int, log_start_offset: int) -> None:
        """What the leader says is committed, as far as it is here, and where its log starts."""
        log = self.usable_log()
        self._commit_to(log, high_watermark)
        if log_start_offset > log.log_start_offset:
            log.delete_records_before(min(log_start_offset, log.high_watermark))

    # Waiting.

    def add_waiter(self, waiter: Waiter) -> None:
        self.progress.add(waiter)

    def remove_waiter(self, waiter: Waiter) -> None:
        self.progress.remove(waiter)
