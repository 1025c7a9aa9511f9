"""Classic groups with librdkafka, kafka-python and aiokafka: assignment, failures and committed offsets."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka import KafkaConsumer

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.list_groups import ListGroupsRequest
from tests.harness.clients.members import poll_kafka_python
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire
from tests.integration.conftest import Node, StartNode

QUICK = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200, "topic.metadata.refresh.interval.ms": 500}


def create(bootstrap: str, topic: str, partitions: int = 4) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1)
    admin.create_topics([new])[topic].result(60)
    return admin


def fill(bootstrap: str, topic: str, numbers: range, partitions: int = 4) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in numbers:
        producer.produce(topic, str(number), partition=number % partitions)
    assert producer.flush(60) == 0


class Reader:
    """A consumer polled by its own thread, so that a test can have several members."""

    def __init__(self, bootstrap: str, topic: str, group: str, **settings: Any) -> None:
        config = {key.replace("_", "."): value for key, value in settings.items()}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **QUICK,
                **config,
            }
        )
        self.numbers: list[int] = []
        self.owned: set[int] = set()
        self._stopping = threading.Event()
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.owned |= {each.partition for each in partitions}

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.owned -= {each.partition for each in partitions}

    def _run(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            # A generation may end between the two; then another reads the record again.
            with contextlib.suppress(KafkaException):
                self._consumer.commit(message, asynchronous=False)
            self.numbers.append(int(message.value()))
        self._consumer.close()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(30)


@pytest.fixture
def readers(bootstrap: str) -> Iterator[Callable[..., Reader]]:
    started: list[Reader] = []

    def start(topic: str, **settings: Any) -> Reader:
        address = settings.pop("at", bootstrap)
        started.append(Reader(address, topic, settings.pop("group", topic), **settings))
        return started[-1]

    yield start
    for reader in started:
        reader.stop()


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_two_members_share_partitions_and_one_takes_over(
    bootstrap: str, topic: str, readers: Callable[..., Reader], strategy: str
) -> None:
    create(bootstrap, topic)
    fill(bootstrap, topic, range(40))
    settings = {"partition_assignment_strategy": strategy}
    first = readers(topic, **settings)
    eventually(lambda: len(set(first.numbers)) == 40, what="one reads everything")
    second = readers(topic, **settings)
    eventually(lambda: len(first.owned) == len(second.owned) == 2, what="both have two partitions")
    assert first.owned | second.owned == {0, 1, 2, 3}
    fill(bootstrap, topic, range(40, 80))
    eventually(lambda: len({*first.numbers, *second.numbers}) == 80, what="everything is read")
    first.stop()
    eventually(lambda: second.owned == {0, 1, 2, 3}, what="the second has everything")
    fill(bootstrap, topic, range(80, 100))
    eventually(lambda: set(range(80, 100)) <= set(second.numbers), what="the second reads everything")
    # Committed records are not read again.
    assert len(second.numbers) == len(set(second.numbers)) <= 60


#: A member in its own process, which can be killed.
MEMBER = """
import sys
from confluent_kafka import Consumer
address, topic = sys.argv[1:]
settings = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
consumer = Consumer({"bootstrap.servers": address, "group.id": topic, **settings})
consumer.subscribe([topic])
while True:
    consumer.poll(1)
