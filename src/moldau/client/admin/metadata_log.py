"""Read the metadata log from the active controller, as an observer of the quorum does.

`read_on` returns what was committed since the last call: batches as stored in the log, or a snapshot if the
log does not start early enough. The client must use `bootstrap.controllers`.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from moldau.client.admin.client import AsyncAdminClient
from moldau.client.wire.errors import check
from moldau.protocol.batch_header import iter_batches
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from moldau.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RequestPartitionSnapshot,
    RequestTopicSnapshot,
    SnapshotId,
)
from moldau.protocol.schema import records_view

_MAX_BYTES = 8 << 20


class SnapshotData(NamedTuple):
    """The bytes of a snapshot file."""

    end_offset: int
    epoch: int
    data: bytes


class MetadataReader:
    def __init__(self, admin: AsyncAdminClient) -> None:
        self._admin = admin
        self._offset = 0
        #: The epoch of the last record read.
        self._epoch = 0

    async def read_on(self) -> list[bytes | SnapshotData]:
        """Return everything committed since the last call, in order."""
        parts: list[bytes | SnapshotData] = []
        while True:
            found = await self._admin.cluster.retry(self._fetch)
            if found.snapshot_id.end_offset >= 0:
                parts.append(await self._snapshot(found.snapshot_id.end_offset, found.snapshot_id.epoch))
                continue
            committed = self._take(found)
            if not committed:
                return parts
            parts.append(committed)

    async def _leader_epoch(self) -> int:
        return (await self._admin.describe_metadata_quorum()).leader_epoch

    async def _fetch(self) -> PartitionData:
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=await self._leader_epoch(),
            fetch_offset=self._offset,
            last_fetched_epoch=self._epoch,
            partition_max_bytes=_MAX_BYTES,
        )
        topic = FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=_MAX_BYTES, topics=[topic])
        answer: FetchResponse = await self._admin.cluster.ask_controller(request)
        check(answer.error_code)
        found = answer.responses[0].partitions[0]
        check(found.error_code)
        return found

    def _take(self, found: PartitionData) -> bytes:
        """Return the committed batches of a response; later ones are fetched again next time."""
        data = records_view(found.records)
        end = 0
        for position, header in iter_batches(data):
            if header.last_offset >= found.high_watermark:
                break
            end = position + header.size_in_bytes
            self._offset, self._epoch = header.next_offset, header.partition_leader_epoch
        return bytes(data[:end])

    async def _snapshot(self, end_offset: int, epoch: int) -> SnapshotData:
        data = bytearray()
        while True:
            partition = RequestPartitionSnapshot(
                partition=0,
                current_leader_epoch=await self._leader_epoch(),
                snapshot_id=SnapshotId(end_offset=end_offset, epoch=epoch),
                position=len(data),
            )
            request = FetchSnapshotRequest(
                topics=[RequestTopicSnapshot(name=METADATA_TOPIC, partitions=[partition])]
            )
            answer: FetchSnapshotResponse = await self._admin.cluster.ask_controller(request)
            check(answer.error_code)
            found = answer.topics[0].partitions[0]
            check(found.error_code)
            data += records_view(found.unaligned_records)
            if len(data) >= found.size:
                self._offset, self._epoch = end_offset, epoch
                return SnapshotData(end_offset, epoch, bytes(data))
