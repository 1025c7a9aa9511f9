"""A partition that a fetcher follows: what it asks its leader for, and where its log must be cut."""

from __future__ import annotations

from typing import NamedTuple

from moldau.base.ids import TopicId
from moldau.replication.partition import Partition
from moldau.storage.log.log import Log

PartitionKey = tuple[TopicId, int]


class Position(NamedTuple):
    """What a follower tells its leader: the leader epoch it knows, and how its own log stands."""

    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    log_start_offset: int


class Following:
    """One leader epoch long. `asked` is what the leader was told last, in the request of that number."""

    __slots__ = ("asked", "asked_in", "delayed", "key", "lag", "leader_epoch", "partition", "retries")

    def __init__(self, key: PartitionKey, partition: Partition) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.asked: Position | None = None
        self.asked_in = -1
        #: Whether it is left out of the requests for a while.
        self.delayed = False
        self.retries = 0
        #: How far it is behind what the leader had committed; None until the leader said.
        self.lag: int | None = None

    def position(self) -> Position | None:
        """None while there is no log."""
        log = self.partition.log
        if log is None:
            return None
        return Position(self.leader_epoch, log.log_end_offset, log.leader_epochs.latest, log.log_start_offset)


def truncation_offset(log: Log, leader_epoch: int, leader_end_offset: int) -> int:
    """Where to cut a log whose last records the leader does not have.

    `leader_epoch` is the largest epoch that the leader knows up to ours, and `leader_end_offset` where it
    ends there. An epoch we do not know ourselves ends what we may share with the leader: the next fetch will
    tell of an earlier one, or that we agree.
    """
    end = log.log_end_offset
    epoch, end_here = log.end_offset_for_epoch(leader_epoch)
    if end_here < 0:
        return min(leader_end_offset, end)
    if epoch != leader_epoch:
        return min(end_here, end)
    return min(end_here, leader_end_offset, end)
