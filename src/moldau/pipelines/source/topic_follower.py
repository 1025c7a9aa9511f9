"""Read a topic incrementally, on demand: the base of tables that this process keeps in memory.

Nothing is read in the background. `catch_up` reads the records since the last call, up to the current end of
the topic, so a lookup afterwards sees everything that was committed before the call. If the topic was deleted
and recreated, the records taken so far are discarded and it is read from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition, Uuid
from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.offsets import OffsetSpec
from moldau.client.admin.topic_types import TopicDescription
from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.arrow.reading import RangeRequest, read_range


class TopicFollower:
    """Passes records to `take` as `pyarrow.RecordBatch`es in the order of their partition; `forget` discards
    all."""

    def __init__(
        self,
        settings: ClientSettings,
        topic: str,
        take: Callable[[Any], None],
        forget: Callable[[], None],
    ) -> None:
        self.topic = topic
        self._settings = settings
        self._take, self._forget = take, forget
        self._admin = AdminClient(settings)
        self._id: Uuid | None = None
        self._positions: dict[TopicPartition, int] = {}

    def catch_up(self) -> None:
        described = self._described()
        if self._id is not None and self._id != described.id:
            self._positions.clear()
            self._forget()
        self._id = described.id
        partitions = [TopicPartition(self.topic, each.partition) for each in described.partitions]
        ends = self._offsets(partitions, OffsetSpec.LATEST)
        new = [partition for partition in partitions if partition not in self._positions]
        if new:
            self._positions |= self._offsets(new, OffsetSpec.EARLIEST)
        for partition, end in ends.items():
            self._read(partition, end)

    def close(self) -> None:
        self._admin.close()

    def _described(self) -> TopicDescription:
        described = self._admin.describe_topics([self.topic])[self.topic]
        if isinstance(described, KafkaError):
            raise KafkaError(described.code, f"{self.topic}: {described}") from described
        return described

    def _offsets(self, partitions: list[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
        listed = self._admin.list_offsets(dict.fromkeys(partitions, spec), read_committed=True)
        return {partition: found.offset for partition, found in checked(listed).items()}

    def _read(self, partition: TopicPartition, end: int) -> None:
        start = self._positions[partition]
        if start >= end:
            return
        request = RangeRequest(*partition, start, end)
        # Compaction and retention leave gaps; deleted records are not needed.
        for batch in read_range(
            self._settings, request, include_headers=False, read_committed=True, fail_on_data_loss=False
        ):
            self._take(batch)
        self._positions[partition] = end
