"""Transactions through `moldau.client`: all of it or nothing, offsets included; the same on Apache Kafka."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
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
    TopicPartition,
)
from tests.harness.waiting import eventually

PARTITIONS = 2
NewProducer = Callable[..., Producer[Any, Any]]


@pytest.fixture
def topic(bootstrap: str, topic: str) -> str:
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=PARTITIONS, replication_factor=1)])
    return topic


@pytest.fixture
def new(bootstrap: str, topic: str) -> Iterator[NewProducer]:
    """Producers whose transactional id is named after the topic, ready for their first transaction."""
    made: list[Producer[Any, Any]] = []

    def make(**config: Any) -> Producer[Any, Any]:
        settings = {"bootstrap.servers": bootstrap, "transactional.id": topic}
        made.append(Producer(settings | {name.replace("_", "."): value for name, value in config.items()}))
        made[-1].init_transactions(60)
        return made[-1]

    yield make
    for producer in made:
        producer.close(5)


def read(bootstrap: str, topic: str, isolation: str, count: int) -> list[bytes]:
    """What a reader with this isolation level sees, and that it is not more than `count` records."""
    config = {
        "bootstrap.servers": bootstrap,
        "isolation.level": isolation,
        "auto.offset.reset": "earliest",
        "fetch.max.wait.ms": 100,
    }
    found: list[Any] = []
    with Consumer[Any, Any](config) as consumer:
        consumer.assign([TopicPartition(topic, each) for each in range(PARTITIONS)])
        deadline = time.monotonic() + 60
        while len(found) < count and time.monotonic() < deadline:
            found += consumer.poll(0.2)
        found += consumer.poll(1.0)
    assert len(found) == count, found
    return [record.value for record in sorted(found, key=lambda each: (each.partition, each.offset))]


def test_transaction_block_is_committed(bootstrap: str, topic: str, new: NewProducer) -> None:
    producer = new()
    with producer.transaction():
        producer.send(topic, b"1", partition=0)
        producer.send(topic, b"2", partition=1)
        assert producer.flush(60) == 0
        assert read(bootstrap, topic, "read_committed", 0) == []
        assert read(bootstrap, topic, "read_uncommitted", 2) == [b"1", b"2"]
    assert read(bootstrap, topic, "read_committed", 2) == [b"1", b"2"]


def test_transaction_block_that_raises_is_aborted(bootstrap: str, topic: str, new: NewProducer) -> None:
    producer = new()
    with pytest.raises(RuntimeError, match="on purpose"), producer.transaction():
        producer.send(topic, b"lost", partition=0)
        producer.flush(60)
        raise RuntimeError("on purpose")
    with producer.transaction():
        producer.send(topic, b"kept", partition=0)
    assert read(bootstrap, topic, "read_committed", 1) == [b"kept"]
    assert read(bootstrap, topic, "read_uncommitted", 2) == [b"lost", b"kept"]


def test_close_aborts_an_open_transaction(bootstrap: str, topic: str, new: NewProducer) -> None:
    producer = new()
    producer.begin_transaction()
    producer.send(topic, b"half", partition=0)
    producer.close()
    with Producer[Any, Any]({"bootstrap.servers": bootstrap}) as plain:
        plain.send(topic, b"behind it", partition=0)
    assert read(bootstrap, topic, "read_committed", 1) == [b"behind it"]


def test_zombie_producer_is_fenced(bootstrap: str, topic: str, new: NewProducer) -> None:
    zombie = new()
    zombie.begin_transaction()
    zombie.send(topic, b"zombie", partition=0)
    zombie.flush(60)
    successor = new()
    with pytest.raises(ClientError) as caught:
        zombie.send(topic, b"again", partition=0)
        zombie.commit_transaction(60)
    assert caught.value.fatal
    assert caught.value.code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    with successor.transaction():
        successor.send(topic, b"successor", partition=0)
    assert read(bootstrap, topic, "read_committed", 1) == [b"successor"]


def test_offsets_are_committed_with_the_transaction(bootstrap: str, topic: str, new: NewProducer) -> None:
    with Producer[Any, Any]({"bootstrap.servers": bootstrap}) as plain:
        for number in range(10):
            plain.send(topic, str(number).encode(), partition=0)
    config = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    zero = TopicPartition(topic, 0)
    producer = new()
    with Consumer[Any, Any]({**config, "enable.auto.commit": False}) as consumer:
        consumer.subscribe([topic])
        records: list[Any] = []
        deadline = time.monotonic() + 60
        while len(records) < 10:
            records += consumer.poll(0.2)
            assert time.monotonic() < deadline
        producer.begin_transaction()
        producer.send(topic, b"out", partition=1)
        producer.send_offsets_to_transaction({zero: 10}, consumer.group_metadata(), 20)
        producer.abort_transaction(60)
        assert consumer.committed([zero]) == {zero: None}
        with producer.transaction():
            producer.send(topic, b"out again", partition=1)
            producer.send_offsets_to_transaction({zero: 10}, consumer.group_metadata(), 20)
        # The answer to a commit does not wait for the markers.
        committed = eventually(lambda: consumer.committed([zero])[zero])
        assert committed.offset == 10
    assert read(bootstrap, topic, "read_committed", 11)[-1] == b"out again"


def test_admin_client_describes_and_aborts_transactions(bootstrap: str, topic: str, new: NewProducer) -> None:
    producer = new()
    producer.begin_transaction()
    producer.send(topic, b"open", partition=0)
    producer.flush(60)
    with AdminClient(bootstrap) as admin:
        listed = {each.transactional_id: each for each in admin.list_transactions(states=["Ongoing"])}
        assert topic in listed
        described = admin.describe_transactions([topic])[topic]
        assert not isinstance(described, KafkaError)
        assert (described.state, described.partitions) == ("Ongoing", [TopicPartition(topic, 0)])
        producers = admin.describe_producers([TopicPartition(topic, 0)])[TopicPartition(topic, 0)]
        assert not isinstance(producers, KafkaError)
        assert [each.transaction_start_offset for each in producers] == [0]
        fenced = admin.fence_producers([topic])[topic]
        assert not isinstance(fenced, KafkaError)
        assert fenced[0] == described.producer_id and fenced[1] > described.producer_epoch
    with pytest.raises(ClientError):
        producer.commit_transaction(60)


def test_on_an_event_loop(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        config = {"bootstrap.servers": bootstrap, "transactional.id": topic + "-async"}
        async with AsyncProducer[Any, Any](config) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send(topic, b"in", partition=0)
            with pytest.raises(RuntimeError):
                async with producer.transaction():
                    await producer.send(topic, b"out", partition=0)
                    raise RuntimeError

    asyncio.run(main())
    assert read(bootstrap, topic, "read_committed", 1) == [b"in"]


def test_cancellation_waits_for_the_commit_in_flight(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        config = {"bootstrap.servers": bootstrap, "transactional.id": topic}
        async with AsyncProducer[Any, Any](config) as producer:
            await producer.init_transactions()
            commit, committing = producer.producer.commit_transaction, threading.Event()

            def observed(timeout: float | None = None) -> None:
                committing.set()
                time.sleep(0.2)
                commit(timeout)

            producer.producer.commit_transaction = observed  # type: ignore[method-assign]

            async def one(value: bytes) -> None:
                async with producer.transaction():
                    await producer.send(topic, value, partition=0)

            first = asyncio.create_task(one(b"1"))
            await asyncio.to_thread(committing.wait, 20)
            first.cancel()
            await asyncio.wait([first])
            assert first.cancelled()
            await one(b"2")

    asyncio.run(asyncio.wait_for(main(), 60))
    assert read(bootstrap, topic, "read_committed", 2) == [b"1", b"2"]
