"""One shard of the share coordinator: the share partitions stored in one partition of `__share_group_state`.

Each change is stored as a ShareUpdate record, and after
`share.coordinator.snapshot.update.records.per.snapshot` updates as a ShareSnapshot; records before the oldest
snapshot in use are redundant and can be pruned. Two epochs fence a share partition: the state epoch, which
the group coordinator raises with each initialization, and the leader epoch of the partition, whose leader
alone may write.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.share_state import ShareSnapshotKey, ShareUpdateKey
from moldau.share.keys import SharePartitionKey
from moldau.share.persisted_state import (
    UNKNOWN_COUNT,
    ShareGroupOffset,
    snapshot_record,
    tombstone,
    update_record,
)
from moldau.share.state_batches import UNKNOWN_START_OFFSET, StateBatch, combine
from moldau.statemachine.coordinator_records import CoordinatorRecord, Entry
from moldau.statemachine.decision import Decision
from moldau.statemachine.timers import Timers

logger = logging.getLogger(__name__)


class ShareCoordinatorSettings(NamedTuple):
    updates_per_snapshot: int = 500
    cold_snapshot_interval_ms: int = 300_000


class StateWrite(NamedTuple):
    """The changes of a partition leader; -1 leaves a field unchanged."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: Sequence[StateBatch]


