"""Share sessions: a member names its partitions once, then only what changes.

A session belongs to a member of a group and to the connection it was opened on. When that connection goes, so
does the session, and everything the member holds is free again. There are at most
`group.share.max.share.sessions`.
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


class Place(NamedTuple):
    topic_id: TopicId
    partition: int


@dataclass(slots=True)
class SessionPartition:
    #: The topic's name when it was named; None when there was no such topic.
    topic: str | None
    #: Whether the next answer has to name it, records or not.
    told_next: bool = False


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


@dataclass(slots=True)
class ShareSession:
    key: SessionKey
    connection: Connection
    partitions: dict[Place, SessionPartition]
    epoch: int = 1

    def update(self, named: Iterable[tuple[Place, str | None]], forgotten: Iterable[Place]) -> None:
        for place, topic in named:
            self.partitions.setdefault(place, SessionPartition(topic, told_next=True))
        for place in forgotten:
            self.partitions.pop(place, None)

    def must_tell(self, place: Place, *, records: bool, error: bool) -> bool:
        """Whether an answer names this partition; those with records go to the end of the line."""
        known = self.partitions.get(place)
        if known is None:
            return True
        told = records or error or known.told_next
        known.told_next = error
        if records:
            del self.partitions[place]
            self.partitions[place] = known
        return told


def next_epoch(epoch: int) -> int:
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == _LAST_EPOCH else epoch + 1


@dataclass(slots=True)
class ShareSessions:
    max_sessions: int
    _sessions: dict[SessionKey, ShareSession] = field(default_factory=dict)
    #: The session that was opened last on each connection.
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
        self, key: SessionKey, connection: Connection, named: Iterable[tuple[Place, str | None]]
    ) -> ShareSession:
        """A new session, instead of the one the member may have had."""
        self._sessions.pop(key, None)
        if len(self._sessions) >= self.max_sessions:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        partitions = {place: SessionPartition(topic) for place, topic in named}
        session = self._sessions[key] = ShareSession(key, connection, partitions)
        self._opened_on[connection] = key
        return session

    def go_on(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session, if this is the request it waits for."""
        session = self.get(key)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(epoch)
        return session

    def remove(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.pop(key, None)

    def disconnected(self, connection: Connection) -> tuple[SessionKey | None, ShareSession | None]:
        """Whose connection it was, and the session that ends with it."""
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
