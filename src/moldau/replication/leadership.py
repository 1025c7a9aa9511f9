"""The leader's view of its followers: the high watermark, and which replicas are in sync.

- The high watermark is the smallest log end offset of the replicas in the maximal ISR (the ISR, plus
  replicas of a proposed but unconfirmed expansion) and of the caught-up replicas that may join it;
  otherwise those could never join while records keep arriving. It does not advance while the ISR is smaller
  than `min.insync.replicas`.
- A replica joins the ISR when it has reached the high watermark and the start of this leader epoch. It
  leaves when it was not caught up for `replica.lag.time.max.ms`. The controller decides: the leader
  proposes one change at a time (AlterPartition), and a proposed shrink takes effect only when it is
  confirmed.

Pure: the owning partition sends proposals and notifies observers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.broker.support import RACK_AWARE_SELECTOR
from moldau.metadata.image import RECOVERED, MetadataImage, PartitionRegistration
from moldau.replication.local_broker import ANY_EPOCH, LocalBroker
from moldau.replication.remote_replica import NEVER, RemoteReplica
from moldau.storage.log.log import Log

#: No follower is preferred: the consumer reads from the leader.
READ_FROM_LEADER = -1


class IsrChange(NamedTuple):
    """A proposed ISR, with the broker epochs in which its members last fetched."""

    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


#: The controller refused the change, and the leader's present state is right.
_NOT_MADE = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
#: The leader's state is outdated: it proposes nothing until the metadata arrives.
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
    """Exists while this node leads, over any number of leader epochs."""

    __slots__ = ("_broker", "epoch_start_offset", "maximal_isr", "pending", "registration", "remotes")

    def __init__(self, broker: LocalBroker, registration: PartitionRegistration) -> None:
        self._broker = broker
        self.registration = registration
        self.remotes: dict[int, RemoteReplica] = {}
        #: The proposed change without a response.
        self.pending: IsrChange | None = None
        self.maximal_isr: Sequence[int] = registration.isr
        #: The log end offset at the start of this leader epoch; None while the log is offline.
        self.epoch_start_offset: int | None = None

    # Metadata.

    def adopt(self, registration: PartitionRegistration) -> None:
        """Adopt replicas and ISR of the controller; a pending proposal is dropped."""
        self.registration = registration
        self.pending = None
        self.maximal_isr = registration.isr
        others = [replica for replica in registration.replicas if replica != self._broker.id]
        self.remotes = {replica: self.remotes.get(replica) or RemoteReplica(replica) for replica in others}

    def begin_epoch(self, log: Log, *, new_leader: bool) -> None:
        """Record the log end offset as the start of this epoch, which followers must reach to be in sync."""
        now_ms, end = self._broker.now_ms(), log.log_end_offset
        self.epoch_start_offset = end
        # Even if no record is written in it, the epoch ends earlier ones: followers truncate by it.
        log.leader_epochs.assign(self.registration.leader_epoch, end)
        for replica in self.remotes.values():
            in_sync = replica.id in self.registration.isr
            if new_leader:
                replica.forget(now_ms if in_sync else NEVER)
            else:
                replica.begin_epoch(now_ms, end, in_sync=in_sync)

    # High watermark.

    def min_isr(self, log: Log) -> int:
        return min(log.config.min_insync_replicas, len(self.remotes) + 1)

    def committed_end(self, log: Log) -> int:
        """Return the smallest log end offset of all replicas that count for the high watermark."""
        end = leader_end = log.log_end_offset
        if not self.remotes:
            return end
        if len(self.registration.isr) < self.min_isr(log):
            return log.high_watermark
        for replica in self.remotes.values():
            if replica.log_end_offset < end and (
                replica.id in self.maximal_isr or self._may_join_isr(replica, leader_end)
            ):
                end = replica.log_end_offset
        return end

    def _may_join_isr(self, replica: RemoteReplica, leader_end: int) -> bool:
        broker = self._broker
        return replica.is_caught_up(leader_end, broker.now_ms(), broker.max_lag_ms) and broker.may_be_in_sync(
            replica.id, replica.broker_epoch
        )

    def low_watermark(self, log: Log) -> int:
        """Return the smallest log start offset of all live replicas."""
        starts = [
            replica.log_start_offset for replica in self.remotes.values() if self._broker.is_alive(replica.id)
        ]
        return min([log.log_start_offset, *starts])

    # Followers.

    def follower(self, replica_id: int, *, epoch_known: bool) -> RemoteReplica:
        """Return a follower; `KafkaError` if it has no replica, because its metadata or ours is behind."""
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
                f"broker {replica.id} fetches with the outdated broker epoch {broker_epoch}",
            )
        replica.fetched(offset, log_start_offset, leader_end, broker.now_ms(), broker_epoch)

    # In-sync replicas.

    def proposed_growth(self, replica: RemoteReplica, log: Log) -> IsrChange | None:
        """Propose to add a replica that has just fetched, if it has caught up; None otherwise."""
        registration, start = self.registration, self.epoch_start_offset
        if self.pending is not None or replica.id in registration.isr or start is None:
            return None
        if replica.log_end_offset < max(start, log.high_watermark):
            return None
        if not self._broker.may_be_in_sync(replica.id, replica.broker_epoch):
            return None
        return self._propose((*registration.isr, replica.id), counted=(*registration.isr, replica.id))

    def proposed_shrinking(self, log: Log) -> IsrChange | None:
        """Propose to remove the replicas that lag; None if there are none."""
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
        """Adopt a change that the controller made; return False if it is outdated."""
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
        """Handle a refused change; return whether to propose it again."""
        if self.pending is not change:
            return False
        if code in _NOT_MADE:
            self.adopt(self.registration)
            return False
        return code not in _OUTDATED


def preferred_replica(
    selector: str | None, rack: str, leadership: Leadership, fetch_offset: int, image: MetadataImage
) -> int:
    """Return the in-sync follower in the consumer's rack that has the offset (KIP-392); -1 for the leader."""
    if selector != RACK_AWARE_SELECTOR or not rack:
        return READ_FROM_LEADER
    brokers = image.cluster.brokers
    leader = brokers.get(leadership.registration.leader)
    if leader is not None and leader.rack == rack:
        return READ_FROM_LEADER
    candidates = [
        replica
        for replica in leadership.remotes.values()
        if replica.id in leadership.registration.isr
        and replica.log_start_offset <= fetch_offset <= replica.log_end_offset
        and (broker := brokers.get(replica.id)) is not None
        and not broker.fenced
        and broker.rack == rack
    ]
    # The follower with the largest log end offset and, among several, the last to be caught up.
    best = max(candidates, key=lambda each: (each.log_end_offset, each.last_caught_up_ms), default=None)
    return READ_FROM_LEADER if best is None else best.id