class ShareShard:
    def __init__(
        self, timers: Timers, clock: Clock, settings: Callable[[], ShareCoordinatorSettings]
    ) -> None:
        self._timers = timers
        self._clock = clock
        self._settings = settings
        self._image = MetadataImage.empty()
        self._states: dict[SharePartitionKey, ShareGroupOffset] = {}
        self._leader_epochs: dict[SharePartitionKey, int] = {}
        self._state_epochs: dict[SharePartitionKey, int] = {}
        self._updates: dict[SharePartitionKey, int] = {}
        self._snapshots = _SnapshotOffsets()
        #: Deleted topics whose state is still to be removed.
        self._deleted_topics: set[TopicId] = set()

    # State.

    def states(self) -> list[tuple[SharePartitionKey, ShareGroupOffset]]:
        return list(self._states.items())

    def replay(self, entries: Sequence[Entry], base_offset: int) -> None:
        for offset, entry in enumerate(entries, base_offset):
            if not isinstance(entry, CoordinatorRecord):
                continue
            key: Any = entry.key
            if isinstance(key, ShareSnapshotKey):
                self._replay_snapshot(
                    SharePartitionKey(key.group_id, key.topic_id, key.partition), entry.value, offset
                )
            elif isinstance(key, ShareUpdateKey) and entry.value is not None:
                self._replay_update(SharePartitionKey(key.group_id, key.topic_id, key.partition), entry.value)

    def _replay_snapshot(self, key: SharePartitionKey, value: Any, offset: int) -> None:
        if value is None:
            for known in (self._states, self._leader_epochs, self._state_epochs, self._updates):
                known.pop(key, None)
        else:
            self._states[key] = ShareGroupOffset.from_snapshot(value)
            self._raise(self._leader_epochs, key, value.leader_epoch)
            self._raise(self._state_epochs, key, value.state_epoch)
            if self._updates.get(key, 0) >= self._settings().updates_per_snapshot:
                self._updates[key] = 0
        self._snapshots.replayed(key, offset, removed=value is None)

    def _replay_update(self, key: SharePartitionKey, value: Any) -> None:
        self._raise(self._leader_epochs, key, value.leader_epoch)
        known = self._states.get(key) or ShareGroupOffset(
            value.snapshot_epoch, start_offset=value.start_offset
        )
        self._states[key] = known.updated(value)
        self._updates[key] = self._updates.get(key, 0) + 1

    @staticmethod
    def _raise(epochs: dict[SharePartitionKey, int], key: SharePartitionKey, epoch: int) -> None:
        epochs[key] = max(epoch, epochs.get(key, epoch))

    def activate(self, image: MetadataImage) -> None:
        self._image = image

    def image_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._image = image
        if delta.topics_deleted:
            self._deleted_topics |= delta.topics_deleted.keys()
            self._timers.schedule("topics-deleted", 0, self._remove_deleted)

    def _remove_deleted(self) -> Decision[Entry, None]:
        deleted = [key for key in self._states if key.topic_id in self._deleted_topics]
        return Decision([tombstone(key) for key in deleted], None, on_appended=self._deleted_topics.clear)

    # Requests of group coordinators and partition leaders.

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int
    ) -> Decision[Entry, None]:
        """Restart at an offset; with -1 the partition leader chooses it."""
        self._check_partition(key)
        self._check_state_epoch(key, state_epoch)
        self._check_exists(key)
        known, now_ms = self._states.get(key), self._clock.time_ms()
        state = ShareGroupOffset(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=state_epoch,
            start_offset=start_offset,
            complete_count=UNKNOWN_COUNT if start_offset == UNKNOWN_START_OFFSET else 0,
            created_ms=now_ms,
            written_ms=now_ms,
        )
        return Decision([snapshot_record(key, state)], None)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Decision[Entry, ShareGroupOffset]:
        """Return the state to a partition leader and store its leader epoch."""
        self._check_partition(key)
        state = self._initialized(key)
        if self._leader_epochs.get(key, leader_epoch) > leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH, f"A leader with a higher epoch has read {key.name}."
            )
        self._check_exists(key)
        if leader_epoch in (-1, self._leader_epochs.get(key)):
            return Decision([], state)
        write = StateWrite(state.state_epoch, leader_epoch, state.start_offset, state.complete_count, ())
        return Decision([self._record(key, state, write, leader_epoch)], state)

    def write(self, key: SharePartitionKey, write: StateWrite) -> Decision[Entry, None]:
        self._check_partition(key)
        state = self._initialized(key)
        if write.leader_epoch != -1 and self._leader_epochs.get(key, -1) > write.leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH, f"A leader with a higher epoch has written {key.name}."
            )
        self._check_state_epoch(key, write.state_epoch)
        self._check_exists(key)
        return Decision([self._record(key, state, write, state.leader_epoch)], None)

    def _record(
        self, key: SharePartitionKey, state: ShareGroupOffset, write: StateWrite, leader_epoch: int
    ) -> CoordinatorRecord:
        if self._updates.get(key, 0) < self._settings().updates_per_snapshot:
            update = ShareGroupOffset(
                state.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=write.start_offset,
                complete_count=write.complete_count,
                batches=combine((), write.batches, write.start_offset),
            )
            return update_record(key, update)
        start = state.start_offset if write.start_offset == UNKNOWN_START_OFFSET else write.start_offset
        now_ms = self._clock.time_ms()
        snapshot = ShareGroupOffset(
            state.snapshot_epoch + 1,
            state.state_epoch,
            leader_epoch,
            start,
            write.complete_count,
            combine(state.batches, write.batches, start),
            now_ms,
            now_ms,
        )
        return snapshot_record(key, snapshot)

    def summary(self, key: SharePartitionKey) -> ShareGroupOffset:
        """Return the state without storing an epoch; the default if the partition was never initialized."""
        self._check_partition(key)
        self._check_exists(key)
        return self._states.get(key, ShareGroupOffset())

    def delete(self, key: SharePartitionKey) -> Decision[Entry, None]:
        self._check_partition(key)
        self._check_exists(key)
        return Decision([tombstone(key)] if key in self._states else [], None)

    # Snapshots.

    def snapshot_cold(self) -> Decision[Entry, None]:
        """Write new snapshots of old states, so that earlier records can be pruned."""
        states, now_ms = self._states, self._clock.time_ms()
        if all(state.created_ms != state.written_ms for state in states.values()):
            return Decision([], None)
        interval = self._settings().cold_snapshot_interval_ms
        cold = [key for key, state in states.items() if now_ms - state.written_ms >= interval]
        return Decision([self._new_snapshot(key, states[key], now_ms) for key in cold], None)

    @staticmethod
    def _new_snapshot(key: SharePartitionKey, state: ShareGroupOffset, now_ms: int) -> CoordinatorRecord:
        snapshot = state._replace(snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms)
        return snapshot_record(key, snapshot)

    def redundant_before(self) -> int | None:
        """Return the offset of the oldest snapshot in use; earlier records are redundant."""
        return self._snapshots.oldest()

    # Checks.

    @staticmethod
    def _check_partition(key: SharePartitionKey) -> None:
        if key.partition < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition must not be negative.")

    def _initialized(self, key: SharePartitionKey) -> ShareGroupOffset:
        state = self._states.get(key)
        if state is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key.name} is not initialized.")
        return state

    def _check_state_epoch(self, key: SharePartitionKey, epoch: int) -> None:
        if epoch != -1 and self._state_epochs.get(key, -1) > epoch:
            raise KafkaError(
                ErrorCode.FENCED_STATE_EPOCH, f"{key.name} was initialized with a higher state epoch."
            )

    def _check_exists(self, key: SharePartitionKey) -> None:
        topic = self._image.topics.by_id.get(key.topic_id)
        if topic is None or key.partition >= len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic or partition does not exist.")


class _SnapshotOffsets:
    """The offsets of the snapshots in use, oldest first."""

    def __init__(self) -> None:
        self._offsets: dict[SharePartitionKey, int] = {}
        self._oldest: int | None = None

    def replayed(self, key: SharePartitionKey, offset: int, *, removed: bool) -> None:
        self._offsets.pop(key, None)
        self._offsets[key] = offset
        self._oldest = next(iter(self._offsets.values()))
        if removed:
            del self._offsets[key]

    def oldest(self) -> int | None:
        """Return the oldest offset in use, or None if the whole log may be needed."""
        return self._oldest if self._oldest else None
