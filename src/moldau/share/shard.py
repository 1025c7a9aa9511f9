"""One shard of the share coordinator: the share partitions that one partition of `__share_group_state` keeps.

Each change is stored as an update, and after so many of them as a snapshot; then everything before the oldest
snapshot in use is redundant and can be pruned. Two epochs guard a share partition: the state epoch, which the
group coordinator gives with each initialization, and that of the partition's leader, who alone may write.
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
from moldau.share.deliveries import StateBatch
from moldau.share.keys import SharePartitionKey
from moldau.share.persisted_state import (
    UNKNOWN_COUNT,
    ShareGroupOffset,
    snapshot_record,
    tombstone,
    update_record,
)
from moldau.share.snapshots import SnapshotOffsets
from moldau.share.state_batches import UNKNOWN_START_OFFSET, merged
from moldau.statemachine.coordinator_records import CoordinatorRecord, Entry
from moldau.statemachine.decision import Decision
from moldau.statemachine.timers import Timers

log = logging.getLogger(__name__)


class ShareCoordinatorSettings(NamedTuple):
    updates_per_snapshot: int = 500
    cold_snapshot_interval_ms: int = 300_000


class StateWrite(NamedTuple):
    """What a leader has to say about a share partition; -1 means: as it is."""

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
        self._snapshots = SnapshotOffsets()
        #: Topics that are gone, whose state is still to be removed.
        self._deleted: set[TopicId] = set()

    # State.

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
        self._snapshots.found(key, offset, removed=value is None)

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
            self._deleted |= delta.topics_deleted.keys()
            self._timers.schedule("topics-deleted", 0, self._forget_deleted)

    def _forget_deleted(self) -> Decision[Entry, None]:
        gone = [key for key in self._states if key.topic_id in self._deleted]
        return Decision([tombstone(key) for key in gone], None, on_appended=self._deleted.clear)

    # What the group coordinator and the leaders of partitions ask.

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int
    ) -> Decision[Entry, None]:
        """Begin anew at an offset; -1 leaves it to the leader where that is."""
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
        """The state for a leader, whose epoch is remembered."""
        self._check_partition(key)
        state = self._initialized(key, "read")
        if self._leader_epochs.get(key, leader_epoch) > leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"another leader has read {key.name} since")
        self._check_exists(key)
        if leader_epoch in (-1, self._leader_epochs.get(key)):
            return Decision([], state)
        write = StateWrite(state.state_epoch, leader_epoch, state.start_offset, state.complete_count, ())
        return Decision([self._record(key, state, write, leader_epoch)], state)

    def write(self, key: SharePartitionKey, wanted: StateWrite) -> Decision[Entry, None]:
        self._check_partition(key)
        state = self._initialized(key, "written")
        if wanted.leader_epoch != -1 and self._leader_epochs.get(key, -1) > wanted.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"{key.name} has another leader by now")
        self._check_state_epoch(key, wanted.state_epoch)
        self._check_exists(key)
        return Decision([self._record(key, state, wanted, state.leader_epoch)], None)

    def _record(
        self, key: SharePartitionKey, state: ShareGroupOffset, wanted: StateWrite, leader_epoch: int
    ) -> CoordinatorRecord:
        if self._updates.get(key, 0) < self._settings().updates_per_snapshot:
            update = ShareGroupOffset(
                state.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=wanted.start_offset,
                complete_count=wanted.complete_count,
                batches=merged((), wanted.batches, wanted.start_offset),
            )
            return update_record(key, update)
        start = state.start_offset if wanted.start_offset == UNKNOWN_START_OFFSET else wanted.start_offset
        now_ms = self._clock.time_ms()
        snapshot = ShareGroupOffset(
            state.snapshot_epoch + 1,
            state.state_epoch,
            leader_epoch,
            start,
            wanted.complete_count,
            merged(state.batches, wanted.batches, start),
            now_ms,
            now_ms,
        )
        return snapshot_record(key, snapshot)

    def summary(self, key: SharePartitionKey) -> ShareGroupOffset:
        """What is known without asking for anything; nothing of what was never initialized."""
        self._check_partition(key)
        self._check_exists(key)
        return self._states.get(key, ShareGroupOffset())

    def delete(self, key: SharePartitionKey) -> Decision[Entry, None]:
        self._check_partition(key)
        self._check_exists(key)
        return Decision([tombstone(key)] if key in self._states else [], None)

    # What time brings.

    def snapshot_cold(self) -> Decision[Entry, None]:
        """Write down again what has not been for long, so that what lies before it can be pruned."""
        states, now_ms = self._states, self._clock.time_ms()
        if all(state.created_ms != state.written_ms for state in states.values()):
            return Decision([], None)
        interval = self._settings().cold_snapshot_interval_ms
        cold = [key for key, state in states.items() if now_ms - state.written_ms >= interval]
        return Decision([self._anew(key, states[key], now_ms) for key in cold], None)

    @staticmethod
    def _anew(key: SharePartitionKey, state: ShareGroupOffset, now_ms: int) -> CoordinatorRecord:
        snapshot = state._replace(snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms)
        return snapshot_record(key, snapshot)

    def redundant_before(self) -> int | None:
        """Where the oldest snapshot that is still in use lies; nothing before it is."""
        return self._snapshots.oldest()

    # Checks with Kafka's errors.

    @staticmethod
    def _check_partition(key: SharePartitionKey) -> None:
        if key.partition < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "there are no negative partitions")

    def _initialized(self, key: SharePartitionKey, done: str) -> ShareGroupOffset:
        state = self._states.get(key)
        if state is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key.name} is {done} before it is initialized")
        return state

    def _check_state_epoch(self, key: SharePartitionKey, epoch: int) -> None:
        if epoch != -1 and self._state_epochs.get(key, -1) > epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH, f"{key.name} has been initialized anew since")

    def _check_exists(self, key: SharePartitionKey) -> None:
        topic = self._image.topics.by_id.get(key.topic_id)
        if topic is None or key.partition >= len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic or partition")
