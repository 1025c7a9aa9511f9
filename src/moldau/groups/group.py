"""The interface of all group types, and the values that offsets need of it."""

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
    """A committed offset with its stored fields."""

    offset: int
    #: -1 if the client did not send it.
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    #: None unless an old client sent a retention time.
    expire_timestamp_ms: int | None
    topic_id: Uuid
    #: The offset of the record in the coordinator's log; -1 before it is stored.
    record_offset: int = -1


class CommitTarget(NamedTuple):
    """The partition of a committed offset."""

    topic: str
    topic_id: Uuid
    partition: int


#: Raises `KafkaError` if the offset of a partition must not be committed.
CheckPartition = Callable[[CommitTarget], None]
#: Returns the time from which the retention of an offset counts.
BaseTimestamp = Callable[[CommittedOffset], int]


class Group(Protocol):
    group_id: str

    @property
    def type(self) -> str: ...

    @property
    def state_name(self) -> str: ...

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members and no rebalance."""
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
        """Raise `KafkaError` unless the member may commit; return the check of each partition, if any."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise `KafkaError` unless the member may fetch offsets."""
        ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None: ...

    def offset_expiration(self) -> BaseTimestamp | None:
        """Return the start of the retention time of offsets; None if no offset may expire."""
        ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that remove the group, without its offsets."""
        ...

    def cancel_timers(self, timers: Timers) -> None: ...
