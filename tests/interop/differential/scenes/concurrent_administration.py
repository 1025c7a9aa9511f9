"""Several connections at once: one changes the cluster, and the others see the change.

Apache Kafka responds before a change is applied everywhere in the broker, so the scenes wait until another
connection sees it and compare the state then.
"""

from __future__ import annotations

from typing import Any

from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest
from moldau.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from moldau.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.interop.differential.broker import TIME, Broker, Line
from tests.interop.differential.scenes import produce
from tests.interop.differential.scenes.fetch import fetch, of, part
from tests.interop.differential.scenes.topics import SET, TOPIC, incremental, new_topic

GOOD = batch(timestamp=TIME)


def seen_by(line: Line, topic: str, partitions: int = 1) -> Any:
    """Return the Metadata response once the topic has this many partitions, each with a leader."""
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)

    def there() -> Any:
        answer = line.call(asked, 12)
        found = answer.topics[0].partitions
        good = len(found) == partitions and all(each.error_code == 0 for each in found)
        return answer if good else None

    return eventually(there, what=f"{topic} exists")


def gone_for(line: Line, topic: str) -> Any:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)

    def gone() -> Any:
        answer = line.call(asked, 12)
        return answer if answer.topics[0].error_code != 0 else None

    return eventually(gone, what=f"{topic} is deleted")


def taken(line: Line, topic: str, records: bytes, *, partition: int = 0) -> int:
    answer = line.call(produce.request(topic, (partition, records)), 12)
    return int(answer.responses[0].partition_responses[0].error_code)


def topics(broker: Broker) -> None:
    maker, watcher, controller = broker.line(), broker.line(), broker.line(controller=True)
    for label, line in (("broker", maker), ("controller", controller)):
        topic = broker.name(f"seen-{label}")
        watcher.ask(f"{label}, before", MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        ), 12)  # fmt: skip
        created = line.call(CreateTopicsRequest(topics=[new_topic(topic, 2)], timeout_ms=10_000), 7)
        broker.knows(topic, created.topics[0].topic_id)
        broker.note(f"{label}, created", created)
        broker.note(f"{label}, seen", seen_by(watcher, topic, 2))
        eventually(lambda: taken(watcher, topic, GOOD, partition=1) == 0)  # noqa: B023
        more = CreatePartitionsTopic(name=topic, count=3, assignments=None)
        line.ask(f"{label}, grown", CreatePartitionsRequest(topics=[more], timeout_ms=10_000), 3)
        broker.note(f"{label}, grown and seen", seen_by(watcher, topic, 3))
        eventually(lambda: taken(watcher, topic, GOOD, partition=2) == 0)  # noqa: B023
        watcher.ask(f"{label}, the new one", fetch(of(broker, topic, part(0), part(2))), 12)
        line.ask(f"{label}, deleted", DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 5)
        broker.note(f"{label}, gone", gone_for(watcher, topic))


def concurrent_creation(broker: Broker) -> None:
    lines = [broker.line() for _ in range(4)]
    topic = broker.name("made-by-four")

    def all_at_once(label: str, request: Any, version: int, results: str) -> None:
        for line in lines:
            line.post(request, version)
        answers = [line.answer() for line in lines]
        broker.note(label, [getattr(answer, results)[0].error_code for answer in answers])

    create = CreateTopicsRequest(topics=[new_topic(topic)], timeout_ms=10_000)
    all_at_once("one creates, the others get an error", create, 7, "topics")
    seen_by(lines[0], topic)
    more = CreatePartitionsTopic(name=topic, count=2, assignments=None)
    grow = CreatePartitionsRequest(topics=[more], timeout_ms=10_000)
    all_at_once("one adds partitions", grow, 3, "results")
    seen_by(lines[0], topic, 2)
    delete = DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000)
    all_at_once("one deletes", delete, 5, "responses")
    broker.note("gone", gone_for(lines[1], topic))


