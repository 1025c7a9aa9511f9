"""Transactions with librdkafka: read_committed shows all committed records and no others."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.harness.clients.reading import messages
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import create_and_wait, produce_request
from tests.harness.wire.wire import Wire
from tests.integration.conftest import StartNode

SECONDS = 30
TRANSACTIONAL = 0x10


def producer(bootstrap: str, transactional_id: str, **settings: Any) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
            "retry.backoff.ms": 20,
            **settings,
        }
    )
    made.init_transactions(SECONDS)
    return made


def send(source: Producer, topic: str, *values: str, partition: int = 0) -> None:
    for value in values:
        source.produce(topic, value, partition=partition)
    assert source.flush(SECONDS) == 0


def read(bootstrap: str, topic: str, partitions: int = 1, *, committed: bool = True) -> list[str]:
    """Read everything that this isolation level shows."""
    found = messages(bootstrap, topic, partitions, committed=committed)
    return [message.value().decode() for message in found]


def error_of(work: Any, *arguments: Any) -> str:
    with pytest.raises(KafkaException) as refused:
        work(*arguments)
    return str(refused.value.args[0].name())


def test_transactions_over_several_partitions_commit_and_abort(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic, 3)
    source = producer(bootstrap, topic)
    for number in range(4):
        source.begin_transaction()
        for partition in range(3):
            send(source, topic, f"{number}-{partition}", partition=partition)
        if number % 2:
            source.abort_transaction(SECONDS)
        else:
            source.commit_transaction(SECONDS)
    wanted = sorted(f"{number}-{partition}" for number in (0, 2) for partition in range(3))
    eventually(lambda: sorted(read(bootstrap, topic, 3)) == wanted, what="what was committed")
    assert len(read(bootstrap, topic, 3, committed=False)) == 12


def test_an_open_transaction_holds_back_the_last_stable_offset(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    first, second = producer(bootstrap, f"{topic}-1"), producer(bootstrap, f"{topic}-2")
    first.begin_transaction()
    send(first, topic, "first")
    second.begin_transaction()
    send(second, topic, "second")
    second.commit_transaction(SECONDS)
    assert read(bootstrap, topic) == []
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def latest(isolation: IsolationLevel) -> int:
        asked = {TopicPartition(topic, 0): OffsetSpec.latest()}
        [answer] = admin.list_offsets(asked, isolation_level=isolation).values()
        return int(answer.result().offset)

    assert latest(IsolationLevel.READ_COMMITTED) == 0
    assert latest(IsolationLevel.READ_UNCOMMITTED) >= 2
    first.commit_transaction(SECONDS)
    eventually(lambda: read(bootstrap, topic) == ["first", "second"], what="both, in their order")
    assert latest(IsolationLevel.READ_COMMITTED) == 4


def test_a_zombie_producer_is_fenced(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    zombie = producer(bootstrap, topic)
    zombie.begin_transaction()
    send(zombie, topic, "zombie")
    successor = producer(bootstrap, topic)
    zombie.produce(topic, "more", partition=0)
    assert error_of(zombie.commit_transaction, SECONDS) in ("_FENCED", "PRODUCER_FENCED")
    successor.begin_transaction()
    send(successor, topic, "alive")
    successor.commit_transaction(SECONDS)
    eventually(lambda: read(bootstrap, topic) == ["alive"], what="only what the successor wrote")


def test_a_transaction_is_aborted_after_its_timeout(start_node: StartNode, topic: str) -> None:
    node = start_node(config={"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"})
    bootstrap = node.bootstrap_servers
    create_and_wait(bootstrap, topic)
    slow = producer(bootstrap, topic, **{"transaction.timeout.ms": 1000})
    slow.begin_transaction()
    send(slow, topic, "slow")
    other = producer(bootstrap, f"{topic}-other")
    other.begin_transaction()
    send(other, topic, "other")
    other.commit_transaction(SECONDS)
    eventually(lambda: read(bootstrap, topic) == ["other"], what="the slow one is aborted")
    assert error_of(slow.commit_transaction, SECONDS) in (
        "_FENCED",
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_EPOCH",
    )


def test_group_offsets_are_part_of_the_transaction(bootstrap: str, topic: str) -> None:
    create_and_wait(bootstrap, topic)
    group = f"group-{uuid.uuid4().hex[:8]}"
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    source = producer(bootstrap, topic)
    for offset, commit in ((3, True), (7, False)):
        source.begin_transaction()
        send(source, topic, f"until {offset}")
        consumer.poll(0.1)
        offsets = [TopicPartition(topic, 0, offset)]
        source.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS)
        (source.commit_transaction if commit else source.abort_transaction)(SECONDS)

    def position() -> int:
        return int(consumer.committed([TopicPartition(topic, 0)], timeout=SECONDS)[0].offset)

    eventually(lambda: position() == 3, what="only the committed offset counts")
    assert read(bootstrap, topic) == ["until 3"]
    consumer.close()


def test_an_open_transaction_survives_kill_9(start_node: StartNode, topic: str) -> None:
    """Check that a transaction open at kill -9 can be committed, or is aborted as a whole."""
    node = start_node()
    bootstrap = node.bootstrap_servers
    create_and_wait(bootstrap, topic, 2)
    source = producer(bootstrap, topic)
    wanted = []
    for number in range(4):
        source.begin_transaction()
        send(source, topic, f"{number}-0")
        node.kill()
        node.restart()
        send(source, topic, f"{number}-1", partition=1)
        if number % 2:
            source.abort_transaction(SECONDS)
        else:
            source.commit_transaction(SECONDS)
            wanted += [f"{number}-0", f"{number}-1"]
        node.kill()
        node.restart()
    eventually(lambda: sorted(read(bootstrap, topic, 2)) == sorted(wanted), what="all or nothing")


@pytest.mark.parametrize("enabled", [True, False])
def test_partitions_not_added_to_the_transaction_are_refused(
    start_node: StartNode, topic: str, enabled: bool
) -> None:
    """Check partition verification, which `transaction.partition.verification.enable` can disable."""
    node = start_node(config={"transaction.partition.verification.enable": enabled})
    bootstrap = node.bootstrap_servers
    create_and_wait(bootstrap, topic)
    producer(bootstrap, topic)
    with Wire(bootstrap) as wire:
        known = wire.call(InitProducerIdRequest(transactional_id=topic, transaction_timeout_ms=60_000), 4)
        data = batch(
            attributes=TRANSACTIONAL,
            producer_id=known.producer_id,
            producer_epoch=known.producer_epoch,
            sequence=0,
        )
        request = produce_request(topic, data)
        request.transactional_id = topic
        codes = []
        for version in (10, 11):
            answer = wire.call(request, version).responses[0].partition_responses[0]
            codes.append(ErrorCode(answer.error_code))
    refused = [ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE]
    assert codes == (refused if enabled else [ErrorCode.NONE, ErrorCode.NONE])
