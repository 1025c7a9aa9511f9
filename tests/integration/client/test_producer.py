"""`moldau.client.Producer` as its users write it; the same against Apache Kafka."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any

import pytest

from moldau.client import (
    AdminClient,
    AsyncProducer,
    ClientError,
    Consumer,
    ErrorCode,
    KafkaError,
    NewTopic,
    Producer,
    ProducerInterceptor,
    ProducerRecord,
    RecordMetadata,
    TopicPartition,
)
from moldau.client.partitioners import RoundRobinPartitioner, partition_for_key
from tests.integration.conftest import StartNode


@pytest.fixture
def topic(bootstrap: str, topic: str) -> str:
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=4, replication_factor=1)])
    return topic


def read(bootstrap: str, topic: str, count: int, **options: Any) -> list[Any]:
    """The first records of all partitions of a topic."""
    with Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}, **options) as consumer:
        consumer.assign([TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)])
        records: list[Any] = []
        for _ in range(100):
            records += consumer.poll(0.3)
            if len(records) >= count:
                return records
    raise AssertionError(f"{len(records)} of {count} records came")


def test_future_returns_the_record_metadata(bootstrap: str, topic: str) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        first = producer.send(topic, b"v", b"abc", headers=[("h", b"1"), ("none", None)], timestamp=1234)
        metadata = first.result(60)
    partition = partition_for_key(b"abc", 4)
    assert metadata == RecordMetadata(topic, partition, 0, 1234, 3, 1)
    assert str(metadata) == f"{topic}-{partition}@0"
    record = read(bootstrap, topic, 1)[0]
    assert (record.key, record.value, record.timestamp) == (b"abc", b"v", 1234)
    assert record.headers == [("h", b"1"), ("none", None)]
    assert record.timestamp_type == "CreateTime"


def test_serializers_partitioner_and_interceptors_work_together(bootstrap: str, topic: str) -> None:
    class Important:
        def partition(
            self, topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, partitions: int
        ) -> int:
            return partitions - 1 if key == "MOLD" else partition_for_key(key_bytes, partitions - 1)

    class Counting(ProducerInterceptor):
        def __init__(self) -> None:
            self.sent = self.acknowledged = 0
            self.closed = False

        def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
            self.sent += 1
            return ProducerRecord(record.topic, {**record.value, "number": self.sent}, record.key)

        def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            self.acknowledged += error is None

        def close(self) -> None:
            self.closed = True

    class Broken(ProducerInterceptor):
        def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
            raise RuntimeError("on purpose")

    counting = Counting()
    config = {"bootstrap.servers": bootstrap, "key.serializer": "string", "value.serializer": "json"}
    with Producer(config, partitioner=Important(), interceptors=[Broken(), counting]) as producer:
        futures = [producer.send(topic, {"price": 1}, name) for name in ("MOLD", "X", "Y", "MOLD")]
        producer.send(ProducerRecord(topic, {"price": 2}, "MOLD", partition=0))
        assert [futures[0].result(60).partition, futures[3].result(60).partition] == [3, 3]
        assert {futures[1].result(60).partition, futures[2].result(60).partition} <= {0, 1, 2}
    assert (counting.sent, counting.acknowledged, counting.closed) == (5, 5, True)
    records = read(bootstrap, topic, 5, value_deserializer="json", key_deserializer="string")
    assert sorted(record.value["number"] for record in records) == [1, 2, 3, 4, 5]


def test_round_robin_by_name(bootstrap: str, topic: str) -> None:
    config = {"bootstrap.servers": bootstrap, "partitioner.class": "RoundRobinPartitioner"}
    with Producer(config, partitioner=RoundRobinPartitioner()) as producer:
        found = [producer.send(topic, b"", b"same") for _ in range(8)]
        assert [future.result(60).partition for future in found] == [0, 1, 2, 3, 0, 1, 2, 3]


def test_callbacks_and_flush(bootstrap: str, topic: str) -> None:
    told: list[tuple[RecordMetadata | None, KafkaError | None]] = []
    with Producer({"bootstrap.servers": bootstrap, "linger.ms": 20}) as producer:
        for number in range(1000):
            producer.send(topic, str(number).encode(), on_delivery=lambda *answer: told.append(answer))
        assert producer.flush(60) == 0
        assert len(told) == 1000 and all(error is None for _, error in told)
        metrics = producer.metrics()
        assert metrics["record-send-total"] == 1000 and metrics["records-waiting"] == 0
        assert metrics["record-error-total"] == 0


def test_invalid_record_is_raised_by_send(bootstrap: str, topic: str) -> None:
    with Producer[Any, Any]({"bootstrap.servers": bootstrap, "max.request.size": 2000}) as producer:
        with pytest.raises(KafkaError, match="configure a serializer"):
            producer.send(topic, "text")
        with pytest.raises(ClientError) as caught:
            producer.send(topic, bytes(5000))
        assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(ValueError, match="invalid partition -3"):
            producer.send(topic, b"", partition=-3)
    with pytest.raises(RuntimeError, match="closed"):
        producer.send(topic, b"")


def test_delivery_failure_fails_the_future(bootstrap: str, topic: str) -> None:
    told: list[Any] = []
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        future = producer.send(topic, b"", partition=99, on_delivery=lambda *answer: told.append(answer))
        with pytest.raises(ClientError) as caught:
            future.result(60)
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert told[0][0] is None and told[0][1] is caught.value


def test_records_of_bytes_without_futures_report_their_errors(bootstrap: str, topic: str) -> None:
    told: list[Any] = []
    with Producer[Any, Any]({"bootstrap.servers": bootstrap, "value.serializer": "json"}) as producer:
        producer.send_bytes(ProducerRecord(topic, b"as it is", b"k", 0, 17, [("h", b"x")]), told.append)
        producer.send_bytes(ProducerRecord(topic, b"", partition=99), told.append)
        assert producer.flush(60) == 0
        assert producer.metrics()["record-error-total"] == 1
    assert [None if each is None else each.code for each in sorted(told, key=bool)] == [
        None,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    (record,) = read(bootstrap, topic, 1)
    assert (record.key, record.value, record.timestamp) == (b"k", b"as it is", 17)
    assert record.headers == [("h", b"x")]


def test_a_full_buffer_blocks_for_max_block_ms_and_no_longer() -> None:
    nobody = {"bootstrap.servers": "127.0.0.1:1", "buffer.memory": 10_240, "max.block.ms": 200}
    producer = Producer[Any, Any]({**nobody, "linger.ms": 0})
    with pytest.raises(ClientError, match=r"max\.block\.ms"):
        for _ in range(100):
            last = producer.send("t", bytes(1000))
    producer.close(timeout=0.1)
    with pytest.raises(ClientError):
        last.result(5)


def test_close_purges_records_of_a_silent_broker(start_node: StartNode) -> None:
    node = start_node()
    producer = Producer[Any, Any]({"bootstrap.servers": node.bootstrap_servers})
    producer.send("t", b"answered").result(60)
    os.kill(node.pid, signal.SIGSTOP)
    try:
        futures = [producer.send("t", b"on the way")]
        with pytest.raises(TimeoutError):
            futures[0].result(0.5)
        futures.append(producer.send("t", b"behind it"))
        producer.close(timeout=0.1)
        for future in futures:
            with pytest.raises(ClientError):
                future.result(5)
    finally:
        os.kill(node.pid, signal.SIGCONT)


def test_invalid_configuration_is_refused(bootstrap: str) -> None:
    with pytest.raises(KafkaError, match="acks"):
        Producer({"bootstrap.servers": bootstrap, "acks": "many"})


def test_many_threads_share_one_producer(bootstrap: str, topic: str) -> None:
    failures: list[BaseException] = []
    with Producer({"bootstrap.servers": bootstrap}) as producer:

        def work() -> None:
            try:
                for future in [producer.send(topic, b"x") for _ in range(200)]:
                    future.result(60)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        producer.flush(60)
        assert producer.metrics()["record-send-total"] == 1000
    assert failures == []


def test_on_an_event_loop(bootstrap: str, topic: str) -> None:
    async def main() -> list[RecordMetadata]:
        async with AsyncProducer({"bootstrap.servers": bootstrap, "value.serializer": "string"}) as producer:
            return await asyncio.gather(*(producer.send(topic, str(each), partition=0) for each in range(50)))

    assert [metadata.offset for metadata in asyncio.run(main())] == list(range(50))


def test_partitions_for(bootstrap: str, topic: str) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        found = producer.partitions_for(topic)
    assert [each.partition for each in found] == [0, 1, 2, 3]
    assert all(each.leader == each.replicas[0] for each in found)
