"""confluent-kafka (librdkafka): produce and consume by assignment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from tests.harness.wire.requests import CODECS, stored_codecs


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def create(admin: AdminClient) -> Callable[..., None]:
    def create_topic(name: str, partitions: int = 1, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        admin.create_topics([new])[name].result(60)

    return create_topic


def new_consumer(bootstrap: str, **config: Any) -> Consumer:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "by-assignment", "enable.auto.commit": False, **settings}
    )


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[Consumer]:
    settings = {"auto.offset.reset": "error", "check.crcs": True, "fetch.wait.max.ms": 50}
    consumer = new_consumer(bootstrap, **settings)
    yield consumer
    consumer.close()


def new_producer(bootstrap: str, **config: Any) -> Producer:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **settings})


def produce(producer: Producer, topic: str, records: list[dict[str, Any]]) -> list[Message]:
    """Produce all records, wait, and return the delivery reports in order."""
    delivered: list[Message] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        delivered.append(message)

    for record in records:
        producer.produce(topic, on_delivery=on_delivery, **record)
        producer.poll(0)
    assert producer.flush(60) == 0
    return delivered


def consume(consumer: Consumer, assignment: list[TopicPartition], count: int) -> list[Message]:
    consumer.assign(assignment)
    messages: list[Message] = []
    deadline = time.monotonic() + 60
    while len(messages) < count:
        assert time.monotonic() < deadline, f"{len(messages)} of {count} records after 60 s"
        for message in consumer.consume(min(count - len(messages), 10_000), timeout=1.0):
            if message.error():
                raise KafkaException(message.error())
            messages.append(message)
    return messages


def from_start(topic: str, partition: int = 0) -> list[TopicPartition]:
    return [TopicPartition(topic, partition, OFFSET_BEGINNING)]


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_every_codec_are_read_unchanged(
    codec: str, bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic)
    now = int(time.time() * 1000)
    records = [
        {
            "key": f"key-{n % 7}",
            "value": f"value {n} " * 20,
            "headers": [("n", str(n).encode())],
            "timestamp": now + n,
        }
        for n in range(500)
    ]
    producer = new_producer(bootstrap, **{"compression.type": codec})
    produce(producer, topic, [{**record, "partition": 0} for record in records])
    messages = consume(consumer, from_start(topic), len(records))
    assert [message.offset() for message in messages] == list(range(500))
    for record, message in zip(records, messages, strict=True):
        assert message.key() == record["key"].encode()
        assert message.value() == record["value"].encode()
        assert message.headers() == record["headers"]
        assert message.timestamp() == (TIMESTAMP_CREATE_TIME, record["timestamp"])
    assert stored_codecs(bootstrap, topic) == {codec}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_topic_compression_type_recompresses_batches(
    codec: str, bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic, compression_type=codec)
    sent = [f"row {n} ".encode() * 30 for n in range(300)]
    producer = new_producer(bootstrap, **{"compression.type": "none" if codec != "uncompressed" else "lz4"})
    produce(producer, topic, [{"value": value, "key": b"k"} for value in sent])
    assert [message.value() for message in consume(consumer, from_start(topic), 300)] == sent
    assert stored_codecs(bootstrap, topic) == {codec.replace("uncompressed", "none")}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_produce_with_every_acks_value(
    acks: str, bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic)
    produce(new_producer(bootstrap, acks=acks), topic, [{"value": str(n)} for n in range(100)])
    messages = consume(consumer, from_start(topic), 100)
    assert [int(message.value()) for message in messages] == list(range(100))


def test_null_and_empty_keys_and_values_are_distinct(
    bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic)
    pairs = [(None, None), (b"", b""), (None, b""), (b"", None), (b"gone", None), (b"k", b"v")]
    produce(new_producer(bootstrap), topic, [{"key": key, "value": value} for key, value in pairs])
    messages = consume(consumer, from_start(topic), len(pairs))
    assert [(message.key(), message.value()) for message in messages] == pairs


def test_headers_keep_order_repeats_nulls_and_empties(
    bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic)
    headers = [
        ("trace", b"1"),
        ("trace", b"2"),
        ("nothing", None),
        ("empty", b""),
        ("žluťoučký", b"\x00\xff"),
    ]
    produce(new_producer(bootstrap), topic, [{"value": b"v", "headers": headers}])
    assert consume(consumer, from_start(topic), 1)[0].headers() == headers


def test_log_append_time_replaces_the_producer_timestamp(
    bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    reports = produce(new_producer(bootstrap), topic, [{"value": b"v", "timestamp": 1000}] * 3)
    kind, stamped = consume(consumer, from_start(topic), 3)[0].timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before <= stamped <= time.time() * 1000
    assert reports[0].timestamp() == (TIMESTAMP_LOG_APPEND_TIME, stamped)


def test_record_of_900_kilobytes_is_read_unchanged(
    bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic)
    values = [bytes([n]) * 900_000 for n in range(3)]
    produce(new_producer(bootstrap), topic, [{"value": value} for value in values])
    assert [message.value() for message in consume(consumer, from_start(topic), 3)] == values


def test_a_record_larger_than_the_fetch_size_is_still_delivered(
    bootstrap: str, topic: str, create: Callable[..., None]
) -> None:
    create(topic)
    produce(new_producer(bootstrap), topic, [{"value": b"x" * 500_000}, {"value": b"last"}])
    small = {"fetch.message.max.bytes": 1000, "fetch.max.bytes": 1_100_000, "message.max.bytes": 1_000_000}
    consumer = new_consumer(bootstrap, **small)
    sizes = [len(message.value()) for message in consume(consumer, from_start(topic), 2)]
    consumer.close()
    assert sizes == [500_000, 4]


def test_a_record_above_max_message_bytes_is_refused_and_later_records_are_accepted(
    bootstrap: str, topic: str, create: Callable[..., None]
) -> None:
    create(topic, max_message_bytes="10000")
    producer = new_producer(bootstrap)
    with pytest.raises(KafkaException) as refused:
        produce(producer, topic, [{"value": b"x" * 20_000}])
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert produce(producer, topic, [{"value": b"x" * 5_000}])[0].offset() == 0


def test_a_hundred_thousand_tiny_records_in_order(
    bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic)
    producer = new_producer(bootstrap, **{"queue.buffering.max.messages": 200_000})
    for n in range(100_000):
        producer.produce(topic, str(n))
    assert producer.flush(60) == 0
    messages = consume(consumer, from_start(topic), 100_000)
    assert [int(message.value()) for message in messages] == list(range(100_000))
    assert [message.offset() for message in messages] == list(range(100_000))


def test_produce_and_consume_a_thousand_partitions(
    bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer, admin: AdminClient
) -> None:
    create(topic, partitions=1000)
    producer = new_producer(bootstrap)
    produce(producer, topic, [{"value": str(p), "partition": p} for p in range(1000)])
    everything = [TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(1000)]
    messages = consume(consumer, everything, 1000)
    assert sorted((m.partition(), int(m.value()), m.offset()) for m in messages) == [
        (p, p, 0) for p in range(1000)
    ]
    admin.delete_topics([topic])[topic].result(60)


def test_an_idempotent_producer_with_many_requests_in_flight_keeps_the_order(
    bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic, partitions=3)
    producer = new_producer(
        bootstrap, **{"enable.idempotence": True, "batch.num.messages": 50, "linger.ms": 0}
    )
    reports = produce(producer, topic, [{"value": str(n), "partition": n % 3} for n in range(6000)])
    assert len(reports) == 6000
    messages = consume(consumer, [TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(3)], 6000)
    for partition in range(3):
        values = [int(m.value()) for m in messages if m.partition() == partition]
        assert values == list(range(partition, 6000, 3))


def test_a_fetch_from_inside_a_batch_starts_at_the_requested_offset(
    bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic)
    producer = new_producer(bootstrap, **{"linger.ms": 200, "compression.type": "zstd"})
    produce(producer, topic, [{"value": str(n)} for n in range(1000)])
    for start in (1, 499, 998, 999):
        messages = consume(consumer, [TopicPartition(topic, 0, start)], 1000 - start)
        assert [int(message.value()) for message in messages] == list(range(start, 1000))


def test_seek_back_and_forth(
    bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic)
    for chunk in range(5):
        produce(new_producer(bootstrap), topic, [{"value": f"{chunk}-{n}"} for n in range(10)])
    consume(consumer, from_start(topic), 50)
    for offset in (17, 3, 49, 0):
        consumer.seek(TopicPartition(topic, 0, offset))
        message = consumer.poll(60)
        assert (message.offset(), message.value()) == (offset, f"{offset // 10}-{offset % 10}".encode())


def test_a_waiting_consumer_gets_a_new_record_at_once(
    bootstrap: str, topic: str, create: Callable[..., None]
) -> None:
    create(topic)
    # A fetch that waited for this timeout instead of the append would outlast the poll below.
    consumer = new_consumer(bootstrap, fetch_wait_max_ms=50_000)
    producer = new_producer(bootstrap, **{"linger.ms": 0})
    produce(producer, topic, [{"value": b"first"}])
    consumer.assign([TopicPartition(topic, 0, 1)])
    assert consumer.poll(1.0) is None
    produce(producer, topic, [{"value": b"second"}])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None, "the long poll must end with the append, not with fetch.wait.max.ms"
    assert message.value() == b"second"


def test_the_end_of_a_partition_is_reported(bootstrap: str, topic: str, create: Callable[..., None]) -> None:
    create(topic)
    produce(new_producer(bootstrap), topic, [{"value": b"v"}] * 3)
    consumer = new_consumer(bootstrap, enable_partition_eof=True)
    consumer.assign(from_start(topic))
    messages = [consumer.poll(60) for _ in range(4)]
    consumer.close()
    assert [message.error() is None for message in messages] == [True, True, True, False]
    assert messages[3].error().code() == KafkaError._PARTITION_EOF
    assert messages[3].offset() == 3


def test_watermarks_and_offsets_for_times(
    bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic)
    now = int(time.time() * 1000)
    producer = new_producer(bootstrap, **{"linger.ms": 100})
    produce(producer, topic, [{"value": b"v", "timestamp": now + n * 10} for n in range(100)])
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0)) == (0, 100)
    for asked, found in [(now - 1, 0), (now, 0), (now + 495, 50), (now + 500, 50), (now + 991, -1)]:
        [answer] = consumer.offsets_for_times([TopicPartition(topic, 0, asked)], timeout=60)
        assert answer.error is None
        assert answer.offset == found, f"asked for {asked - now} ms after the first record"


def test_an_offset_out_of_range_is_an_error_without_auto_offset_reset(
    bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic)
    produce(new_producer(bootstrap), topic, [{"value": b"v"}])
    consumer.assign([TopicPartition(topic, 0, 1000)])
    message = consumer.poll(60)
    assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
    assert "out of range" in message.error().str().lower()


def test_an_offset_out_of_range_is_reset_to_the_earliest(
    bootstrap: str, topic: str, create: Callable[..., None]
) -> None:
    create(topic)
    produce(new_producer(bootstrap), topic, [{"value": b"v"}])
    consumer = new_consumer(bootstrap, auto_offset_reset="earliest")
    [message] = consume(consumer, [TopicPartition(topic, 0, 1000)], 1)
    consumer.close()
    assert message.offset() == 0


def test_pause_and_resume(
    bootstrap: str, topic: str, create: Callable[..., None], consumer: Consumer
) -> None:
    create(topic, partitions=2)
    produce(new_producer(bootstrap), topic, [{"value": str(p), "partition": p} for p in (0, 1)])
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in (0, 1)])
    consumer.pause([TopicPartition(topic, 0)])
    assert consumer.poll(60).partition() == 1
    assert consumer.poll(0.5) is None
    consumer.resume([TopicPartition(topic, 0)])
    assert consumer.poll(60).partition() == 0


def test_producing_to_an_unknown_topic_creates_it(bootstrap: str, topic: str, admin: AdminClient) -> None:
    [report] = produce(new_producer(bootstrap), topic, [{"value": b"v"}])
    assert report.offset() == 0
    assert len(admin.list_topics(topic, timeout=60).topics[topic].partitions) == 1


def test_metadata_of_an_unknown_topic_is_an_error_and_creates_nothing(
    topic: str, consumer: Consumer, admin: AdminClient
) -> None:
    assert (
        consumer.list_topics(topic, timeout=60).topics[topic].error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    )
    with pytest.raises(KafkaException) as refused:
        consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=2)
    assert refused.value.args[0].code() in (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)
    assert topic not in admin.list_topics(timeout=60).topics


def test_an_unknown_partition_is_an_error(bootstrap: str, topic: str, create: Callable[..., None]) -> None:
    create(topic)
    producer = new_producer(bootstrap)
    produce(producer, topic, [{"value": b"v"}])
    with pytest.raises(KafkaException) as refused:
        produce(producer, topic, [{"value": b"v", "partition": 99}])
    assert refused.value.args[0].code() == KafkaError._UNKNOWN_PARTITION


def test_a_compacted_topic_refuses_records_without_a_key(
    bootstrap: str, topic: str, create: Callable[..., None]
) -> None:
    create(topic, cleanup_policy="compact")
    producer = new_producer(bootstrap)
    produce(producer, topic, [{"key": b"k", "value": b"v"}, {"key": b"k", "value": None}])
    with pytest.raises(KafkaException) as refused:
        produce(producer, topic, [{"value": b"no key"}])
    assert refused.value.args[0].code() == KafkaError.INVALID_RECORD


def test_timestamps_far_from_now_are_refused(bootstrap: str, topic: str, create: Callable[..., None]) -> None:
    hour = 3_600_000
    create(topic, message_timestamp_before_max_ms=str(hour), message_timestamp_after_max_ms=str(hour))
    now = int(time.time() * 1000)
    producer = new_producer(bootstrap)
    produce(producer, topic, [{"value": b"v", "timestamp": now - hour // 2}])
    for wrong in (now - 2 * hour, now + 2 * hour):
        with pytest.raises(KafkaException) as refused:
            produce(producer, topic, [{"value": b"v", "timestamp": wrong}])
        assert refused.value.args[0].code() == KafkaError.INVALID_TIMESTAMP


def test_read_committed_and_read_uncommitted_agree_without_transactions(
    bootstrap: str, topic: str, create: Callable[..., None]
) -> None:
    create(topic)
    produce(new_producer(bootstrap), topic, [{"value": str(n)} for n in range(50)])
    for level in ("read_committed", "read_uncommitted"):
        consumer = new_consumer(bootstrap, isolation_level=level)
        messages = consume(consumer, from_start(topic), 50)
        consumer.close()
        assert [int(message.value()) for message in messages] == list(range(50))
