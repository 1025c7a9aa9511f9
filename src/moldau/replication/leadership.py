"""What a leader knows of its followers, and what follows: how far the log is committed, who is in sync.

- The high watermark is the smallest log end of the replicas that are in sync, that are about to be (a change
  the controller has not confirmed counts as far as it adds), or that are caught up and may be: else they
  could never come in while records keep coming. It stands still while fewer than `min.insync.replicas` are
  in sync.
- A replica comes in when it has everything committed and the beginning of this leader epoch; it goes when it
  was not caught up for `replica.lag.time.max.ms`. The controller decides: the leader proposes one change at a
  time, and a proposal that takes replicas away counts only once it is confirmed.

Pure: the partition that owns this sends the proposals and wakes those who wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.image import RECOVERED, PartitionRegistration
from moldau.replication.local_broker import ANY_EPOCH, LocalBroker
from moldau.replication.remote_replica import NEVER, RemoteReplica
from moldau.storage.log.log import Log


class IsrChange(NamedTuple):
    """A proposal to the controller: who shall be in sync, with the broker epochs they were seen with."""

    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


#: The controller did not make the change, and says that the state it started from is right.
_NOT_MADE = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
#: The metadata will tell how things are; until then nothing is proposed.
_OUTDATED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class Leadership:
    """From the moment a node leads until it does not, over any number of leader epochs."""

    __slots__ = ("_broker", "epoch_start_offset", "maximal_isr", "pending", "registration", "remotes")

    def __init__(self, broker: LocalBroker, registration: PartitionRegistration) -> None:
        self._broker = broker
        self.registration = registration
        self.remotes: dict[int, RemoteReplica] = {}
        #: The change under way.
        self.pending: IsrChange | None = None
        self.maximal_isr: Sequence[int] = registration.isr
        #: Where the log ended when this leader epoch began; None while there is no log.
        self.epoch_start_offset: int | None = None

    # Following the metadata.

    def adopt(self, registration: PartitionRegistration) -> None:
        """What the controller says about replicas and who is in sync; a proposal under way is off."""
        self.registration = registration
        self.pending = None
        self.maximal_isr = registration.isr
        others = [replica for replica in registration.replicas if replica != self._broker.id]
        self.remotes = {replica: self.remotes.get(replica) or RemoteReplica(replica) for replica in others}

    def begin_epoch(self, log: Log, *, new_leader: bool) -> None:
        """The first record of this epoch will be at the log end: followers must have come this far."""
        now_ms, end = self._broker.now_ms(), log.log_end_offset
        self.epoch_start_offset = end
        # Even without a record: followers with records of earlier epochs than this are told where to cut.
        log.leader_epochs.assign(self.registration.leader_epoch, end)
        for replica in self.remotes.values():
            in_sync = replica.id in self.registration.isr
            if new_leader:
                replica.forget(now_ms if in_sync else NEVER)
            else:
                replica.begin_epoch(now_ms, end, in_sync=in_sync)

    # What is committed.

    def min_isr(self, log: Log) -> int:
        return min(log.config.min_insync_replicas, len(self.remotes) + 1)

    def committed_end(self, log: Log) -> int:
        """How far every replica that counts has the log."""
        end = leader_end = log.log_end_offset
        if not self.remotes:
            return end
        if len(self.registration.isr) < self.min_isr(log):
            return log.high_watermark
        for replica in self.remotes.values():
            if replica.log_end_offset < end and (
                replica.id in self.maximal_isr or self._comes_in_soon(replica, leader_end)
            ):
                end = replica.log_end_offset
        return end

    def _comes_in_soon(self, replica: RemoteReplica, leader_end: int) -> bool:
        broker = self._broker
        return replica.is_caught_up(leader_end, broker.now_ms(), broker.max_lag_ms) and broker.may_be_in_sync(
            replica.id, replica.broker_epoch
        )

    def low_watermark(self, log: Log) -> int:
        """The smallest log start of all replicas that are alive."""
        starts = [
            replica.log_start_offset for replica in self.remotes.values() if self._broker.is_alive(replica.id)
        ]
        return min([log.log_start_offset, *starts])

    # Followers.

    def follower(self, replica_id: int, *, epoch_known: bool) -> RemoteReplica:
        """One of the replicas; KafkaError when it is none: the metadata here or there is behind."""
        replica = self.remotes.get(replica_id)
        if replica is None:
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if epoch_known else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(code, f"broker {replica_id} has no replica of this partition")
        return replica

    def fetched(
        self, replica: RemoteReplica, offset: int, log_start_offset: int, leader_end: int, broker_epoch: int
    ) -> None:
        broker = self._broker
        if broker.is_outdated(replica.id, broker_epoch):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {replica.id} fetches with epoch {broker_epoch}, which is over",
            )
        replica.fetched(offset, log_start_offset, leader_end, broker.now_ms(), broker_epoch)

    # Who is in sync.

    def proposed_growth(self, replica: RemoteReplica, log: Log) -> IsrChange | None:
        """Called after a fetch: may the replica come in?"""
        registration, start = self.registration, self.epoch_start_offset
        if self.pending is not None or replica.id in registration.isr or start is None:
            return None
        if replica.log_end_offset < max(start, log.high_watermark):
            return None
        if not self._broker.may_be_in_sync(replica.id, replica.broker_epoch):
            return None
        return self._propose((*registration.isr, replica.id), counted=(*registration.isr, replica.id))

    def proposed_shrinking(self, log: Log) -> IsrChange | None:
        """Called from time to time: who has fallen behind?"""
        isr = self.registration.isr
        if self.pending is not None or len(isr) < 2:
            return None
        broker, end = self._broker, log.log_end_offset
        now_ms, max_lag_ms = broker.now_ms(), broker.max_lag_ms
        remaining = tuple(
            member
            for member in isr
            if member == broker.id
            or (member in self.remotes and self.remotes[member].is_caught_up(end, now_ms, max_lag_ms))
        )
        return None if remaining == isr else self._propose(remaining, counted=isr)

    def _propose(self, isr: tuple[int, ...], *, counted: tuple[int, ...]) -> IsrChange:
        registration = self.registration
        epochs = tuple(self._broker_epoch(member) for member in isr)
        self.pending = IsrChange(isr, epochs, registration.leader_epoch, registration.partition_epoch)
        self.maximal_isr = counted
        return self.pending

    def _broker_epoch(self, member: int) -> int:
        if member == self._broker.id:
            return self._broker.epoch()
        remote = self.remotes.get(member)
        known = None if remote is None else remote.broker_epoch
        return ANY_EPOCH if known is None else known

    def confirmed(
        self, change: IsrChange, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int
    ) -> bool:
        """The controller made the change; False when this is not news."""
        registration = self.registration
        if (
            self.pending is not change
            or leader_epoch != registration.leader_epoch
            or partition_epoch < registration.partition_epoch
        ):
            return False
        self.adopt(
            registration._replace(isr=isr, partition_epoch=partition_epoch, leader_recovery_state=RECOVERED)
        )
        return True

    def refused(self, change: IsrChange, code: ErrorCode) -> bool:
        """The controller did not make the change; True when it should be asked again."""
        if self.pending is not change:
            return False
        if code in _NOT_MADE:
            self.adopt(self.registration)
            return False
        return code not in _OUTDATED