"""


def test_a_killed_member_is_removed_when_its_session_expires(
    bootstrap: str, topic: str, readers: Callable[..., Reader]
) -> None:
    create(bootstrap, topic)
    reader = readers(topic)
    eventually(lambda: reader.owned == {0, 1, 2, 3}, what="it has everything")
    process = subprocess.Popen([sys.executable, "-c", MEMBER, bootstrap, topic])
    try:
        eventually(lambda: len(reader.owned) == 2, what="they share")
        died = time.monotonic()
    finally:
        process.kill()
        process.wait()
    eventually(lambda: reader.owned == {0, 1, 2, 3}, what="it has everything again")
    assert 3 < time.monotonic() - died < 40, "after its own session, and not after the usual one"


def test_members_beyond_the_number_of_partitions_stay_idle(
    bootstrap: str, topic: str, readers: Callable[..., Reader]
) -> None:
    admin = create(bootstrap, topic, 2)
    members = [readers(topic) for _ in range(3)]
    eventually(lambda: sorted(len(each.owned) for each in members) == [0, 1, 1], what="one is idle")
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(60)
    eventually(lambda: sorted(len(each.owned) for each in members) == [1, 1, 1], what="none is idle")


def test_a_static_member_rejoins_with_its_partitions(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    fill(bootstrap, topic, range(8))
    first = Reader(bootstrap, topic, topic, group_instance_id="one")
    second = Reader(bootstrap, topic, topic, group_instance_id="two")
    try:
        eventually(lambda: len(first.owned) == len(second.owned) == 2, what="they share")
        had, others = set(second.owned), set(first.owned)
        second.stop()
        back = Reader(bootstrap, topic, topic, group_instance_id="two")
        try:
            eventually(lambda: back.owned == had, what="it has what it had")
            assert first.owned == others
        finally:
            back.stop()
    finally:
        first.stop()
        second.stop()


def test_committed_offsets_survive_kill_9(
    start_node: StartNode, topic: str, readers: Callable[..., Reader]
) -> None:
    node: Node = start_node()
    create(node.bootstrap_servers, topic)
    fill(node.bootstrap_servers, topic, range(40))
    reader = readers(topic, at=node.bootstrap_servers, group="g")
    eventually(lambda: len(reader.numbers) == 40, what="everything is read")
    node.kill()
    node.restart()
    fill(node.bootstrap_servers, topic, range(40, 60))
    eventually(lambda: len(set(reader.numbers)) == 60, timeout=60, what="the same member goes on")
    reader.stop()
    consumer = Consumer({"bootstrap.servers": node.bootstrap_servers, "group.id": "g"})
    asked = [TopicPartition(topic, index) for index in range(4)]
    assert [each.offset for each in consumer.committed(asked, timeout=60)] == [15, 15, 15, 15]
    consumer.close()


def test_groups_and_offsets_are_described_and_deleted(bootstrap: str, topic: str) -> None:
    admin = create(bootstrap, topic)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    notes = ["note", "", "", ""]
    committed = [TopicPartition(topic, index, index + 5, note) for index, note in enumerate(notes)]
    consumer.commit(offsets=committed, asynchronous=False)
    found = consumer.committed([TopicPartition(topic, index) for index in range(4)], timeout=60)
    assert [(each.offset, each.metadata) for each in found] == [(5, "note"), (6, ""), (7, ""), (8, "")]
    consumer.close()
    listed = admin.list_consumer_groups().result(60).valid
    assert topic in {each.group_id for each in listed}
    described = admin.describe_consumer_groups([topic])[topic].result(60)
    assert described.members == [] and described.state.name == "EMPTY"
    admin.delete_consumer_groups([topic])[topic].result(60)
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups([topic])[topic].result(60)
    assert refused.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND


def test_too_few_brokers_for_the_offsets_topic_leave_the_coordinator_unavailable(
    start_node: StartNode,
) -> None:
    node = start_node(config={"offsets.topic.replication.factor": "3"})
    with Wire(node.bootstrap_servers) as wire:
        answer = wire.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        listed = wire.call(ListGroupsRequest(), 5)
    assert [each.error_code for each in answer.coordinators] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert (listed.error_code, listed.groups) == (ErrorCode.NONE, [])


def test_kafka_python(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    fill(bootstrap, topic, range(40))

    def join() -> KafkaConsumer:
        return KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
        )

    first = join()
    seen: set[int] = set()

    def read(consumer: KafkaConsumer) -> None:
        seen.update(int(record.value) for record in poll_kafka_python(consumer))

    def both_have_two() -> bool:
        read(first)
        read(second)
        return len(first.assignment()) == len(second.assignment()) == 2

    def first_has_read_all() -> bool:
        read(first)
        return len(seen) == 40

    eventually(first_has_read_all)
    first.commit()
    second = join()
    eventually(both_have_two)
    first.close(autocommit=False)

    def second_has_all() -> bool:
        read(second)
        return len(second.assignment()) == 4

    eventually(second_has_all)
    assert sum(second.committed(partition) for partition in second.assignment()) == 40
    fill(bootstrap, topic, range(40, 44))
    seen.clear()
    eventually(lambda: read(second) or seen == set(range(40, 44)))
    second.close()


def test_aiokafka(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    fill(bootstrap, topic, range(40))

    def join() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
        )

    async def shares(*consumers: AIOKafkaConsumer) -> None:
        wanted = 4 // len(consumers)
        while [len(each.assignment()) for each in consumers] != [wanted] * len(consumers):
            for each in consumers:
                await each.getmany(timeout_ms=50)

    async def work() -> None:
        async with asyncio.timeout(150), join() as second:
            async with join() as first:
                await shares(first, second)
            await shares(second)
            await second.commit(dict.fromkeys(second.assignment(), 10))
            assert [await second.committed(each) for each in second.assignment()] == [10] * 4

    asyncio.run(work())
