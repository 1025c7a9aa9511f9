"""A topic as a table in this process: the last value of every key, as far as it is committed.

Nothing is read in the background. Asking for the table reads what is new since the last time, up to the end
that the topic has at that moment, so an answer shows everything that was committed before the question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.client.admin import AdminClient, checked
from moldau.client.offsets import OffsetSpec
from moldau.client.settings import ClientSettings
from moldau.pipelines.arrow.reading import RangeRequest, read_range

#: End and start of a window; both zero where there are none.
WindowOf = tuple[int, int]
#: Takes the key of a record apart.
Split = Callable[[bytes], tuple[bytes, WindowOf]]

Rows = Mapping[bytes, Mapping[WindowOf, bytes]]


class TopicTable:
    def __init__(self, settings: ClientSettings, topic: str, split: Split) -> None:
        self.topic = topic
        self._settings = settings
        self._split = split
        self._admin = AdminClient(settings)
        self._positions: dict[TopicPartition, int] = {}
        self._rows: dict[bytes, dict[WindowOf, bytes]] = {}
        self._lock = Lock()

    def rows(self) -> Rows:
        """For every key its windows and their values, with what is committed by now."""
        with self._lock:
            ends = self._offsets(OffsetSpec.LATEST)
            for partition, end in ends.items():
                self._read(partition, end)
            return self._rows

    def close(self) -> None:
        self._admin.close()

    def _offsets(self, spec: OffsetSpec) -> dict[TopicPartition, int]:
        described = self._admin.describe_topics([self.topic])[self.topic]
        if isinstance(described, KafkaError):
            raise KafkaError(described.code, f"{self.topic}: {described}") from described
        partitions = [TopicPartition(self.topic, each.partition) for each in described.partitions]
        listed = self._admin.list_offsets(dict.fromkeys(partitions, spec), read_committed=True)
        return {partition: found.offset for partition, found in checked(listed).items()}

    def _read(self, partition: TopicPartition, end: int) -> None:
        start = self._positions.get(partition)
        if start is None:
            start = self._offsets(OffsetSpec.EARLIEST)[partition]
        if start < end:
            request = RangeRequest(*partition, start, end)
            # Compaction and retention leave gaps; what they removed is not needed.
            for batch in read_range(
                self._settings, request, include_headers=False, read_committed=True, fail_on_data_loss=False
            ):
                keys, values = (batch.column(name).to_pylist() for name in ("key", "value"))
                for key, value in zip(keys, values, strict=True):
                    self._take(key, value)
        self._positions[partition] = max(start, end)

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        if key is None:
            return
        inner, window = self._split(key)
        if value is not None:
            self._rows.setdefault(inner, {})[window] = value
            return
        windows = self._rows.get(inner, {})
        windows.pop(window, None)
        if not windows:
            self._rows.pop(inner, None)
