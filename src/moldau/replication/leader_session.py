"""The incremental fetch session a fetcher has with its leader: what changed is all that is sent (KIP-227)."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.base.errors import ErrorCode
from moldau.base.ids import TopicId
from moldau.protocol.messages.fetch import FetchPartition, FetchResponse, FetchTopic, ForgottenTopic
from moldau.replication.following import PartitionKey

_FIRST_EPOCH = 1
_LAST_EPOCH = 2**31 - 1


class LeaderSession:
    """One that ends is thrown away: requests still under way belong to the old one."""

    __slots__ = ("epoch", "id", "members")

    def __init__(self) -> None:
        self.id = 0
        self.epoch = 0
        #: The partitions the leader looks at for us.
        self.members: dict[PartitionKey, None] = {}

    @property
    def is_new(self) -> bool:
        """The next request must name everything."""
        return self.epoch == 0

    @property
    def is_established(self) -> bool:
        return self.id != 0

    def sent(self) -> None:
        """A request has taken the present epoch; the next one takes the next."""
        self.epoch = _FIRST_EPOCH if self.epoch == _LAST_EPOCH else self.epoch + 1

    def answered(self, response: FetchResponse) -> ErrorCode | None:
        """None while the session goes on; else it is over, with the reason (NONE: the leader has no room)."""
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
