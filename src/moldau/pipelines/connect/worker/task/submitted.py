"""Which offsets of a source may be stored: those of records that the brokers have acknowledged, in order.

A record may be acknowledged before an earlier one of the same source partition; its offset must wait, because
after a crash reading would continue behind the earlier one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.storage.offset_state import offset_key

#: Stands for the offset of a partition that is forgotten.
_FORGOTTEN: Final[Mapping[str, Any]] = {}


class Submitted:
    """A record that was sent."""

    __slots__ = ("acknowledged", "offset")

    def __init__(self, offset: Mapping[str, Any] | None) -> None:
        self.offset = offset
        self.acknowledged = False


class SubmittedRecords:
    """The sent records of one task. `acknowledge` is called by the producer's thread."""

    def __init__(self, connector: str) -> None:
        self._connector = connector
        self._lock = threading.Lock()
        #: By the key of the offset record: source partition, and its records in order.
        self._queues: dict[bytes, tuple[Mapping[str, Any], deque[Submitted]]] = {}
        #: Partitions repeat; computing the key of each record again would dominate.
        self._keys: dict[int, tuple[Mapping[str, Any], bytes]] = {}

    def submit(self, record: SourceRecord) -> Submitted:
        submitted = Submitted(record.source_offset)
        partition = record.source_partition
        if partition is None:
            return submitted
        key = self._key(partition)
        with self._lock:
            self._queues.setdefault(key, (partition, deque()))[1].append(submitted)
        return submitted

    def submit_offset(self, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> None:
        """Store an offset after those of the records before it; None forgets the partition."""
        submitted = Submitted(_FORGOTTEN if offset is None else offset)
        submitted.acknowledged = True
        with self._lock:
            self._queues.setdefault(self._key(partition), (partition, deque()))[1].append(submitted)

    def acknowledge(self, submitted: Submitted) -> None:
        submitted.acknowledged = True

    def remove(self, record: SourceRecord, submitted: Submitted) -> None:
        """Forget a record that was not sent after all; its offset is not stored."""
        if record.source_partition is None:
            return
        with self._lock:
            queue = self._queues[self._key(record.source_partition)][1]
            if submitted in queue:
                queue.remove(submitted)

    def committable(self) -> list[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
        """Return source partitions and offsets that may be stored, and forget them; None: a tombstone."""
        result: list[tuple[Mapping[str, Any], Mapping[str, Any] | None]] = []
        with self._lock:
            for partition, queue in self._queues.values():
                offset = None
                while queue and queue[0].acknowledged:
                    # A record without an offset leaves that of the record before it.
                    found = queue.popleft().offset
                    offset = offset if found is None else found
                if offset is not None:
                    result.append((partition, None if offset is _FORGOTTEN else offset))
            self._queues = {key: each for key, each in self._queues.items() if each[1]}
        return result

    @property
    def unacknowledged(self) -> int:
        with self._lock:
            return sum(not each.acknowledged for _, queue in self._queues.values() for each in queue)

    def _key(self, partition: Mapping[str, Any]) -> bytes:
        known = self._keys.get(id(partition))
        if known is not None and known[0] is partition:
            return known[1]
        key = offset_key(self._connector, partition)
        if len(self._keys) > 1000:
            self._keys.clear()
        self._keys[id(partition)] = (partition, key)
        return key
