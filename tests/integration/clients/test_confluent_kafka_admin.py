"""confluent-kafka's AdminClient: topics, partitions, configs, offsets, records, the cluster."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ElectionType,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
    Uuid,
)
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from tests.harness.waiting import eventually


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def broker_id(admin: AdminClient) -> str:
    return str(admin.describe_cluster().result(60).nodes[0].id)


def create(admin: AdminClient, name: str, partitions: int = 1, **config: str) -> None:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
    admin.create_topics([new])[name].result(60)
    eventually(lambda: name in admin.list_topics(timeout=60).topics)


def produce(bootstrap: str, topic: str, count: int, first_timestamp: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for n in range(count):
        timestamp = first_timestamp + n if first_timestamp else 0
        producer.produce(topic, str(n), partition=0, timestamp=timestamp)
    assert producer.flush(60) == 0


def error_of(future: Any) -> KafkaError:
    with pytest.raises(KafkaException) as refused:
        future.result(60)
    return refused.value.args[0]


def configs(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(kind, name)
    return admin.describe_configs([resource])[resource].result(60)


def alter(
    admin: AdminClient, kind: ResourceType, name: str, *changes: tuple[str, str | None, AlterConfigOpType]
) -> Any:
    entries = [ConfigEntry(key, value, incremental_operation=operation) for key, value, operation in changes]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    return admin.incremental_alter_configs([resource])[resource]


SET, DELETE = AlterConfigOpType.SET, AlterConfigOpType.DELETE
APPEND, SUBTRACT = AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT


def test_create_list_describe_and_delete_a_topic(admin: AdminClient, topic: str) -> None:
    create(admin, topic, partitions=13)
    described = admin.describe_topics(TopicCollection([topic]))[topic].result(60)
    assert described.name == topic
    assert described.topic_id != Uuid(0, 0)
    assert not described.is_internal
    assert [partition.id for partition in described.partitions] == list(range(13))
    for partition in described.partitions:
        assert [node.id for node in partition.replicas] == [partition.leader.id]
        assert [node.id for node in partition.isr] == [partition.leader.id]
    admin.delete_topics([topic])[topic].result(60)
    eventually(lambda: topic not in admin.list_topics(timeout=60).topics)


def test_a_recreated_topic_is_empty_and_has_another_id(
    admin: AdminClient, bootstrap: str, topic: str
) -> None:
    def topic_id() -> Uuid:
        return admin.describe_topics(TopicCollection([topic]))[topic].result(60).topic_id

    create(admin, topic)
    produce(bootstrap, topic, 5)
    before = topic_id()
    admin.delete_topics([topic])[topic].result(60)
    eventually(lambda: topic not in admin.list_topics(timeout=60).topics)
    create(admin, topic)
    assert topic_id() != before
    spec = {TopicPartition(topic, 0): OffsetSpec.latest()}
    assert eventually(lambda: [f.result(60).offset for f in admin.list_offsets(spec).values()]) == [0]


def test_creating_an_existing_topic_is_refused(admin: AdminClient, topic: str) -> None:
    create(admin, topic)
    future = admin.create_topics([NewTopic(topic, num_partitions=1)])[topic]
    assert error_of(future).code() == KafkaError.TOPIC_ALREADY_EXISTS


def test_validate_only_creates_nothing(admin: AdminClient, topic: str) -> None:
    admin.create_topics([NewTopic(topic, num_partitions=3)], validate_only=True)[topic].result(60)
    bad = admin.create_topics([NewTopic(topic, num_partitions=3, replication_factor=9)], validate_only=True)
    assert error_of(bad[topic]).code() == KafkaError.INVALID_REPLICATION_FACTOR
    assert topic not in admin.list_topics(timeout=60).topics


@pytest.mark.parametrize("name", ["..", ".", "a/b", "../escape", "with space", "naïve", "x" * 250, "co:lon"])
def test_invalid_topic_names_are_refused(admin: AdminClient, name: str) -> None:
    future = admin.create_topics([NewTopic(name, num_partitions=1)])[name]
    assert error_of(future).code() == KafkaError.TOPIC_EXCEPTION


def test_names_that_collide_in_metrics_are_refused(admin: AdminClient, topic: str) -> None:
    create(admin, f"{topic}.x")
    future = admin.create_topics([NewTopic(f"{topic}_x", num_partitions=1)])[f"{topic}_x"]
    assert error_of(future).code() == KafkaError.TOPIC_EXCEPTION


def test_invalid_replication_factor_is_refused(admin: AdminClient, topic: str) -> None:
    future = admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=3)])[topic]
    assert error_of(future).code() == KafkaError.INVALID_REPLICATION_FACTOR


def test_partition_count_is_the_default_or_that_of_the_assignment(
    admin: AdminClient, topic: str, broker_id: str
) -> None:
    by_default, assigned = f"{topic}-default", f"{topic}-assigned"
    admin.create_topics([NewTopic(by_default)])[by_default].result(60)
    placed = NewTopic(assigned, num_partitions=2, replica_assignment=[[int(broker_id)], [int(broker_id)]])
    admin.create_topics([placed])[assigned].result(60)
    topics = eventually(lambda: (t := admin.list_topics(timeout=60).topics) and assigned in t and t)
    assert len(topics[by_default].partitions) == 1
    assert len(topics[assigned].partitions) == 2


def test_an_assignment_to_an_unknown_broker_is_refused(admin: AdminClient, topic: str) -> None:
    placed = NewTopic(topic, num_partitions=1, replica_assignment=[[4242]])
    assert error_of(admin.create_topics([placed])[topic]).code() == KafkaError.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    "config",
    [{"no.such.config": "1"}, {"retention.ms": "soon"}, {"cleanup.policy": "shred"}, {"segment.bytes": "1"}],
)
def test_invalid_topic_configs_are_refused(admin: AdminClient, topic: str, config: dict[str, str]) -> None:
    error = error_of(admin.create_topics([NewTopic(topic, num_partitions=1, config=config)])[topic])
    assert error.code() == KafkaError.INVALID_CONFIG
    assert next(iter(config)) in error.str()


def test_deleting_an_unknown_topic_is_an_error(admin: AdminClient, topic: str) -> None:
    assert error_of(admin.delete_topics([topic])[topic]).code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_describing_an_unknown_topic_is_an_error(admin: AdminClient, topic: str) -> None:
    future = admin.describe_topics(TopicCollection([topic]))[topic]
    assert error_of(future).code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_the_partition_count_grows_and_never_shrinks(admin: AdminClient, bootstrap: str, topic: str) -> None:
    create(admin, topic, partitions=2)
    produce(bootstrap, topic, 3)
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(60)
    eventually(lambda: len(admin.list_topics(topic, timeout=60).topics[topic].partitions) == 5)
    for count in (5, 3):
        error = error_of(admin.create_partitions([NewPartitions(topic, count)])[topic])
        assert error.code() == KafkaError.INVALID_PARTITIONS
    unknown = admin.create_partitions([NewPartitions(f"{topic}-unknown", 5)])[f"{topic}-unknown"]
    assert error_of(unknown).code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"new", partition=4)
    assert producer.flush(60) == 0


def test_topic_configs_show_their_source(admin: AdminClient, topic: str) -> None:
    create(admin, topic, retention_ms="86400000")
    entries = configs(admin, ResourceType.TOPIC, topic)
    retention = entries["retention.ms"]
    assert (retention.value, retention.source) == ("86400000", ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    assert not retention.is_default
    synonyms = [(s.name, s.value, s.source) for s in retention.synonyms.values()]
    assert synonyms[0] == ("retention.ms", "86400000", ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    size = entries["max.message.bytes"]
    assert (size.value, size.source, size.is_default) == ("1048588", ConfigSource.DEFAULT_CONFIG.value, True)
    assert [synonym.name for synonym in size.synonyms.values()] == ["message.max.bytes"]
    assert entries["cleanup.policy"].value == "delete"
    assert not entries["cleanup.policy"].is_read_only
    assert not entries["cleanup.policy"].is_sensitive


def test_topic_configs_are_altered_incrementally(admin: AdminClient, topic: str) -> None:
    def values() -> dict[str, str]:
        described = configs(admin, ResourceType.TOPIC, topic)
        return {name: described[name].value for name in ("retention.ms", "cleanup.policy", "segment.bytes")}

    create(admin, topic, segment_bytes="2097152")
    alter(
        admin, ResourceType.TOPIC, topic, ("retention.ms", "1000", SET), ("cleanup.policy", "compact", APPEND)
    ).result(60)
    expected = {"retention.ms": "1000", "cleanup.policy": "delete,compact", "segment.bytes": "2097152"}
    eventually(lambda: values() == expected, what=str(expected))
    changes = [
        ("retention.ms", None, DELETE),
        ("cleanup.policy", "delete", SUBTRACT),
        ("segment.bytes", None, DELETE),
    ]
    alter(admin, ResourceType.TOPIC, topic, *changes).result(60)
    expected = {"retention.ms": "604800000", "cleanup.policy": "compact", "segment.bytes": "1073741824"}
    eventually(lambda: values() == expected, what=str(expected))


def test_alter_configs_replaces_all_configs(admin: AdminClient, topic: str) -> None:
    create(admin, topic, retention_ms="1000", max_message_bytes="5000")
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"retention.ms": "2000"})
    admin.alter_configs([resource])[resource].result(60)

    def replaced() -> bool:
        entries = configs(admin, ResourceType.TOPIC, topic)
        return (entries["retention.ms"].value, entries["max.message.bytes"].value) == ("2000", "1048588")

    eventually(replaced)


@pytest.mark.parametrize(
    ("name", "value"), [("no.such.config", "1"), ("retention.ms", "soon"), ("segment.bytes", "-5")]
)
def test_an_invalid_topic_config_changes_nothing(
    admin: AdminClient, topic: str, name: str, value: str
) -> None:
    create(admin, topic)
    future = alter(admin, ResourceType.TOPIC, topic, ("retention.bytes", "5000", SET), (name, value, SET))
    error = error_of(future)
    assert error.code() == KafkaError.INVALID_CONFIG
    assert name in error.str()
    assert configs(admin, ResourceType.TOPIC, topic)["retention.bytes"].value == "-1"


def test_describing_configs_of_an_unknown_topic_is_an_error(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    assert error_of(admin.describe_configs([resource])[resource]).code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    future = alter(admin, ResourceType.TOPIC, topic, ("retention.ms", "1000", SET))
    assert error_of(future).code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_changed_topic_config_takes_effect(admin: AdminClient, bootstrap: str, topic: str) -> None:
    create(admin, topic)
    alter(admin, ResourceType.TOPIC, topic, ("max.message.bytes", "1000", SET)).result(60)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})

    def refused() -> bool:
        errors: list[KafkaError | None] = []
        producer.produce(topic, b"x" * 5000, on_delivery=lambda error, _: errors.append(error))
        producer.flush(60)
        return errors[0] is not None and errors[0].code() == KafkaError.MSG_SIZE_TOO_LARGE

    eventually(refused)


def test_broker_configs_show_static_and_default_values(admin: AdminClient, broker_id: str) -> None:
    entries = configs(admin, ResourceType.BROKER, broker_id)
    assert entries["node.id"].value == broker_id
    assert entries["node.id"].source == ConfigSource.STATIC_BROKER_CONFIG.value
    assert entries["node.id"].is_read_only
    assert entries["log.retention.hours"].value == "168"
    assert entries["log.retention.hours"].source == ConfigSource.DEFAULT_CONFIG.value
    assert not entries["background.threads"].is_read_only
    assert len(entries) > 250


def test_broker_configs_are_changed_without_a_restart(admin: AdminClient, broker_id: str) -> None:
    def threads() -> tuple[str, int]:
        entry = configs(admin, ResourceType.BROKER, broker_id)["background.threads"]
        return entry.value, entry.source

    alter(admin, ResourceType.BROKER, broker_id, ("background.threads", "14", SET)).result(60)
    eventually(lambda: threads() == ("14", ConfigSource.DYNAMIC_BROKER_CONFIG.value), what="the new value")
    entry = configs(admin, ResourceType.BROKER, broker_id)["background.threads"]
    assert [(s.value, s.source) for s in entry.synonyms.values()][-1] == (
        "10",
        ConfigSource.DEFAULT_CONFIG.value,
    )
    alter(admin, ResourceType.BROKER, broker_id, ("background.threads", None, DELETE)).result(60)
    eventually(lambda: threads() == ("10", ConfigSource.DEFAULT_CONFIG.value), what="the default again")


@pytest.mark.parametrize(
    ("name", "value"), [("node.id", "7"), ("background.threads", "0"), ("background.threads", "many")]
)
def test_invalid_broker_configs_are_refused(
    admin: AdminClient, broker_id: str, name: str, value: str
) -> None:
    error = error_of(alter(admin, ResourceType.BROKER, broker_id, (name, value, SET)))
    assert error.code() in (KafkaError.INVALID_CONFIG, KafkaError.INVALID_REQUEST)
    assert name in error.str() or value in error.str()


def test_list_offsets_by_position_time_and_max_timestamp(
    admin: AdminClient, bootstrap: str, topic: str
) -> None:
    create(admin, topic)
    now = int(time.time() * 1000)
    produce(bootstrap, topic, 50, first_timestamp=now)
    partition = TopicPartition(topic, 0)

    def listed(spec: OffsetSpec) -> tuple[int, int]:
        result = admin.list_offsets({partition: spec})[partition].result(60)
        return result.offset, result.timestamp

    assert listed(OffsetSpec.earliest())[0] == 0
    assert listed(OffsetSpec.latest())[0] == 50
    assert listed(OffsetSpec.for_timestamp(now + 20)) == (20, now + 20)
    assert listed(OffsetSpec.max_timestamp()) == (49, now + 49)
    assert listed(OffsetSpec.for_timestamp(now + 10_000))[0] == -1


def test_the_max_timestamp_need_not_be_the_last_record(
    admin: AdminClient, bootstrap: str, topic: str
) -> None:
    create(admin, topic)
    now = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": bootstrap})
    for timestamp in (now, now + 500, now + 100):
        producer.produce(topic, b"v", timestamp=timestamp)
        producer.flush(60)
    partition = TopicPartition(topic, 0)
    result = admin.list_offsets({partition: OffsetSpec.max_timestamp()})[partition].result(60)
    assert (result.offset, result.timestamp) == (1, now + 500)


def test_delete_records_moves_the_log_start_offset(admin: AdminClient, bootstrap: str, topic: str) -> None:
    create(admin, topic)
    produce(bootstrap, topic, 100)
    partition = TopicPartition(topic, 0, 60)
    assert admin.delete_records([partition])[partition].result(60).low_watermark == 60
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "deleted", "enable.auto.commit": False})
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60) == (60, 100)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    first = consumer.poll(60)
    consumer.close()
    assert (first.offset(), first.value()) == (60, b"60")


def test_delete_records_beyond_the_end_is_refused(admin: AdminClient, bootstrap: str, topic: str) -> None:
    create(admin, topic)
    produce(bootstrap, topic, 5)
    beyond = TopicPartition(topic, 0, 6)
    assert error_of(admin.delete_records([beyond])[beyond]).code() == KafkaError.OFFSET_OUT_OF_RANGE


def test_delete_records_of_a_compacted_topic_is_refused(admin: AdminClient, topic: str) -> None:
    create(admin, topic, cleanup_policy="compact")
    partition = TopicPartition(topic, 0, 0)
    assert error_of(admin.delete_records([partition])[partition]).code() == KafkaError.POLICY_VIOLATION


def test_describe_cluster_lists_the_broker(admin: AdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster().result(60)
    assert len(cluster.cluster_id) == 22
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [bootstrap]
    assert cluster.controller.id == cluster.nodes[0].id
    assert admin.list_topics(timeout=60).cluster_id == cluster.cluster_id


def test_a_preferred_leader_election_is_not_needed(admin: AdminClient, topic: str) -> None:
    create(admin, topic)
    partition = TopicPartition(topic, 0)
    [(_, error)] = admin.elect_leaders(ElectionType.PREFERRED, [partition]).result(60).items()
    assert error.code() == KafkaError.ELECTION_NOT_NEEDED


def test_acls_need_an_authorizer(admin: AdminClient) -> None:
    binding = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    assert error_of(admin.create_acls([binding])[binding]).code() == KafkaError.SECURITY_DISABLED
