"""kafka-python's KafkaAdminClient: topics, partitions, configs, log dirs, producers, the quorum."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    AlterConfigOp,
    ConfigResource,
    OffsetSpec,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import (
    ElectionNotNeededError,
    InvalidPartitionsError,
    InvalidTopicError,
    SecurityDisabledError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from tests.harness.waiting import eventually


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


@pytest.fixture
def broker_id(admin: KafkaAdminClient) -> int:
    return int(admin.describe_cluster()["brokers"][0]["broker_id"])


def create(admin: KafkaAdminClient, name: str, partitions: int = 1, **config: str) -> None:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    new = {name: {"num_partitions": partitions, "replication_factor": 1, "configs": settings}}
    admin.create_topics(new, wait_for_metadata=True)


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for n in range(count):
        producer.send(topic, str(n).encode(), partition=0)
    producer.flush(60)
    producer.close()


def config(admin: KafkaAdminClient, kind: str, resource: str, name: str, **options: Any) -> dict[str, Any]:
    described = admin.describe_configs([ConfigResource(kind, resource)], config_filter="all", **options)
    return described[kind.lower()][resource][name]


def test_create_describe_and_delete_a_topic(admin: KafkaAdminClient, topic: str) -> None:
    create(admin, topic, partitions=4)
    assert topic in admin.list_topics()
    [described] = admin.describe_topics([topic])
    assert [partition["partition_index"] for partition in described["partitions"]] == [0, 1, 2, 3]
    assert {len(partition["isr_nodes"]) for partition in described["partitions"]} == {1}
    admin.delete_topics([topic])
    eventually(lambda: topic not in admin.list_topics())


def test_create_topics_returns_id_partitions_and_configs(admin: KafkaAdminClient, topic: str) -> None:
    new = {topic: {"num_partitions": 2, "configs": {"retention.ms": "5000"}}}
    [created] = admin.create_topics(new)["topics"]
    assert (created["num_partitions"], created["replication_factor"]) == (2, 1)
    assert created["configs"]["retention.ms"]["value"] == "5000"
    assert created["configs"]["cleanup.policy"]["value"] == "delete"


def test_existing_and_invalid_topic_names_are_refused(admin: KafkaAdminClient, topic: str) -> None:
    create(admin, topic)
    with pytest.raises(TopicAlreadyExistsError):
        create(admin, topic)
    with pytest.raises(InvalidTopicError):
        create(admin, "../../etc")
    with pytest.raises(InvalidPartitionsError):
        admin.create_topics({f"{topic}-none": {"num_partitions": 0, "replication_factor": 1}})
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([f"{topic}-unknown"])


def test_partitions_are_added(admin: KafkaAdminClient, topic: str) -> None:
    create(admin, topic)
    admin.create_partitions({topic: 3})
    eventually(lambda: len(admin.describe_topics([topic])[0]["partitions"]) == 3)
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({topic: 2})


def test_topic_configs_are_altered_incrementally_and_replaced(admin: KafkaAdminClient, topic: str) -> None:
    create(admin, topic, max_message_bytes="5000")
    for incremental in (True, False):
        value = "60000" if incremental else "70000"
        admin.alter_configs(
            [ConfigResource("TOPIC", topic, {"retention.ms": value})], incremental=incremental
        )
        eventually(lambda value=value: config(admin, "TOPIC", topic, "retention.ms")["value"] == value)
        assert config(admin, "TOPIC", topic, "max.message.bytes")["value"] == "5000"
    admin.reset_configs([ConfigResource("TOPIC", topic, ["retention.ms", "max.message.bytes"])])
    eventually(lambda: config(admin, "TOPIC", topic, "retention.ms")["value"] == "604800000")
    assert config(admin, "TOPIC", topic, "max.message.bytes")["config_source"] == "DEFAULT_CONFIG"


def test_a_list_config_is_appended_to_and_subtracted_from(admin: KafkaAdminClient, topic: str) -> None:
    create(admin, topic)
    for operation, value in ((AlterConfigOp.APPEND, "delete,compact"), (AlterConfigOp.SUBTRACT, "delete")):
        admin.alter_configs([ConfigResource("TOPIC", topic, {"cleanup.policy": (operation, "compact")})])
        eventually(lambda value=value: config(admin, "TOPIC", topic, "cleanup.policy")["value"] == value)


def test_described_configs_have_types_synonyms_and_sources(
    admin: KafkaAdminClient, topic: str, broker_id: int
) -> None:
    create(admin, topic, segment_ms="10000")
    entry = config(admin, "TOPIC", topic, "segment.ms", include_synonyms=True)
    assert (entry["value"], entry["config_type"]) == ("10000", "LONG")
    assert entry["synonyms"][0] == {"name": "segment.ms", "value": "10000", "source": "DYNAMIC_TOPIC_CONFIG"}
    assert config(admin, "TOPIC", topic, "cleanup.policy")["config_type"] == "LIST"
    entry = config(admin, "BROKER", str(broker_id), "log.roll.ms", include_synonyms=True)
    assert (entry["value"], entry["config_source"]) == (None, "DEFAULT_CONFIG")
    entry = config(admin, "BROKER", str(broker_id), "log.dirs", include_synonyms=True)
    assert (entry["config_source"], entry["read_only"]) == ("STATIC_BROKER_CONFIG", True)


def test_only_the_requested_configs_are_described(admin: KafkaAdminClient, topic: str) -> None:
    create(admin, topic)
    asked = ConfigResource("TOPIC", topic, {"retention.ms": None, "segment.ms": None})
    described = admin.describe_configs([asked], config_filter="all")["topic"][topic]
    assert sorted(described) == ["retention.ms", "segment.ms"]


def test_broker_configs_change_without_a_restart(admin: KafkaAdminClient, broker_id: int) -> None:
    name = str(broker_id)
    admin.alter_configs([ConfigResource("BROKER", name, {"log.cleaner.threads": "2"})])
    eventually(lambda: config(admin, "BROKER", name, "log.cleaner.threads")["value"] == "2")
    assert config(admin, "BROKER", name, "log.cleaner.threads")["config_source"] == "DYNAMIC_BROKER_CONFIG"
    admin.reset_configs([ConfigResource("BROKER", name, ["log.cleaner.threads"])])
    eventually(lambda: config(admin, "BROKER", name, "log.cleaner.threads")["value"] == "1")


def test_list_offsets_by_every_offset_spec(admin: KafkaAdminClient, bootstrap: str, topic: str) -> None:
    create(admin, topic)
    produce(bootstrap, topic, 10)
    partition = TopicPartition(topic, 0)

    def offset(spec: Any) -> int:
        return admin.list_partition_offsets({partition: spec})[partition].offset

    assert offset(OffsetSpec.EARLIEST) == 0
    assert offset(OffsetSpec.LATEST) == 10
    assert 0 <= offset(OffsetSpec.MAX_TIMESTAMP) <= 9
    assert offset(OffsetSpec.EARLIEST_LOCAL) == 0
    assert offset(1) == 0
    assert offset(int(time.time() * 1000) + 60_000) == -1


def test_delete_records_moves_the_log_start_offset(
    admin: KafkaAdminClient, bootstrap: str, topic: str
) -> None:
    create(admin, topic)
    produce(bootstrap, topic, 10)
    partition = TopicPartition(topic, 0)
    assert admin.delete_records({partition: 4})[partition]["low_watermark"] == 4
    assert admin.delete_records({partition: -1})[partition]["low_watermark"] == 10
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    assert consumer.beginning_offsets([partition]) == {partition: 10}
    consumer.close()


def test_log_dirs_list_the_partitions(
    admin: KafkaAdminClient, bootstrap: str, topic: str, broker_id: int
) -> None:
    create(admin, topic, partitions=2)
    produce(bootstrap, topic, 10)
    [of_broker] = admin.describe_log_dirs([topic])
    assert of_broker["broker"] == broker_id
    [folder] = of_broker["log_dirs"]
    assert folder["error_code"] == 0
    assert folder["log_dir"].startswith("/")
    [described] = folder["topics"]
    sizes = {
        partition["partition_index"]: partition["partition_size"] for partition in described["partitions"]
    }
    assert sizes[0] > 100
    assert sizes[1] == 0
    assert folder["total_bytes"] >= folder["usable_bytes"] > 0


def test_describe_cluster_and_its_features(admin: KafkaAdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster()
    assert [f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]] == [bootstrap]
    assert len(cluster["cluster_id"]) == 22
    features = admin.describe_features()
    assert features["metadata.version"]["finalized"] == (30, 30)


def test_a_quorum_of_one_has_a_leader(admin: KafkaAdminClient, broker_id: int) -> None:
    quorum = admin.describe_metadata_quorum()
    [metadata] = quorum["topics"]
    [partition] = metadata["partitions"]
    assert (metadata["topic_name"], partition["leader_id"]) == ("__cluster_metadata", broker_id)
    assert [voter["replica_id"] for voter in partition["current_voters"]] == [broker_id]
    assert partition["high_watermark"] > 0


def test_topic_partitions_are_described_page_by_page(admin: KafkaAdminClient, topic: str) -> None:
    create(admin, topic, partitions=5)
    pages: list[list[int]] = []
    cursor = None
    while cursor is not None or not pages:
        page = admin.describe_topic_partitions([topic], response_partition_limit=2, cursor=cursor)
        pages.append([partition["partition_index"] for partition in page["topics"][0]["partitions"]])
        cursor = page["next_cursor"]
    assert pages == [[0, 1], [2, 3], [4]]


def test_the_state_of_an_idempotent_producer_is_shown(
    admin: KafkaAdminClient, bootstrap: str, topic: str
) -> None:
    create(admin, topic)
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    for n in range(7):
        producer.send(topic, str(n).encode()).get(timeout=60)
    state = admin.describe_producers([TopicPartition(topic, 0)])[TopicPartition(topic, 0)]
    producer.close()
    [active] = state.active_producers
    assert active.producer_id >= 0
    assert (active.producer_epoch, active.last_sequence) == (0, 6)
    assert active.current_transaction_start_offset in (None, -1)


def test_config_resources_are_listed(admin: KafkaAdminClient, topic: str) -> None:
    create(admin, topic)
    assert topic in admin.list_config_resources(["TOPIC"])["topic"]


def test_no_reassignment_is_listed(admin: KafkaAdminClient, topic: str) -> None:
    create(admin, topic)
    assert not admin.list_partition_reassignments({topic: [0]})


def test_an_election_is_not_needed(admin: KafkaAdminClient, topic: str) -> None:
    create(admin, topic)
    [elected] = admin.elect_leaders(0, {topic: [0]}).replica_election_results
    assert [result.error_code for result in elected.partition_result] == [ElectionNotNeededError.errno]


def test_acls_need_an_authorizer(admin: KafkaAdminClient) -> None:
    anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    with pytest.raises(SecurityDisabledError):
        _, error = admin.describe_acls(
            ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, anything)
        )
        raise error
