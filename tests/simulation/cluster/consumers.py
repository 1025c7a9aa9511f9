"""Consumers of a cluster: they read all partitions from the beginning, repeatedly, and commit offsets."""

from __future__ import annotations

import asyncio
from random import Random

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.base.offsets import LATEST
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from moldau.protocol.records import check_crc, iter_batches, iter_records
from tests.harness.wire.requests import fetch_request
from tests.simulation.cluster.client import GROUP, ClusterClient, check
from tests.simulation.cluster.history import History

FETCH_VERSION, _LIST_OFFSETS_VERSION, _COMMIT_VERSION, _OFFSET_FETCH_VERSION = 12, 8, 9, 7
_ABORT = 0


class Reader:
    """Read a partition from a position; with `committed`, with `read_committed`."""

    def __init__(
        self, client: ClusterClient, topic_partition: TopicPartition, *, committed: bool = False
    ) -> None:
        self.topic_partition = topic_partition
        self.position = 0
        self.last_stable = 0
        self.high_watermark = 0
        self._client = client
        self._committed = committed

    async def read(self, max_wait_ms: int = 200) -> dict[int, bytes]:
        """Fetch the next records, which may be none."""
        where = self.topic_partition
        request = fetch_request(
            where.topic, self.position, partition=where.partition, max_bytes=20_000, max_wait_ms=max_wait_ms
        )
        request.isolation_level = int(self._committed)
        leader = await self._client.leader(where)
        request.topics[0].partitions[0].current_leader_epoch = self._client.epochs[where]
        answer = await self._client.call(leader, request, FETCH_VERSION)
        check(answer.error_code)
        partition = answer.responses[0].partitions[0]
        check(partition.error_code)
        self.high_watermark, self.last_stable = partition.high_watermark, partition.last_stable_offset
        aborted = sorted(
            (each.first_offset, each.producer_id) for each in partition.aborted_transactions or ()
        )
        return self._take(memoryview(bytes(partition.records or b"")), aborted)

    def _take(self, data: memoryview, aborted: list[tuple[int, int]]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        undone: set[int] = set()
        for position, header in iter_batches(data):
            assert check_crc(data, position, header), f"a damaged batch is served: {self.topic_partition}"
            part = data[position : position + header.size_in_bytes]
            while aborted and aborted[0][0] <= header.last_offset:
                undone.add(aborted.pop(0)[1])
            if header.is_control:
                if any(
                    int.from_bytes(bytes(each.key or b"")[2:4]) == _ABORT
                    for each in iter_records(part, header)
                ):
                    undone.discard(header.producer_id)
            elif not (self._committed and header.is_transactional and header.producer_id in undone):
                for record in iter_records(part, header):
                    if record.offset >= self.position:
                        found[record.offset] = bytes(record.value or b"")
            self.position = max(self.position, header.last_offset + 1)
        return found


class Consumer:
    """Read all partitions repeatedly and check the records against the history."""

    def __init__(
        self,
        client: ClusterClient,
        history: History,
        random: Random,
        targets: list[TopicPartition],
        *,
        committed: bool,
    ) -> None:
        self._client = client
        self._story = history
        self._random = random
        self._committed = committed
        self._ends: dict[TopicPartition, int] = {}
        self._readers = [Reader(client, target, committed=committed) for target in targets]

    async def run(self) -> None:
        while not self._story.stopping:
            reader = self._random.choice(self._readers)
            if self._random.random() < 0.05:
                reader.position = 0
            try:
                await self._read(reader)
                if self._random.random() < 0.3:
                    await self._ask_for_end(reader.topic_partition)
            except KafkaError as error:
                assert error.code is not ErrorCode.OFFSET_OUT_OF_RANGE, (
                    f"what was read stays: {reader.topic_partition} ends before {reader.position}"
                )
                self._client.forget()
            await asyncio.sleep(self._random.choice((0.0, 0.2, 0.8)))

    async def _read(self, reader: Reader) -> None:
        for offset, value in (await reader.read()).items():
            self._story.reads(reader.topic_partition, offset, value, committed=self._committed)

    async def _ask_for_end(self, where: TopicPartition) -> None:
        leader = await self._client.leader(where)
        asked = ListOffsetsPartition(
            partition_index=where.partition,
            timestamp=LATEST,
            current_leader_epoch=self._client.epochs[where],
        )
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=where.topic, partitions=[asked])]
        )
        answer = await self._client.call(leader, request, _LIST_OFFSETS_VERSION)
        partition = answer.topics[0].partitions[0]
        check(partition.error_code)
        self._ends[where] = self._story.end_told(where, partition.offset, self._ends.get(where, 0))


class Committer:
    """Commit increasing offsets of one group, and fetch them."""

    def __init__(
        self, group: str, client: ClusterClient, history: History, random: Random, where: TopicPartition
    ) -> None:
        self._group = group
        self._client = client
        self._story = history
        self._random = random
        self._where = where
        self._next = 0

    async def run(self) -> None:
        while not self._story.stopping:
            if self._random.random() < 0.6:
                await self.look()
            self._next += 1
            self._story.wanted_offsets[self._group, self._where] = self._next
            await self._client.persist(self._commit)
            self._story.committed_offsets[self._group, self._where] = self._next
            self._story.counts["offsets"] += 1
            await asyncio.sleep(self._random.choice((0.01, 0.2, 1.0)))

    async def look(self) -> None:
        if (self._group, self._where) in self._story.wanted_offsets:
            offset = await self._client.persist(lambda: offset_of(self._client, self._group, self._where))
            self._story.offset_told(self._group, self._where, offset)

    async def _commit(self) -> None:
        asked = OffsetCommitRequestPartition(
            partition_index=self._where.partition, committed_offset=self._next, committed_metadata=""
        )
        topic = OffsetCommitRequestTopic(name=self._where.topic, partitions=[asked])
        request = OffsetCommitRequest(group_id=self._group, topics=[topic])
        answer = await self._client.to_coordinator(GROUP, self._group, request, _COMMIT_VERSION)
        check(answer.topics[0].partitions[0].error_code)


async def offset_of(client: ClusterClient, group: str, where: TopicPartition) -> int:
    """Return the committed offset of the group; -1 if there is none."""
    topic = OffsetFetchRequestTopic(name=where.topic, partition_indexes=[where.partition])
    request = OffsetFetchRequest(group_id=group, topics=[topic], require_stable=True)
    answer = await client.to_coordinator(GROUP, group, request, _OFFSET_FETCH_VERSION)
    check(answer.error_code)
    partition = answer.topics[0].partitions[0]
    check(partition.error_code)
    return int(partition.committed_offset)