def settings(broker: Broker) -> None:
    topic = broker.topic("changing", 2)
    changer, writer, watcher = broker.line(), broker.line(), broker.line()
    resource = DescribeConfigsResource(
        resource_type=TOPIC,
        resource_name=topic,
        configuration_keys=["max.message.bytes", "retention.ms", "message.timestamp.type"],
    )
    large = batch([(b"k", bytes(500))], timestamp=TIME)

    def change(key: str, value: str) -> None:
        changer.ask(f"{key}={value}", incremental([(TOPIC, topic, [(key, SET, value)])], False), 1)

        def shown() -> bool:
            configs = watcher.call(DescribeConfigsRequest(resources=[resource]), 4).results[0].configs
            return any(each.name == key and each.value == value for each in configs)

        eventually(shown, what=f"{key} is shown")
        watcher.ask(f"{key}={value}, described", DescribeConfigsRequest(resources=[resource]), 4)

    change("max.message.bytes", "300")
    eventually(lambda: taken(writer, topic, large, partition=1) == 10, what="too large is refused")
    writer.ask("too large", produce.request(topic, (0, large)), 12)
    writer.ask("small enough", produce.request(topic, (0, GOOD)), 12)
    change("max.message.bytes", "2000")
    eventually(lambda: taken(writer, topic, large, partition=1) == 0, what="it is accepted again")
    writer.ask("taken again", produce.request(topic, (0, large)), 12)
    change("message.timestamp.type", "LogAppendTime")

    def by_append_time() -> bool:
        answer = writer.call(produce.request(topic, (1, GOOD)), 12)
        return bool(answer.responses[0].partition_responses[0].log_append_time_ms != -1)

    eventually(by_append_time, what="append time is used")
    writer.ask("append time", produce.request(topic, (0, GOOD)), 12)
    change("retention.ms", "123456789")
    produce.look(broker, "the stored batches", topic)


def leaders(broker: Broker) -> None:
    topic = broker.topic("contested", 2)
    lines = [broker.line() for _ in range(3)]
    wanted = [TopicPartitions(topic=topic, partitions=[0, 1])]
    for kind in (0, 1):
        elect = ElectLeadersRequest(election_type=kind, topic_partitions=wanted, timeout_ms=5000)
        for line in lines:
            line.post(elect, 2)
        for number, line in enumerate(lines):
            line.take(f"election {kind}, {number}")
    for label, replicas in (
        ("to itself", [1]), ("to an unknown broker", [7]), ("to both", [1, 7]), ("cancelled", None),
    ):  # fmt: skip
        move = ReassignablePartition(partition_index=0, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=topic, partitions=[move])], timeout_ms=5000
        )
        listing = ListPartitionReassignmentsRequest(topics=None, timeout_ms=5000)
        for line in lines[:2]:
            line.post(request, 0)
        lines[2].post(listing, 0)
        for number, line in enumerate(lines[:2]):
            line.take(f"{label}, {number}")
        lines[2].take(f"{label}, listed meanwhile")
        lines[2].ask(f"{label}, listed", listing, 0)
    broker.note("the same leaders", seen_by(lines[0], topic, 2))


def quotas(broker: Broker) -> None:
    one, two = broker.line(), broker.line()
    user = broker.name("quota-user")
    asked = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type="user", match_type=0, match=user)], strict=True
    )

    def alter(line: Line, label: str, value: float, *, remove: bool = False) -> None:
        entry = RequestEntryData(
            entity=[EntityData(entity_type="user", entity_name=user)],
            ops=[OpData(key="producer_byte_rate", value=value, remove=remove)],
        )
        line.ask(label, AlterClientQuotasRequest(entries=[entry]), 1)

    def shows(line: Line, *values: float) -> None:
        def there() -> bool:
            entries = line.call(asked, 1).entries or []
            return [each.value for entry in entries for each in entry.values] == list(values)

        eventually(there, what=f"quotas are {values}")
        line.ask(f"{list(values)} described", asked, 1)

    shows(two)
    alter(one, "the first sets it", 1000.0)
    shows(two, 1000.0)
    alter(two, "the second changes it", 2000.0)
    shows(one, 2000.0)
    alter(one, "the first removes it", 0.0, remove=True)
    shows(two)


SCENES = {
    "several connections, topics": topics,
    "several connections, the same topic": concurrent_creation,
    "several connections, settings": settings,
    "several connections, leaders": leaders,
    "several connections, quotas": quotas,
}
