"""What every kind of group answers, whichever protocol its members speak."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from moldau.base.ids import Uuid
from moldau.protocol.messages.list_groups import ListedGroup
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.statemachine.timers import Timers

CLASSIC = "classic"
CONSUMER = "consumer"
SHARE = "share"
STREAMS = "streams"
GROUP_TYPES = frozenset({CLASSIC, CONSUMER, SHARE, STREAMS})


class CommittedOffset(NamedTuple):
    """A committed offset with what was stored beside it."""

    offset: int
    #: -1 when the client did not say.
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    #: None unless an old client asked for a retention of its own.
    expire_timestamp_ms: int | None
    topic_id: Uuid
    #: Where the record lies in the coordinator's log; -1 before it is stored.
    record_offset: int = -1


class CommitTarget(NamedTuple):
    """What a member wants to commit an offset for."""

    topic: str
    topic_id: Uuid
    partition: int


#: Raises `KafkaError` when the offset of one partition must not be committed.
CheckPartition = Callable[[CommitTarget], None]
#: The time from which the age of an offset counts.
BaseTimestamp = Callable[[CommittedOffset], int]


class Group(Protocol):
    group_id: str

    @property
    def type(self) -> str: ...

    @property
    def state_name(self) -> str: ...

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members and waits for none."""
        ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def listed(self) -> ListedGroup: ...

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        api_version: int,
        *,
        transactional: bool,
    ) -> CheckPartition | None:
        """Raise `KafkaError` unless this member may commit; what to check of each partition, if anything."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise `KafkaError` unless this member may read the offsets."""
        ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None: ...

    def offset_expiration(self) -> BaseTimestamp | None:
        """From when the age of the group's offsets counts; None while none may expire."""
        ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group, its offsets apart."""
        ...

    def cancel_timers(self, timers: Timers) -> None: ...
