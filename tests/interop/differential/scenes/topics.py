"""Topics and their configs: creation, changes and deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moldau.protocol.messages import alter_configs, incremental_alter_configs
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.interop.differential.broker import Broker

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
UNKNOWN_ID = bytes(range(16))
#: Changes that Apache Kafka's controller accepts although its brokers refuse them; they would persist.
UNCHECKED = ("set to null", "twice the same", "a broker, read only", "a broker, bad")


def new_topic(
    name: str, partitions: int = 1, factor: int = 1, config: Mapping[str, str | None] | None = None,
    assignments: Sequence[tuple[int, list[int]]] = (),
) -> CreatableTopic:  # fmt: skip
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()],
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
    )


def create(broker: Broker) -> None:
    for version in range(2, 8):
        for validate_only in (True, False):
            _creations(broker, version, validate_only)


def _creations(broker: Broker, version: int, validate_only: bool) -> None:
    number = 0

    def say(label: str, *topics: CreatableTopic) -> None:
        _create(broker, f"v{version} {label}, {validate_only}", version, validate_only, *topics)

    def name() -> str:
        nonlocal number
        number += 1
        return broker.name(f"new-{version}-{validate_only}-{number}")

    taken = name()
    say("plain", new_topic(taken))
    say("again", new_topic(taken))
    say("three partitions", new_topic(name(), 3))
    say("defaults", new_topic(name(), -1, -1))
    for count in (0, -2, 2**31 - 1):
        say(f"{count} partitions", new_topic(name(), count))
    for factor in (0, 2, -2):
        say(f"factor {factor}", new_topic(name(), 1, factor))
    for bad in ("", ".", "..", "a/b", "x" * 250):
        say(f"name {bad[:5]!r}", new_topic(bad))
    twice = name()
    say("the same twice", new_topic(twice), new_topic(twice), new_topic(name()))
    say("an internal name", new_topic("__cluster_metadata"))
    say("a setting", new_topic(name(), config={"retention.ms": "1000", "cleanup.policy": "compact"}))
    say("an unknown setting", new_topic(name(), config={"nobody.knows": "1"}))
    say("a bad value", new_topic(name(), config={"retention.ms": "x"}))
    say("a null value", new_topic(name(), config={"retention.ms": None}))
    say("assigned", new_topic(name(), -1, -1, assignments=[(0, [1]), (1, [1])]))
    say("assigned with counts", new_topic(name(), 2, 1, assignments=[(0, [1]), (1, [1])]))
    say("assigned to no broker", new_topic(name(), -1, -1, assignments=[(0, [7])]))
    say("assigned twice", new_topic(name(), -1, -1, assignments=[(0, [1, 1])]))
    say("a gap", new_topic(name(), -1, -1, assignments=[(0, [1]), (2, [1])]))
    say("no replicas", new_topic(name(), -1, -1, assignments=[(0, [])]))
    say("nothing")


def _create(broker: Broker, label: str, version: int, validate_only: bool, *topics: CreatableTopic) -> None:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=validate_only)
    answer = broker.call(request, version)
    for topic in answer.topics:
        if topic.topic_id != bytes(16):
            broker.knows(topic.name, topic.topic_id)
    broker.note(label, answer)


def delete(broker: Broker) -> None:
    for version in range(1, 7):
        topic = broker.topic(f"gone-{version}")
        topic_id = broker.topic_ids[topic]
        states: dict[str, list[DeleteTopicState]] = {}
        if version >= 6:
            states = {
                "both": [DeleteTopicState(name=topic, topic_id=topic_id)],
                "neither": [DeleteTopicState(name=None)],
                "unknown id": [DeleteTopicState(name=None, topic_id=UNKNOWN_ID)],
                "twice": [DeleteTopicState(name=topic), DeleteTopicState(name=topic)],
                "by name and by id": [
                    DeleteTopicState(name=topic), DeleteTopicState(name=None, topic_id=topic_id),
                ],
                "unknown": [DeleteTopicState(name="nobody")],
                "bad name": [DeleteTopicState(name="a/b")],
                "by id": [DeleteTopicState(name=None, topic_id=topic_id)],
                "gone": [DeleteTopicState(name=None, topic_id=topic_id)],
                "nothing": [],
            }  # fmt: skip
            for label, topics in states.items():
                broker.ask(f"v6 {label}", DeleteTopicsRequest(topics=topics, timeout_ms=10_000), version)
            continue
        for label, names in (
            ("unknown", ["nobody"]), ("bad name", ["a/b"]), ("twice", [topic, topic]), ("good", [topic]),
            ("gone", [topic]), ("nothing", []),
        ):  # fmt: skip
            request = DeleteTopicsRequest(topic_names=names, timeout_ms=10_000)
            broker.ask(f"v{version} {label}", request, version)


def more_partitions(broker: Broker) -> None:
    for version in range(4):
        topic = broker.topic(f"growing-{version}")
        for label, name, count, assignments in (
            ("the same", topic, 1, None),
            ("fewer", topic, 0, None),
            ("negative", topic, -1, None),
            ("three", topic, 3, None),
            ("assigned", topic, 4, [[1]]),
            ("assigned to no broker", topic, 5, [[7]]),
            ("assigned twice", topic, 5, [[1, 1]]),
            ("too few assigned", topic, 6, [[1]]),
            ("too many assigned", topic, 5, [[1], [1]]),
            ("no replicas", topic, 5, [[]]),
            ("unknown", "nobody", 3, None),
            ("bad name", "a/b", 3, None),
        ):
            for validate_only in (True, False):
                wanted = CreatePartitionsTopic(name=name, count=count)
                wanted.assignments = (
                    None
                    if assignments is None
                    else [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
                )
                request = CreatePartitionsRequest(
                    topics=[wanted], timeout_ms=10_000, validate_only=validate_only
                )
                broker.ask(f"v{version} {label}, {validate_only}", request, version)
        both = [CreatePartitionsTopic(name=topic, count=8, assignments=None)] * 2
        broker.ask(f"v{version} twice", CreatePartitionsRequest(topics=both, timeout_ms=10_000), version)


def settings(broker: Broker) -> None:
    topic = broker.topic("settings")
    cases: list[tuple[str, int, str, list[tuple[str, int, str | None]]]] = [
        ("set", TOPIC, topic, [("retention.ms", SET, "5000")]),
        ("an invalid value", TOPIC, topic, [("retention.ms", SET, "x")]),
        ("out of range", TOPIC, topic, [("segment.bytes", SET, "1")]),
        ("set to null", TOPIC, topic, [("retention.ms", SET, None)]),
        ("append", TOPIC, topic, [("cleanup.policy", APPEND, "compact")]),
        ("append again", TOPIC, topic, [("cleanup.policy", APPEND, "compact")]),
        ("subtract", TOPIC, topic, [("cleanup.policy", SUBTRACT, "delete")]),
        ("append to a config that is not a list", TOPIC, topic, [("retention.ms", APPEND, "1")]),
        ("unknown", TOPIC, topic, [("nobody.knows", SET, "1")]),
        ("delete unknown", TOPIC, topic, [("nobody.knows", DELETE, None)]),
        ("delete", TOPIC, topic, [("cleanup.policy", DELETE, None)]),
        ("twice the same", TOPIC, topic, [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]),
        ("an unknown operation", TOPIC, topic, [("retention.ms", 9, "1")]),
        ("nothing", TOPIC, topic, []),
        ("an unknown topic", TOPIC, "nobody", [("retention.ms", SET, "1")]),
        ("an invalid topic name", TOPIC, "a/b", [("retention.ms", SET, "1")]),
        ("no topic", TOPIC, "", [("retention.ms", SET, "1")]),
        ("a broker", BROKER, "1", [("log.cleaner.threads", SET, "2")]),
        ("a broker, read only", BROKER, "1", [("node.id", SET, "2")]),
        ("a broker, bad", BROKER, "1", [("log.cleaner.threads", SET, "-3")]),
        ("another broker", BROKER, "7", [("log.cleaner.threads", SET, "2")]),
        ("no broker id", BROKER, "x", [("log.cleaner.threads", SET, "2")]),
        ("all brokers", BROKER, "", [("log.cleaner.threads", SET, "2")]),
        ("all brokers, unset", BROKER, "", [("log.cleaner.threads", DELETE, None)]),
        ("a broker, unset", BROKER, "1", [("log.cleaner.threads", DELETE, None)]),
        ("a group", GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]),
        ("a group, unknown", GROUP, "g", [("nobody.knows", SET, "1")]),
        ("no group", GROUP, "", [("consumer.session.timeout.ms", SET, "50000")]),
        ("metrics", CLIENT_METRICS, "m", [("interval.ms", SET, "1000")]),
        ("metrics, bad", CLIENT_METRICS, "m", [("interval.ms", SET, "1")]),
        ("an unknown type", 77, "x", [("a", SET, "1")]),
    ]
    if broker.at_controller:
        # An unknown operation stops Apache Kafka's active controller.
        cases = [case for case in cases if case[0] != "an unknown operation"]
    for version in (0, 1):
        for label, kind, name, changes in cases:
            for validate_only in (True,) if broker.at_controller and label in UNCHECKED else (True, False):
                request = incremental([(kind, name, changes)], validate_only)
                broker.ask(f"v{version} {label}, {validate_only}", request, version)
        first = (TOPIC, topic, [("retention.ms", SET, "7000")])
        broker.ask(f"v{version} the same resource twice", incremental([first, first], False), version)
        broker.ask(f"v{version} no resource", incremental([], False), version)
    for version in (0, 1, 2):
        for label, kind, name, changes in cases:
            if {operation for _, operation, _ in changes} <= {SET}:
                values = [alter_configs.AlterableConfig(name=key, value=value) for key, _, value in changes]
                resource = alter_configs.AlterConfigsResource(
                    resource_type=kind, resource_name=name, configs=values
                )
                broker.ask(
                    f"v{version} old form, {label}",
                    alter_configs.AlterConfigsRequest(resources=[resource], validate_only=True),
                    version,
                )


def incremental(resources: Sequence[tuple[int, str, Any]], validate_only: bool) -> Any:
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental_alter_configs.AlterableConfig(
                        name=key, config_operation=operation, value=value
                    )
                    for key, operation, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
        validate_only=validate_only,
    )


SCENES = {
    "create topics": create,
    "delete topics": delete,
    "create partitions": more_partitions,
    "alter configs": settings,
}
