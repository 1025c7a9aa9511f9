"""aiokafka: produce, consume by assignment, administer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import MessageSizeTooLargeError, OffsetOutOfRangeError, UnknownError

from tests.harness.wire.requests import stored_codecs

T = TypeVar("T")


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(work(), 150)

    return asyncio.run(bounded())


@asynccontextmanager
async def admin_of(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def create(bootstrap: str, name: str, partitions: int = 1, **config: str) -> None:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    async with admin_of(bootstrap) as admin:
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, topic_configs=settings)
        response = await admin.create_topics([new])
        assert [error[1] for error in response.topic_errors] == [0]


async def consume(bootstrap: str, partitions: list[TopicPartition], count: int) -> list[ConsumerRecord]:
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions)
        return [await consumer.getone() for _ in range(count)]


async def becomes(ask: Callable[[], Awaitable[Any]], expected: Any) -> None:
    """Wait for a value: a broker may apply a change shortly after its response."""
    deadline = time.monotonic() + 60
    while (answer := await ask()) != expected:
        assert time.monotonic() < deadline, f"{answer!r} instead of {expected!r}"
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_codec_are_read_unchanged(codec: str | None, bootstrap: str, topic: str) -> None:
    now = int(time.time() * 1000)

    async def work() -> list[ConsumerRecord]:
        await create(bootstrap, topic)
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=codec, linger_ms=20
        ) as producer:
            for n in range(200):
                headers = [("n", str(n).encode())]
                value, key = f"value {n} ".encode() * 20, f"key-{n}".encode()
                await producer.send(topic, value, key=key, headers=headers, timestamp_ms=now + n, partition=0)
            await producer.flush()
        return await consume(bootstrap, [TopicPartition(topic, 0)], 200)

    for n, record in enumerate(run(work)):
        assert (record.offset, record.timestamp, record.timestamp_type) == (n, now + n, 0)
        assert (record.key, record.value) == (f"key-{n}".encode(), f"value {n} ".encode() * 20)
        assert list(record.headers) == [("n", str(n).encode())]
    assert stored_codecs(bootstrap, topic) == {codec or "none"}


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_produce_with_every_acks_value(acks: int | str, bootstrap: str, topic: str) -> None:
    async def work() -> list[ConsumerRecord]:
        await create(bootstrap, topic)
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks=acks) as producer:
            for n in range(50):
                await producer.send(topic, str(n).encode(), partition=0)
        return await consume(bootstrap, [TopicPartition(topic, 0)], 50)

    assert [int(record.value) for record in run(work)] == list(range(50))


def test_tombstones_and_empty_values(bootstrap: str, topic: str) -> None:
    pairs = [(b"gone", None), (b"k", b""), (None, b"v"), (b"", b"")]

    async def work() -> list[ConsumerRecord]:
        await create(bootstrap, topic)
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for key, value in pairs:
                await producer.send_and_wait(topic, value, key=key)
        return await consume(bootstrap, [TopicPartition(topic, 0)], len(pairs))

    assert [(record.key, record.value) for record in run(work)] == pairs


def test_log_append_time_is_set_by_the_broker(bootstrap: str, topic: str) -> None:
    before = int(time.time() * 1000)

    async def work() -> tuple[Any, list[ConsumerRecord]]:
        await create(bootstrap, topic, message_timestamp_type="LogAppendTime")
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            metadata = await producer.send_and_wait(topic, b"v", timestamp_ms=1000)
        return metadata, await consume(bootstrap, [TopicPartition(topic, 0)], 1)

    metadata, [record] = run(work)
    assert record.timestamp_type == 1
    assert before <= record.timestamp <= time.time() * 1000
    assert (metadata.timestamp, metadata.timestamp_type) == (record.timestamp, 1)


def test_an_idempotent_producer_keeps_the_order(bootstrap: str, topic: str) -> None:
    async def work() -> list[ConsumerRecord]:
        await create(bootstrap, topic, partitions=2)
        options = {"enable_idempotence": True, "max_batch_size": 400}
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, **options) as producer:
            for n in range(1000):
                await producer.send(topic, str(n).encode(), partition=n % 2)
            await producer.flush()
        return await consume(bootstrap, [TopicPartition(topic, p) for p in (0, 1)], 1000)

    records = run(work)
    for partition in (0, 1):
        values = [int(record.value) for record in records if record.partition == partition]
        assert values == list(range(partition, 1000, 2))


def test_records_above_max_message_bytes_are_refused(bootstrap: str, topic: str) -> None:
    async def work() -> list[ConsumerRecord]:
        await create(bootstrap, topic)
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, max_request_size=3_000_000) as producer:
            await producer.send_and_wait(topic, b"x" * 900_000)
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send_and_wait(topic, b"x" * 2_000_000)
            await producer.send_and_wait(topic, b"after")
        return await consume(bootstrap, [TopicPartition(topic, 0)], 2)

    assert [len(record.value) for record in run(work)] == [900_000, 5]


def test_seek_by_offset_and_timestamp(bootstrap: str, topic: str) -> None:
    now = int(time.time() * 1000)
    partition = TopicPartition(topic, 0)

    async def work() -> None:
        await create(bootstrap, topic)
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=50) as producer:
            for n in range(100):
                await producer.send(topic, str(n).encode(), timestamp_ms=now + n * 10)
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            consumer.assign([partition])
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 100}
            found = await consumer.offsets_for_times({partition: now + 495})
            assert (found[partition].offset, found[partition].timestamp) == (50, now + 500)
            assert await consumer.offsets_for_times({partition: now + 100_000}) == {partition: None}
            for offset in (37, 99, 0):
                consumer.seek(partition, offset)
                record = await consumer.getone()
                assert (record.offset, int(record.value)) == (offset, offset)
            assert consumer.highwater(partition) == 100

    run(work)


def test_an_offset_out_of_range_is_an_error(bootstrap: str, topic: str) -> None:
    async def work() -> None:
        await create(bootstrap, topic)
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="none") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), 1000)
            with pytest.raises(OffsetOutOfRangeError):
                await consumer.getone()

    run(work)


def test_produce_and_consume_fifty_partitions(bootstrap: str, topic: str) -> None:
    async def work() -> list[ConsumerRecord]:
        await create(bootstrap, topic, partitions=50)
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for partition in range(50):
                await producer.send(topic, str(partition).encode(), partition=partition)
        return await consume(bootstrap, [TopicPartition(topic, p) for p in range(50)], 50)

    assert sorted((record.partition, int(record.value)) for record in run(work)) == [
        (p, p) for p in range(50)
    ]


def test_producing_creates_the_topic(bootstrap: str, topic: str) -> None:
    async def work() -> int:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            return int((await producer.send_and_wait(topic, b"v")).offset)

    assert run(work) == 0


def test_a_compacted_topic_refuses_records_without_a_key(bootstrap: str, topic: str) -> None:
    async def work() -> None:
        await create(bootstrap, topic, cleanup_policy="compact")
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait(topic, b"v", key=b"k")
            # aiokafka has no exception for INVALID_RECORD (87).
            with pytest.raises(UnknownError):
                await producer.send_and_wait(topic, b"v")

    run(work)


def test_create_alter_and_delete_topics(bootstrap: str, topic: str) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)

    async def partitions(admin: AIOKafkaAdminClient) -> list[int]:
        [described] = await admin.describe_topics([topic])
        return sorted(partition["partition"] for partition in described["partitions"])

    async def retention(admin: AIOKafkaAdminClient) -> str:
        [response] = await admin.describe_configs([resource])
        return {entry[0]: entry[1] for entry in response.resources[0][4]}["retention.ms"]

    async def listed(admin: AIOKafkaAdminClient) -> bool:
        return topic in await admin.list_topics()

    async def work() -> None:
        await create(bootstrap, topic, partitions=2, retention_ms="5000")
        async with admin_of(bootstrap) as admin:
            await becomes(lambda: listed(admin), True)
            await admin.create_partitions({topic: NewPartitions(3)})
            await becomes(lambda: partitions(admin), [0, 1, 2])
            change = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "6000"})
            await admin.alter_configs([change])
            await becomes(lambda: retention(admin), "6000")
            assert len((await admin.describe_cluster())["brokers"]) == 1
            await admin.delete_topics([topic])
            await becomes(lambda: listed(admin), False)

    run(work)


def test_delete_records_moves_the_log_start_offset(bootstrap: str, topic: str) -> None:
    partition = TopicPartition(topic, 0)

    async def work() -> None:
        await create(bootstrap, topic)
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for _ in range(10):
                await producer.send_and_wait(topic, b"v")
        async with admin_of(bootstrap) as admin:
            assert await admin.delete_records({partition: RecordsToDelete(before_offset=6)}) == {partition: 6}
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            assert await consumer.beginning_offsets([partition]) == {partition: 6}

    run(work)
