"""The effects of decisions: work outside a state machine, requested by value.

A decision lists effects; the runtime hands each one to its executor once the decision's records are
committed. An executor does the I/O and reports the result to the shard as a new decision. The table of
executors is `moldau.server.coordinators.effects`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from moldau.base.ids import TopicId, TopicPartition
from moldau.statemachine.coordinator_records import Producer


class ResolveRegexes(NamedTuple):
    """Match a consumer group's regular expressions against topic names (KIP-848)."""

    group_id: str
    regexes: tuple[str, ...]
    topics: Collection[str]
    #: The offset of the metadata image that `topics` are taken from.
    metadata_offset: int
    timestamp_ms: int
    #: Returns whether the member that requested the resolution may describe a topic; None: all topics.
    may_describe: Callable[[str], bool] | None = None


class InitializeShareGroupState(NamedTuple):
    """Initialize share partitions at the share coordinator (KIP-932)."""

    group_id: str
    state_epoch: int
    #: Start offset by topic and partition; -1 leaves the choice to `share.auto.offset.reset`.
    offsets: Mapping[TopicId, Mapping[int, int]]


class WriteTxnMarkers(NamedTuple):
    """Write the end marker of a prepared transaction to each of its partitions (KIP-98)."""

    transactional_id: str
    producer: Producer
    committed: bool
    coordinator_epoch: int
    partitions: frozenset[TopicPartition]
    transaction_version: int


Effect = ResolveRegexes | InitializeShareGroupState | WriteTxnMarkers
