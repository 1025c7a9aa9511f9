"""Share sessions (KIP-932): a member names its partitions once, then only changes.

A session belongs to a member of a group and to the connection that opened it. When the connection closes, the
session ends, and the records the member has acquired become available again. `group.share.max.share.sessions`
limits the number of sessions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.network.connection import Connection

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
_LAST_EPOCH = 2**31 - 1


class TopicIdPartition(NamedTuple):
    topic_id: TopicId
    partition: int


@dataclass(slots=True)
class SessionPartition:
    #: The topic's name when it was added; None if the topic did not exist.
    topic: str | None
    #: Whether the next response includes the partition even without records.
    include_next: bool = False


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


@dataclass(slots=True)
class ShareSession:
    key: SessionKey
    connection: Connection
    partitions: dict[TopicIdPartition, SessionPartition]
    epoch: int = 1

    def update(
        self, added: Iterable[tuple[TopicIdPartition, str | None]], forgotten: Iterable[TopicIdPartition]
    ) -> None:
        for partition, topic in added:
            self.partitions.setdefault(partition, SessionPartition(topic, include_next=True))
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def must_include(self, partition: TopicIdPartition, *, records: bool, error: bool) -> bool:
        """Return whether a response includes a partition; partitions with records move to the end."""
        known = self.partitions.get(partition)
        if known is None:
            return True
        include = records or error or known.include_next
        known.include_next = error
        if records:
            del self.partitions[partition]
            self.partitions[partition] = known
        return include


def next_epoch(epoch: int) -> int:
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _LAST_EPOCH else epoch + 1


@dataclass(slots=True)
class ShareSessions:
    max_sessions: int
    _sessions: dict[SessionKey, ShareSession] = field(default_factory=dict)
    #: The latest session opened on each connection.
    _opened_on: dict[Connection, SessionKey] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession:
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def find(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def open(
        self, key: SessionKey, connection: Connection, added: Iterable[tuple[TopicIdPartition, str | None]]
    ) -> ShareSession:
        """Open a new session, replacing an earlier one of the member."""
        self._sessions.pop(key, None)
        if len(self._sessions) >= self.max_sessions:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        partitions = {partition: SessionPartition(topic) for partition, topic in added}
        session = self._sessions[key] = ShareSession(key, connection, partitions)
        self._opened_on[connection] = key
        return session

    def advance(self, key: SessionKey, epoch: int) -> ShareSession:
        """Return the session and advance its epoch; INVALID_SHARE_SESSION_EPOCH if `epoch` is not current."""
        session = self.get(key)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(epoch)
        return session

    def remove(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.pop(key, None)

    def disconnected(self, connection: Connection) -> tuple[SessionKey | None, ShareSession | None]:
        """Return the key of the last session on a connection, and the session if it ends with it."""
        key = self._opened_on.pop(connection, None)
        session = None if key is None else self._sessions.get(key)
        if session is not None and session.connection is not connection:
            session = None
        return key, session

    def has_members(self, group_id: str) -> bool:
        return any(key.group_id == group_id for key in self._sessions)

    def clear(self) -> None:
        self._sessions.clear()
        self._opened_on.clear()
