"""kafka-python: produce and consume by assignment."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import (
    InvalidTimestampError,
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)

from tests.harness.waiting import eventually
from tests.harness.wire.requests import stored_codecs

CODECS = {None: None, "gzip": None, "snappy": "snappy", "lz4": "lz4", "zstd": "zstandard"}


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


@pytest.fixture
def create(admin: KafkaAdminClient) -> Callable[..., None]:
    def create_topic(name: str, partitions: int = 1, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = {name: {"num_partitions": partitions, "replication_factor": 1, "configs": settings}}
        admin.create_topics(new, wait_for_metadata=True)

    return create_topic


@pytest.fixture
def new_producer(bootstrap: str) -> Iterator[Callable[..., KafkaProducer]]:
    producers: list[KafkaProducer] = []

    def new(**config: Any) -> KafkaProducer:
        producers.append(KafkaProducer(bootstrap_servers=bootstrap, **config))
        return producers[-1]

    yield new
    for producer in producers:
        producer.close(timeout=5)


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[KafkaConsumer]:
    client = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="none", fetch_max_wait_ms=50, check_crcs=True
    )
    yield client
    client.close()


def consume(consumer: KafkaConsumer, partitions: list[TopicPartition], count: int) -> list[Any]:
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    return poll(consumer, count)


def poll(consumer: KafkaConsumer, count: int) -> list[Any]:
    records: list[Any] = []
    deadline = time.monotonic() + 60
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records after 60 s"
        for batch in consumer.poll(timeout_ms=1000).values():
            records.extend(batch)
    return records


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_every_codec_are_read_unchanged(
    codec: str | None,
    bootstrap: str,
    topic: str,
    create: Callable[..., None],
    new_producer: Callable[..., KafkaProducer],
    consumer: KafkaConsumer,
) -> None:
    module = CODECS[codec]
    if module is not None and importlib.util.find_spec(module) is None:
        pytest.skip(f"kafka-python needs the Python package with the module {module!r} for {codec}")
    create(topic)
    producer = new_producer(compression_type=codec, linger_ms=20)
    now = int(time.time() * 1000)
    for n in range(300):
        headers = [("n", str(n).encode()), ("empty", b"")]
        producer.send(
            topic, f"value {n} ".encode() * 20, key=f"key-{n}".encode(), headers=headers, timestamp_ms=now + n
        )
    producer.flush(60)
    records = consume(consumer, [TopicPartition(topic, 0)], 300)
    for n, record in enumerate(records):
        assert (record.offset, record.timestamp, record.timestamp_type) == (n, now + n, 0)
        assert (record.key, record.value) == (f"key-{n}".encode(), f"value {n} ".encode() * 20)
        assert list(record.headers) == [("n", str(n).encode()), ("empty", b"")]
    assert stored_codecs(bootstrap, topic) == {codec or "none"}


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_produce_with_every_acks_value(
    acks: int | str,
    topic: str,
    create: Callable[..., None],
    new_producer: Callable[..., KafkaProducer],
    consumer: KafkaConsumer,
) -> None:
    create(topic)
    producer = new_producer(acks=acks, enable_idempotence=acks == "all")
    for n in range(50):
        producer.send(topic, str(n).encode())
    producer.flush(60)
    records = consume(consumer, [TopicPartition(topic, 0)], 50)
    assert [int(record.value) for record in records] == list(range(50))


def test_send_returns_the_record_metadata(
    topic: str, create: Callable[..., None], new_producer: Callable[..., KafkaProducer]
) -> None:
    create(topic, partitions=3)
    producer = new_producer()
    sent = [producer.send(topic, b"v", partition=2).get(timeout=60) for _ in range(3)]
    assert [(metadata.partition, metadata.offset) for metadata in sent] == [(2, 0), (2, 1), (2, 2)]


def test_null_and_empty_keys_and_values_are_distinct(
    topic: str,
    create: Callable[..., None],
    new_producer: Callable[..., KafkaProducer],
    consumer: KafkaConsumer,
) -> None:
    create(topic)
    pairs = [(b"", b""), (None, b""), (b"", None), (b"gone", None), (b"k", b"v")]
    producer = new_producer()
    for key, value in pairs:
        producer.send(topic, value, key=key)
    producer.flush(60)
    records = consume(consumer, [TopicPartition(topic, 0)], len(pairs))
    assert [(record.key, record.value) for record in records] == pairs


def test_log_append_time_replaces_the_producer_timestamp(
    topic: str,
    create: Callable[..., None],
    new_producer: Callable[..., KafkaProducer],
    consumer: KafkaConsumer,
) -> None:
    create(topic, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    metadata = new_producer().send(topic, b"v", timestamp_ms=1000).get(timeout=60)
    [record] = consume(consumer, [TopicPartition(topic, 0)], 1)
    assert record.timestamp_type == 1
    assert before <= record.timestamp <= time.time() * 1000
    assert metadata.timestamp == record.timestamp


def test_records_above_max_message_bytes_are_refused(
    topic: str,
    create: Callable[..., None],
    new_producer: Callable[..., KafkaProducer],
    consumer: KafkaConsumer,
) -> None:
    create(topic)
    producer = new_producer(max_request_size=3_000_000)
    producer.send(topic, b"x" * 900_000).get(timeout=60)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send(topic, b"x" * 2_000_000).get(timeout=60)
    new_producer().send(topic, b"after").get(timeout=60)
    records = consume(consumer, [TopicPartition(topic, 0)], 2)
    assert [len(record.value) for record in records] == [900_000, 5]


def test_seek_by_offset_and_timestamp(
    topic: str,
    create: Callable[..., None],
    new_producer: Callable[..., KafkaProducer],
    consumer: KafkaConsumer,
) -> None:
    create(topic)
    partition = TopicPartition(topic, 0)
    now = int(time.time() * 1000)
    producer = new_producer(linger_ms=50)
    for n in range(100):
        producer.send(topic, str(n).encode(), timestamp_ms=now + n * 10)
    producer.flush(60)
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 100}
    found = consumer.offsets_for_times({partition: now + 495})[partition]
    assert (found.offset, found.timestamp) == (50, now + 500)
    assert consumer.offsets_for_times({partition: now + 100_000})[partition] is None
    consumer.assign([partition])
    consumer.seek(partition, 37)
    assert [record.offset for record in poll(consumer, 63)] == list(range(37, 100))
    assert consumer.position(partition) == 100
    consumer.seek_to_end(partition)
    assert consumer.position(partition) == 100


def test_an_offset_out_of_range_is_an_error(
    topic: str,
    create: Callable[..., None],
    new_producer: Callable[..., KafkaProducer],
    consumer: KafkaConsumer,
) -> None:
    create(topic)
    new_producer().send(topic, b"v").get(timeout=60)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek(TopicPartition(topic, 0), 1000)
    with pytest.raises(OffsetOutOfRangeError):
        eventually(lambda: consumer.poll(timeout_ms=500))


def test_an_idempotent_producer_keeps_the_order(
    topic: str,
    create: Callable[..., None],
    new_producer: Callable[..., KafkaProducer],
    consumer: KafkaConsumer,
) -> None:
    create(topic, partitions=2)
    producer = new_producer(enable_idempotence=True, batch_size=500, linger_ms=1)
    for n in range(2000):
        producer.send(topic, str(n).encode(), partition=n % 2)
    producer.flush(60)
    records = consume(consumer, [TopicPartition(topic, p) for p in (0, 1)], 2000)
    for partition in (0, 1):
        values = [int(record.value) for record in records if record.partition == partition]
        assert values == list(range(partition, 2000, 2))


def test_produce_and_consume_a_hundred_partitions(
    topic: str,
    create: Callable[..., None],
    new_producer: Callable[..., KafkaProducer],
    consumer: KafkaConsumer,
) -> None:
    create(topic, partitions=100)
    producer = new_producer(linger_ms=20)
    for partition in range(100):
        producer.send(topic, str(partition).encode(), partition=partition)
    producer.flush(60)
    assert consumer.partitions_for_topic(topic) == set(range(100))
    records = consume(consumer, [TopicPartition(topic, p) for p in range(100)], 100)
    assert sorted((record.partition, int(record.value)) for record in records) == [(p, p) for p in range(100)]


def test_a_compacted_topic_refuses_records_without_a_key(
    topic: str, create: Callable[..., None], new_producer: Callable[..., KafkaProducer]
) -> None:
    create(topic, cleanup_policy="compact")
    producer = new_producer()
    producer.send(topic, b"v", key=b"k").get(timeout=60)
    with pytest.raises(Exception, match="InvalidRecord"):
        producer.send(topic, b"v").get(timeout=60)


def test_a_timestamp_far_in_the_future_is_refused(
    topic: str, create: Callable[..., None], new_producer: Callable[..., KafkaProducer]
) -> None:
    create(topic)
    day = 86_400_000
    with pytest.raises(InvalidTimestampError):
        new_producer().send(topic, b"v", timestamp_ms=int(time.time() * 1000) + 10 * day).get(timeout=60)


def test_producing_creates_the_topic(topic: str, new_producer: Callable[..., KafkaProducer]) -> None:
    assert new_producer().send(topic, b"v").get(timeout=60).offset == 0


def test_consuming_an_unknown_topic_without_creating_it(
    bootstrap: str, topic: str, admin: KafkaAdminClient
) -> None:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, allow_auto_create_topics=False)
    assert not consumer.partitions_for_topic(topic)
    consumer.close()
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.list_partition_offsets({TopicPartition(topic, 0): OffsetSpec.LATEST}, timeout_ms=2000)
    assert topic not in admin.list_topics()
