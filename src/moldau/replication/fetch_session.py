"""The follower's side of an incremental fetch session (KIP-227): followed partitions and their positions.

A request contains only the partitions whose position has changed since the last one, and those that left the
session. A session that ends is replaced by a new object, because requests in flight belong to the old one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moldau.base.errors import ErrorCode
from moldau.base.ids import TopicId
from moldau.protocol.messages.fetch import FetchPartition, FetchResponse, FetchTopic, ForgottenTopic
from moldau.replication.partition import Partition

_FIRST_EPOCH = 1
_LAST_EPOCH = 2**31 - 1

PartitionKey = tuple[TopicId, int]


class FetchPosition(NamedTuple):
    """The state of a follower that its fetch reports to the leader."""

    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    log_start_offset: int


class FollowedPartition:
    """A partition that is followed in one leader epoch."""

    __slots__ = ("delayed", "failures", "fetched_in", "key", "lag", "leader_epoch", "partition", "reported")

    def __init__(self, key: PartitionKey, partition: Partition) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        #: The position of the last fetch, and the number of its request.
        self.reported: FetchPosition | None = None
        self.fetched_in = -1
        #: Whether the partition is left out of requests for a while, after a failure or by a throttle.
        self.delayed = False
        #: Consecutive failures.
        self.failures = 0
        #: The distance to the leader's high watermark; None before the first response.
        self.lag: int | None = None

    def position(self) -> FetchPosition | None:
        """Return the present position; None while the log is offline."""
        log = self.partition.log
        if log is None:
            return None
        return FetchPosition(
            self.leader_epoch, log.log_end_offset, log.leader_epochs.latest, log.log_start_offset
        )


class FetchSession:
    __slots__ = ("epoch", "id", "members")

    def __init__(self) -> None:
        self.id = 0
        self.epoch = 0
        #: The partitions that the leader has in the session.
        self.members: dict[PartitionKey, None] = {}

    @property
    def is_new(self) -> bool:
        """Whether the next request is a full fetch request."""
        return self.epoch == 0

    @property
    def is_established(self) -> bool:
        return self.id != 0

    def sent(self) -> None:
        """Advance the epoch, which the last request has used."""
        self.epoch = _FIRST_EPOCH if self.epoch == _LAST_EPOCH else self.epoch + 1

    def handle_response(self, response: FetchResponse) -> ErrorCode | None:
        """Return None if the session continues, else why it ended (NONE: the leader's cache is full)."""
        if response.error_code or response.session_id == 0:
            return ErrorCode(response.error_code)
        self.id = response.session_id
        return None


def by_topic(partitions: Iterable[tuple[PartitionKey, FetchPartition]]) -> list[FetchTopic]:
    topics: dict[TopicId, FetchTopic] = {}
    for (topic_id, _), partition in partitions:
        topics.setdefault(topic_id, FetchTopic(topic_id=topic_id)).partitions.append(partition)
    return list(topics.values())


def forgotten_by_topic(keys: Iterable[PartitionKey]) -> list[ForgottenTopic]:
    topics: dict[TopicId, ForgottenTopic] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, ForgottenTopic(topic_id=topic_id)).partitions.append(index)
    return list(topics.values())
