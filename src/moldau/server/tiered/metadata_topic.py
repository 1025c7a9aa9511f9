"""The topic `__remote_log_metadata` as a log: append a record, read committed records.

Its partitions are used where they are: through the local replica if this broker has one, else through
requests to their leaders. The topic is created when the first record is written.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from moldau.base.backoff import Backoff
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.controller.topics.lifecycle import create_topics
from moldau.metadata.image import TopicImage
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.records import CorruptBatch, Record, build_batch, iter_batches, iter_records
from moldau.replication.partition import Partition
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.brokers.high_watermarks import LeaderHighWatermarks
from moldau.server.partitions.delayed_produce import until_committed
from moldau.server.services import NodeServices
from moldau.server.tiered.settings import TieredSettings
from moldau.storage.log.append import Origin
from moldau.storage.log.log import Log

logger = logging.getLogger(__name__)

NAME = "__remote_log_metadata"
_READ_BYTES = 1024 * 1024
_ACKS_ALL = -1
_CREATION_MS = 10_000
_BACKOFF = Backoff(0.05, 1.0)


class MetadataRecords(NamedTuple):
    """Values of committed records from an offset on; `next_offset` is where to continue."""

    values: list[bytes]
    next_offset: int


class MetadataTopic:
    def __init__(
        self,
        services: NodeServices,
        replicas: ReplicaManager,
        high_watermarks: LeaderHighWatermarks,
        settings: TieredSettings,
    ) -> None:
        self._services = services
        self._replicas = replicas
        self._high_watermarks = high_watermarks
        self._settings = settings
        self._writers = services.broker_peers("remote-log-metadata-writer")
        self._readers = services.broker_peers("remote-log-metadata-reader")
        self._creating: asyncio.Task[None] | None = None
        self._reported = ""

    @property
    def image(self) -> TopicImage | None:
        return self._services.metadata.image.topics.by_name.get(NAME)

    def partitions(self) -> int:
        """Return how many partitions the topic has; 0 before it exists."""
        topic = self.image
        return 0 if topic is None else len(topic.partitions)

    def leads(self, index: int) -> bool:
        topic = self.image
        registration = None if topic is None else topic.partitions.get(index)
        return registration is not None and registration.leader == self._services.id

    def local(self, index: int) -> Partition | None:
        """Return the replica of this broker, if it has one with a log."""
        try:
            partition = self._replicas.by_name(NAME, index)
        except KafkaError:
            return None
        return None if partition.log is None else partition

    def apply(self) -> None:
        """Close the connections to brokers that are gone."""
        image = self._services.metadata.image
        self._writers.apply(image)
        self._readers.apply(image)

    async def close(self) -> None:
        if self._creating is not None:
            self._creating.cancel()
            await asyncio.gather(self._creating, return_exceptions=True)
        self._writers.close()
        self._readers.close()

    # Creation.

    async def ensure(self) -> None:
        """Create the topic if it does not exist; the metadata shows the result."""
        if self.image is not None:
            return
        if self._creating is None or self._creating.done():
            self._creating = asyncio.create_task(self._create())
        await asyncio.wait([self._creating], timeout=_CREATION_MS / 1000)

    async def _create(self) -> None:
        configs = {
            "cleanup.policy": "delete",
            "retention.ms": str(self._settings.metadata_retention_ms),
            "min.insync.replicas": str(self._settings.metadata_min_isr),
            "remote.storage.enable": "false",
        }
        topic = CreatableTopic(
            name=NAME,
            num_partitions=self._settings.metadata_partitions,
            replication_factor=self._settings.metadata_replication_factor,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )
        request = CreateTopicsRequest(topics=[topic])
        try:
            response: CreateTopicsResponse = await self._services.controller.decide(
                None, request, create_topics
            )
        except KafkaError as error:
            logger.warning(
                "the topic %s could not be created and is tried again: %s",
                NAME,
                error,
                extra=event("tiered.topic_not_created"),
            )
            return
        for result in response.topics:
            if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                self._report(str(result.error_message or ErrorCode.of(result.error_code).name))

    def _report(self, reason: str) -> None:
        if reason != self._reported:
            self._reported = reason
            logger.error(
                "The topic %s could not be created: %s. Set "
                "rlmm.config.remote.log.metadata.topic.replication.factor to at most the number of brokers.",
                NAME,
                reason.rstrip("."),
                extra=event("tiered.topic_not_created"),
            )

    # Writing.

    async def append(self, index: int, value: bytes) -> int:
        """Append a record with acks=all and return its offset; repeated until `publish_timeout_ms`."""
        failures = 0
        deadline = asyncio.get_running_loop().time() + self._settings.publish_timeout_ms / 1000
        while True:
            try:
                return await self._append(index, value)
            except KafkaError as error:
                failures += 1
                delay = _BACKOFF.seconds(failures)
                if asyncio.get_running_loop().time() + delay > deadline:
                    raise
                logger.debug("%s-%d could not be written: %s", NAME, index, error)
            await asyncio.sleep(delay)

    async def _append(self, index: int, value: bytes) -> int:
        now_ms = self._services.clock.time_ms()
        batch = build_batch([Record(0, now_ms, None, value)])
        topic, leader = self._leader(index)
        timeout_ms = self._services.settings.config.integer("request.timeout.ms")
        if leader == self._services.id:
            partition = self._replicas.by_name(NAME, index)
            partition.leader_log()
            partition.check_in_sync()
            offset = partition.append(batch, origin=Origin.COORDINATOR).last_offset
            if not partition.committed(offset):
                await until_committed(partition, offset, timeout_ms)
            return offset
        data = PartitionProduceData(index=index, records=memoryview(batch))
        request = ProduceRequest(
            acks=_ACKS_ALL,
            timeout_ms=timeout_ms,
            topic_data=[TopicProduceData(name=NAME, topic_id=topic.id, partition_data=[data])],
        )
        response = await self._writers.call(leader, request)
        answer = response.responses[0].partition_responses[0]
        if answer.error_code:
            raise KafkaError(ErrorCode.of(answer.error_code), answer.error_message)
        base_offset: int = answer.base_offset
        return base_offset

    def _leader(self, index: int) -> tuple[TopicImage, int]:
        topic = self.image
        registration = None if topic is None else topic.partitions.get(index)
        if topic is None or registration is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{NAME}-{index} does not exist yet")
        if registration.leader < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{NAME}-{index} has no leader")
        return topic, registration.leader

    # Reading.

    async def end_offset(self, index: int) -> int:
        """Return the leader's high watermark."""
        topic, _ = self._leader(index)
        return await self._high_watermarks.of(topic.id, index)

    async def read(self, index: int, offset: int) -> MetadataRecords:
        """Return committed records from an offset on; none if there are no more."""
        partition = self.local(index)
        if partition is not None:
            return await self._services.pool.run(_read_log, partition.usable_log(), offset)
        topic, leader = self._leader(index)
        asked = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=_READ_BYTES)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_READ_BYTES,
            topics=[FetchTopic(topic=NAME, topic_id=topic.id, partitions=[asked])],
        )
        response = await self._readers.call(leader, request)
        if response.error_code or not response.responses:
            raise KafkaError(ErrorCode.of(response.error_code or ErrorCode.UNKNOWN_SERVER_ERROR))
        answer = response.responses[0].partitions[0]
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and answer.log_start_offset > offset:
            return MetadataRecords([], answer.log_start_offset)
        if answer.error_code:
            raise KafkaError(ErrorCode.of(answer.error_code))
        return _decode(memoryview(answer.records or b""), offset, f"{NAME}-{index}")


def _read_log(log: Log, offset: int) -> MetadataRecords:
    offset = max(offset, log.log_start_offset)
    bound = log.high_watermark
    if offset >= bound:
        return MetadataRecords([], offset)
    found = log.reader.read(offset, _READ_BYTES, upper_bound=bound, blocking=True)
    if found is None or not found.parts:
        return MetadataRecords([], offset)
    return _decode(memoryview(b"".join(found.parts)), offset, str(log.topic_partition))


def _decode(data: memoryview, offset: int, where: str) -> MetadataRecords:
    values: list[bytes] = []
    next_offset = offset
    try:
        for position, header in iter_batches(data):
            if position + header.size_in_bytes > len(data):
                break
            if not header.is_control:
                batch = data[position : position + header.size_in_bytes]
                values += [
                    record.value
                    for record in iter_records(batch, header)
                    if record.offset >= offset and record.value is not None
                ]
            next_offset = max(next_offset, header.next_offset)
    except CorruptBatch as error:
        if next_offset == offset:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{where} is damaged: {error}") from error
    return MetadataRecords(values, next_offset)
