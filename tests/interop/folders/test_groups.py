"""The coordinator topics of Apache Kafka after a run of Moldau on the folder: unchanged and readable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.harness.apache.shared_folder import APACHE, MOLDAU, SharedFolder
from tests.harness.clients.streams_wire import StreamsWireClient, settle
from tests.harness.folders.data_folders import commit_offsets, group_offsets, write_transactions
from tests.harness.folders.inventory import stored_bytes, survey_records, take_inventory
from tests.harness.folders.workload import alter_configs
from tests.harness.waiting import eventually
from tests.harness.wire.requests import create_and_wait
from tests.harness.wire.wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

GROUPS = [f"group-{number}" for number in range(4)]
OFFSETS, STATES = "__consumer_offsets", "__transaction_state"


@pytest.fixture
def shared(tmp_path: Path, libs: Path) -> Iterator[SharedFolder]:
    config: dict[str, str | int | bool] = {
        "broker.session.timeout.ms": 1000,
        "broker.heartbeat.interval.ms": 200,
        "log.initial.task.delay.ms": 100,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
        "log.cleaner.enable": False,
        "group.streams.initial.rebalance.delay.ms": 0,
        "group.streams.assignment.interval.ms": 0,
    }
    with SharedFolder(tmp_path, libs, config) as folder:
        yield folder


def knowledge(bootstrap: str) -> Any:
    """Return the state of Apache Kafka's coordinators."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    described = admin.describe_consumer_groups(GROUPS)
    return {
        group: (str(described[group].result(30).state), group_offsets(bootstrap, group, "orders"))
        for group in GROUPS
    }


def cleaned_up_to(shared: SharedFolder) -> int:
    texts = [path.read_text() for each in shared.dirs for path in each.glob("cleaner-offset-checkpoint")]
    return max(
        (int(found) for found in re.findall(rf"^{OFFSETS} 0 (\d+)$", "\n".join(texts), re.M)), default=0
    )


def test_coordinator_state_survives_the_change_of_broker(shared: SharedFolder) -> None:
    shared.format(APACHE)
    bootstrap = shared.start(APACHE)
    create_and_wait(bootstrap, "orders", 2)
    write_transactions(bootstrap, "orders")
    commit_offsets(bootstrap, GROUPS[0], "orders", 0)
    # Small segments, so that the cleaner has something to do.
    alter_configs(bootstrap, (2, OFFSETS, {"segment.ms": "50"}))
    for offset in range(8):
        for group in GROUPS:
            commit_offsets(bootstrap, group, "orders", offset)
    known = knowledge(bootstrap)
    internal = {topic: stored_bytes(bootstrap, topic) for topic in (OFFSETS, STATES)}
    before = take_inventory(bootstrap)
    shared.stop()
    # Without compaction every byte is unchanged.
    bootstrap = shared.start(MOLDAU)
    for topic, data in internal.items():
        assert stored_bytes(bootstrap, topic)[: len(data)] == data
    assert read_committed(bootstrap) == committed_values(before)
    shared.stop()
    shared.reconfigure({"log.cleaner.enable": True, "log.cleaner.min.cleanable.ratio": 0.01})
    shared.reconfigure({"log.cleaner.backoff.ms": 200})
    bootstrap = shared.start(MOLDAU)
    eventually(lambda: cleaned_up_to(shared) > 0, what=f"{OFFSETS} is compacted")
    shared.stop()
    bootstrap = shared.start(APACHE)
    compacted = survey_records(stored_bytes(bootstrap, OFFSETS))
    assert len(compacted) < len(survey_records(internal[OFFSETS]))
    assert last_by_key(compacted).items() >= last_by_key(survey_records(internal[OFFSETS])).items()
    assert knowledge(bootstrap) == known
    # The next producer with the same transactional id ends the open transaction.
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t3", "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"after", partition=0)
    producer.commit_transaction(30)
    assert read_committed(bootstrap) == sorted([*committed_values(before), b"after"])
    shared.stop()


def last_by_key(records: list[Any]) -> dict[Any, Any]:
    """Return the last value of every key, without tombstones, which compaction may remove."""
    values = {key: value for _, _, key, value, _ in records}
    return {key: value for key, value in values.items() if value is not None}


def committed_values(before: Any) -> list[bytes]:
    """Return the committed values, of two transactions of six records each."""
    assert before["topics"]["orders"]["partitions"]["0"]["end"] > 0
    return sorted(f"commit {n}".encode() for n in range(6) for _ in range(2))


def read_committed(bootstrap: str) -> list[bytes]:
    """Return all records of committed transactions up to the last stable offset."""
    settings = {
        "group.id": "reader",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "log_level": 0,
    }
    consumer = Consumer({"bootstrap.servers": bootstrap, "isolation.level": "read_committed", **settings})
    consumer.assign([TopicPartition("orders", partition, 0) for partition in range(2)])
    values: list[bytes] = []
    ended: set[int] = set()
    while len(ended) < 2:
        message = consumer.poll(20)
        assert message is not None, "nothing comes"
        if message.error():
            ended.add(int(message.partition() or 0))
        else:
            values.append(message.value() or b"")
    consumer.close()
    return sorted(values)


def test_streams_group_changes_hands_both_ways(shared: SharedFolder) -> None:
    """Members continue in their epoch: topology, metadata hash, tasks and epochs are the same for both."""
    shared.format(APACHE)
    bootstrap = shared.start(APACHE)
    with Wire(bootstrap) as wire:
        first = StreamsWireClient(wire, "words", "first")
        create_and_wait(bootstrap, first.source, 3)
        settle(first)
        theirs = first.described()
    shared.stop()
    with Wire(shared.start(MOLDAU)) as wire:
        first.wire = wire
        ours = continued(first)
        assert ours == theirs
        second = StreamsWireClient(wire, "words", "second")
        settle(first, second)
        ours = first.described()
        assert {len(each.assignment.active_tasks) for each in ours.members} == {2}
    shared.stop()
    with Wire(shared.start(APACHE)) as wire:
        first.wire = second.wire = wire
        continued(first)
        theirs = continued(second)
        for each in (theirs, ours):
            each.members.sort(key=lambda member: member.member_id)
            # Apache Kafka shows the partition counts of internal topics only after the next record.
            each.topology = None
        assert theirs == ours
        assert first.beat(epoch=-1).error_code == 0
        settle(second)
        assert second.active == {"0": [0, 1, 2], "1": [0, 1, 2]}
    shared.stop()


def continued(member: StreamsWireClient) -> Any:
    """Send a heartbeat, which must not change anything, and return the description of the group."""
    member.find_coordinator()
    epoch = member.epoch
    answer = member.beat()
    assert (answer.member_epoch, answer.active_tasks, answer.status) == (epoch, None, [])
    return member.described()
