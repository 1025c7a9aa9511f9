"""The state of a share partition as the share coordinator persists it, and its records.

A ShareSnapshot record has the whole state, a ShareUpdate record the changes since. A tombstone of the
snapshot key removes the state.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from moldau.protocol.stored.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from moldau.protocol.stored.share_state import StateBatch as StoredBatch
from moldau.share.keys import SharePartitionKey
from moldau.share.state_batches import UNKNOWN_START_OFFSET, StateBatch, combine
from moldau.statemachine.coordinator_records import CoordinatorRecord

UNKNOWN_COUNT = -1


class ShareGroupOffset(NamedTuple):
    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNKNOWN_START_OFFSET
    #: The number of complete records from the start offset on; -1 if unknown.
    complete_count: int = UNKNOWN_COUNT
    batches: tuple[StateBatch, ...] = ()
    created_ms: int = 0
    written_ms: int = 0

    @classmethod
    def from_snapshot(cls, value: ShareSnapshotValue) -> ShareGroupOffset:
        return cls(
            value.snapshot_epoch,
            value.state_epoch,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            read_batches(value.state_batches),
            value.create_timestamp,
            value.write_timestamp,
        )

    def updated(self, value: ShareUpdateValue) -> ShareGroupOffset:
        start = self.start_offset if value.start_offset == UNKNOWN_START_OFFSET else value.start_offset
        return self._replace(
            start_offset=start,
            complete_count=value.delivery_complete_count,
            leader_epoch=self.leader_epoch if value.leader_epoch == -1 else value.leader_epoch,
            batches=combine(self.batches, read_batches(value.state_batches), start),
        )


def snapshot_record(key: SharePartitionKey, state: ShareGroupOffset) -> CoordinatorRecord:
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=_stored(state.batches),
    )
    return CoordinatorRecord(ShareSnapshotKey(**key._asdict()), value)


def update_record(key: SharePartitionKey, state: ShareGroupOffset) -> CoordinatorRecord:
    value = ShareUpdateValue(
        snapshot_epoch=state.snapshot_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
        state_batches=_stored(state.batches),
    )
    return CoordinatorRecord(ShareUpdateKey(**key._asdict()), value)


def tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    return CoordinatorRecord(ShareSnapshotKey(**key._asdict()), None)


class _Batch(Protocol):
    """A state batch of any message."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def read_batches(stored: Iterable[_Batch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in stored
    )


def _stored(batches: Iterable[StateBatch]) -> list[StoredBatch]:
    return [
        StoredBatch(
            first_offset=each.first_offset,
            last_offset=each.last_offset,
            delivery_state=each.state,
            delivery_count=each.delivery_count,
        )
        for each in batches
    ]
