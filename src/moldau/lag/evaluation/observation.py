"""What one round of requests has found: the input of the evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.base.ids import TopicPartition, Uuid

#: Types of groups, as ListGroups names them, in lower case.
CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"


#: Times and the log end offsets at these times, in the order of time.
Points = Sequence[tuple[int, int]]


class CommittedOffset(NamedTuple):
    """The position of a group in a partition.

    `lag` is the lag that the broker counted, for share groups; None: it is the difference to the end offset.
    """

    offset: int
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    client_id: str
    host: str
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class GroupObservation:
    """A group in one round.

    `committed` is None if the offsets could not be read in this round, `members` if the group could not be
    described; `error` then says why. `unread` are partitions whose offset alone could not be read.
    """

    group: str
    type: str
    state: str
    committed: Mapping[TopicPartition, CommittedOffset] | None
    members: tuple[Member, ...] | None = ()
    epoch: int | None = None
    error: str | None = None
    unread: frozenset[TopicPartition] = frozenset()


#: By user and client id: None if the limit does not depend on it, "" for the default.
Quotas = Mapping[tuple[str | None, str | None], float]


@dataclass(frozen=True, slots=True)
class Round:
    """All groups and offsets at one time.

    A partition that is missing in `end_offsets` was not available. `start_offsets` contains partitions with
    lag only. `missing_topics` are those that the broker does not know; its metadata may be outdated. `quotas`
    are the `consumer_byte_rate` limits.
    """

    time_ms: int
    groups: Mapping[str, GroupObservation]
    end_offsets: Mapping[TopicPartition, int]
    start_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, Uuid] = field(default_factory=dict)
    missing_topics: frozenset[str] = frozenset()
    quotas: Quotas = field(default_factory=dict)
    #: End offsets at earlier times, for partitions that were not observed then.
    past: Mapping[TopicPartition, Points] = field(default_factory=dict)
    #: How many partitions the topics have.
    partition_counts: Mapping[str, int] = field(default_factory=dict)
