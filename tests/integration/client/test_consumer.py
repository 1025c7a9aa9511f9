"""`moldau.client.Consumer` as its users write it; the same against Apache Kafka."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from moldau.client import (
    AdminClient,
    AsyncConsumer,
    Consumer,
    ConsumerInterceptor,
    ErrorCode,
    KafkaError,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    RebalanceListener,
    RecordDeserializationError,
    TopicPartition,
    WakeupError,
)
from tests.harness.broken_headers import write_broken_headers

PARTITIONS = 4
New = Callable[..., Consumer[Any, Any]]


@pytest.fixture
def topic(bootstrap: str, topic: str) -> str:
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=PARTITIONS, replication_factor=1)])
    return topic


@pytest.fixture
def new(bootstrap: str, topic: str) -> Iterator[New]:
    """Consumers of one group named after the topic, which read from the beginning."""
    made: list[Consumer[Any, Any]] = []

    def make(config: Mapping[str, Any] | None = None, **options: Any) -> Consumer[Any, Any]:
        settings = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
        settings |= {"session.timeout.ms": 30_000, "heartbeat.interval.ms": 500, **(config or {})}
        made.append(Consumer({key: value for key, value in settings.items() if value is not None}, **options))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


def fill(bootstrap: str, topic: str, count: int, *, start: int = 0, timestamp: int = 0) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(start, start + count):
            at = timestamp + number * 1000 if timestamp else None
            producer.send(topic, str(number).encode(), partition=number % PARTITIONS, timestamp=at)
        assert producer.flush(60) == 0


def numbers(records: list[Any]) -> list[int]:
    return sorted(int(record.value) for record in records)


def take(consumer: Consumer[Any, Any], count: int, timeout: float = 60.0) -> list[Any]:
    records: list[Any] = []
    deadline = time.monotonic() + timeout
    while len(records) < count and time.monotonic() < deadline:
        records += consumer.poll(0.2)
    assert len(records) >= count, f"{len(records)} of {count} records came"
    return records


def settle(consumers: list[Consumer[Any, Any]], expected: list[int], timeout: float = 60.0) -> None:
    """Poll all of them until each has so many partitions."""
    deadline = time.monotonic() + timeout
    while True:
        for consumer in consumers:
            consumer.poll(0.05)
        held = [consumer.assignment() for consumer in consumers]
        if sorted(map(len, held)) == sorted(expected) and sum(expected) == len(set().union(*held)):
            return
        assert time.monotonic() < deadline, f"not {expected} but {held}"


def _is_stable(admin: AdminClient, group: str, members: int) -> bool:
    found = admin.describe_groups([group])[group]
    return not isinstance(found, KafkaError) and (found.state, len(found.members)) == ("Stable", members)


@pytest.mark.parametrize("strategy", ["range", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"])
def test_fifth_consumer_of_four_partitions_is_idle(
    bootstrap: str, new: New, topic: str, strategy: str
) -> None:
    group: list[Consumer[Any, Any]] = []
    for expected in ([4], [2, 2], [2, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1, 0]):
        group.append(new({"partition.assignment.strategy": strategy}))
        group[-1].subscribe([topic])
        settle(group, expected)
    # The fifth gets nothing, so nothing shows that it has joined; and librdkafka may wait for ever in a close
    # that crosses a rebalance.
    with AdminClient(bootstrap) as admin:
        while not _is_stable(admin, topic, len(group)):
            settle(group, expected)
    settle(group, expected)
    for consumer in group[:3]:
        consumer.close()
    settle(group[3:], [2, 2])


def test_listener_receives_assigned_and_revoked_partitions(new: New, topic: str) -> None:
    class Listening(RebalanceListener):
        def __init__(self) -> None:
            self.heard: list[tuple[str, set[int]]] = []

        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            self.heard.append(("assigned", {each.partition for each in partitions}))

        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            self.heard.append(("revoked", {each.partition for each in partitions}))

    listener = Listening()
    first, second = new(), new()
    first.subscribe([topic], listener=listener)
    settle([first], [4])
    second.subscribe([topic])
    settle([first, second], [2, 2])
    mine = {each.partition for each in first.assignment()}
    assert listener.heard == [("assigned", {0, 1, 2, 3}), ("revoked", {0, 1, 2, 3}), ("assigned", mine)]
    first.close()
    assert listener.heard[-1] == ("revoked", mine)


def test_sync_async_and_explicit_commits(bootstrap: str, new: New, topic: str) -> None:
    fill(bootstrap, topic, 40)
    manual = {"enable.auto.commit": False}
    everything = [TopicPartition(topic, each) for each in range(PARTITIONS)]
    consumer = new(manual)
    consumer.subscribe([topic])
    take(consumer, 40)
    assert set(consumer.committed(everything).values()) == {None}
    done = consumer.commit_sync()
    assert {each: at.offset for each, at in done.items()} == dict.fromkeys(everything, 10)
    chosen = {everything[0]: OffsetAndMetadata(3, "a note"), everything[1]: 4}
    consumer.commit_sync(chosen)
    found = consumer.committed(everything)
    assert found[everything[0]] == OffsetAndMetadata(3, "a note", None)
    assert [at.offset for at in found.values() if at is not None] == [3, 4, 10, 10]

    answers: list[Any] = []
    consumer.commit_async({everything[2]: 5}, lambda *answer: answers.append(answer))
    deadline = time.monotonic() + 60
    while not answers and time.monotonic() < deadline:
        consumer.poll(0.1)
    assert answers[0][1] is None and answers[0][0][everything[2]].offset == 5
    consumer.close()

    again = new(manual)
    again.subscribe([topic])
    assert len(take(again, 18)) == 18


def test_auto_commit_commits_only_handled_records(bootstrap: str, new: New, topic: str) -> None:
    """Records in hand when a consumer dies are read again; those of earlier polls are not."""
    fill(bootstrap, topic, 12)
    config = {"max.poll.records": 4, "auto.commit.interval.ms": 100}
    first = new(config)
    first.subscribe([topic])
    handled = take(first, 4)
    in_hand = take(first, 1)
    partitions = [TopicPartition(topic, each) for each in range(PARTITIONS)]
    observer = new({"enable.auto.commit": False})

    def committed() -> int:
        return sum(at.offset for at in observer.committed(partitions).values() if at is not None)

    deadline = time.monotonic() + 60
    while committed() < len(handled) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert committed() == len(handled)
    first.close()
    assert committed() == len(handled) + len(in_hand)


def test_seek_to_offset_beginning_end_and_timestamp(bootstrap: str, new: New, topic: str) -> None:
    # Not so long ago that retention takes them away.
    began = int(time.time() * 1000) - 3_600_000
    fill(bootstrap, topic, 40, timestamp=began)
    partition = TopicPartition(topic, 1)
    consumer = new({"group.id": None})
    consumer.assign([partition])
    assert numbers(take(consumer, 10)) == list(range(1, 41, 4))
    assert consumer.position(partition) == 10 and consumer.lag(partition) == 0
    consumer.seek(partition, 7)
    assert numbers(take(consumer, 3)) == [29, 33, 37]
    consumer.seek_to_beginning()
    assert take(consumer, 1)[0].offset == 0
    consumer.seek_to_timestamp(began + 30_000)
    assert int(take(consumer, 1)[0].value) == 33
    consumer.seek_to_end([partition])
    # The end is looked up in a poll, as in Java: what comes before that is passed over.
    sent = 0
    while not (records := consumer.poll(1.0)):
        fill(bootstrap, topic, 4, start=100 + sent)
        sent += 4
    assert numbers(records)[0] > 100
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 10 + sent // 4}
    found = consumer.offsets_for_times({partition: began + 5_000})[partition]
    assert found is not None and found.offset == 1
    assert consumer.offsets_for_times({partition: 2**60})[partition] is None


def test_pause_and_resume(bootstrap: str, new: New, topic: str) -> None:
    fill(bootstrap, topic, 8)
    consumer = new({"group.id": None})
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    consumer.assign([zero, one])
    consumer.pause([zero])
    assert consumer.paused() == {zero}
    assert {record.partition for record in take(consumer, 2)} == {1}
    consumer.resume([zero])
    assert numbers(take(consumer, 2)) == [0, 4]


def test_pattern_subscription_finds_new_topics(bootstrap: str, new: New, topic: str) -> None:
    consumer = new({"topic.metadata.refresh.interval.ms": 500})
    consumer.subscribe(pattern=f"{topic}.*")
    settle([consumer], [4])
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(topic + "-more", partitions=2, replication_factor=1)])
    settle([consumer], [6])


def test_undeserializable_record_raises_and_can_be_skipped(bootstrap: str, new: New, topic: str) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for value in (b'{"a":1}', b"not json", b'{"a":2}'):
            producer.send(topic, value, partition=0)
    consumer = new({"group.id": None}, value_deserializer="json")
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    assert [record.value for record in take(consumer, 1)] == [{"a": 1}]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError, match=r"offset 1: .*not JSON") as caught:
            take(consumer, 1)
    assert (caught.value.topic_partition, caught.value.offset) == (partition, 1)
    consumer.seek(partition, caught.value.offset + 1)
    assert [record.value for record in take(consumer, 1)] == [{"a": 2}]


def test_interceptors_see_records_and_commits(bootstrap: str, new: New, topic: str) -> None:
    class Watching(ConsumerInterceptor):
        def __init__(self) -> None:
            self.committed: dict[TopicPartition, OffsetAndMetadata] = {}

        def on_consume(self, records: list[Any]) -> list[Any]:
            return [record for record in records if record.value != b"1"]

        def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
            self.committed.update(offsets)

    fill(bootstrap, topic, 4)
    watching = Watching()
    consumer = new({"enable.auto.commit": False}, interceptors=[watching])
    consumer.subscribe([topic])
    assert numbers(take(consumer, 3)) == [0, 2, 3]
    while len(consumer.commit_sync()) < PARTITIONS:
        consumer.poll(0.1)
    assert {each.partition: at.offset for each, at in watching.committed.items()} == dict.fromkeys(
        range(4), 1
    )


def test_wakeup_ends_a_long_poll(new: New, topic: str) -> None:
    consumer = new()
    consumer.subscribe([topic])
    threading.Timer(0.3, consumer.wakeup).start()
    started = time.monotonic()
    with pytest.raises(WakeupError):
        consumer.poll(60.0)
    assert time.monotonic() - started < 30
    assert consumer.poll(0.0) == []


def test_subscribe_without_group_id_is_refused(new: New, topic: str) -> None:
    consumer = new({"group.id": None})
    with pytest.raises(KafkaError, match=r"group\.id") as caught:
        consumer.subscribe([topic])
    assert caught.value.code == ErrorCode.INVALID_GROUP_ID


def test_max_poll_records_and_metrics(bootstrap: str, new: New, topic: str) -> None:
    fill(bootstrap, topic, 40)
    consumer = new({"group.id": None, "max.poll.records": 7})
    consumer.assign([TopicPartition(topic, each) for each in range(PARTITIONS)])
    sizes = []
    while sum(sizes) < 40:
        sizes.append(len(consumer.poll(5.0)))
    assert max(sizes) <= 7
    assert consumer.metrics()["records-consumed-total"] == 40


def test_on_an_event_loop(bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 20)
    config = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}

    async def main() -> list[int]:
        found: list[int] = []
        async with AsyncConsumer[Any, Any](config, value_deserializer="string") as consumer:
            consumer.subscribe([topic])
            async for record in consumer:
                found.append(int(record.value))
                if len(found) == 20:
                    await consumer.commit()
                    return found
        raise AssertionError("it ended")

    assert sorted(asyncio.run(asyncio.wait_for(main(), 150))) == list(range(20))


def test_header_names_that_are_not_utf8(bootstrap: str, new: New, topic: str) -> None:
    write_broken_headers(bootstrap, TopicPartition(topic, 1), 30)
    consumer = new()
    consumer.assign([TopicPartition(topic, 1)])
    records = take(consumer, 30)
    headers = [("\ufffd", b"x"), ("fine", b"y"), ("\ufffd", None)]
    assert [record.headers for record in records] == [headers] * 30
