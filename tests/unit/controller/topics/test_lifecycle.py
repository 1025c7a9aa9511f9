from __future__ import annotations

import gc
import time

import pytest

from moldau.base.errors import ErrorCode
from moldau.base.ids import ZERO_UUID
from moldau.controller.brokers.lifecycle import unregister_broker
from moldau.controller.topics.lifecycle import create_topics, delete_topics, topic_name_problem
from moldau.controller.topics.partitions import create_partitions
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics import CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from moldau.protocol.stored.metadata import ClearElrRecord, ConfigRecord, PartitionRecord, TopicRecord
from tests.unit.controller.harness import Cluster, new_topic
from tests.unit.metadata.builders import uid


class TestCreate:
    def test_records_are_in_the_order_of_apache_kafka(self) -> None:
        cluster = Cluster()
        result = cluster.create("one", 2, 1, configs={"retention.ms": "1000", "cleanup.policy": "compact"})
        assert result.error_code == ErrorCode.NONE
        topic_id = result.topic_id
        assert cluster.records == [
            TopicRecord(name="one", topic_id=topic_id),
            ConfigRecord(resource_type=2, resource_name="one", name="cleanup.policy", value="compact"),
            ConfigRecord(resource_type=2, resource_name="one", name="retention.ms", value="1000"),
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=[1],
                    isr=[1],
                    leader=1,
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=[uid(101)],
                )
                for index in range(2)
            ),
        ]

    def test_the_response_describes_the_created_topic(self) -> None:
        cluster = Cluster()
        result = cluster.create("one", 3, 1, configs={"retention.ms": "1000"})
        assert (result.num_partitions, result.replication_factor, result.error_message) == (3, 1, None)
        configs = {entry.name: (entry.value, entry.config_source) for entry in result.configs or []}
        assert configs["retention.ms"] == ("1000", 1)
        assert configs["segment.bytes"] == ("1073741824", 5)
        # Bootstrapping wrote it as a default of the cluster, because eligible leaders are enabled.
        assert configs["min.insync.replicas"] == ("1", 3)
        assert list(configs) == sorted(configs)

    def test_static_broker_configs_are_reported_as_source(self) -> None:
        cluster = Cluster(log_retention_hours=2, log_segment_bytes=2_000_000)
        configs = {entry.name: (entry.value, entry.config_source) for entry in cluster.create().configs or []}
        assert configs["retention.ms"] == ("7200000", 4)
        assert configs["segment.bytes"] == ("2000000", 4)

    def test_broker_defaults_apply(self) -> None:
        cluster = Cluster((1, 2, 3), num_partitions=4, default_replication_factor=2)
        result = cluster.create("orders")
        assert (result.num_partitions, result.replication_factor) == (4, 2)
        assert len(cluster.partition().replicas) == 2

    def test_validate_only_writes_no_records(self) -> None:
        cluster = Cluster()
        result = cluster.create("orders", 3, 1, validate_only=True)
        assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 3)
        assert cluster.records == []
        assert "orders" not in cluster.controller.image.topics.by_name

    def test_an_existing_topic_is_refused(self) -> None:
        cluster = Cluster()
        cluster.create("orders")
        again = cluster.create("orders")
        assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert again.error_message == "Topic 'orders' already exists."

    @pytest.mark.parametrize("names", [("a.b", "a_b"), ("a_b", "a.b"), ("a.b_c", "a_b.c")])
    def test_names_with_colliding_metrics_are_refused(self, names: tuple[str, str]) -> None:
        cluster = Cluster()
        first, second = names
        cluster.create(first)
        refused = cluster.create(second)
        assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert refused.error_message == f"Topic '{second}' collides with existing topic: {first}"
        delete(cluster, first)
        assert cluster.create(second).error_code == ErrorCode.NONE

    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            ("", "the empty string is not allowed"),
            (".", "'.' is not allowed"),
            ("..", "'..' is not allowed"),
            ("x" * 250, "is longer than the max allowed length 249"),
            ("a/b", "'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
            ("ü", "contains one or more characters"),
            ("a b", "contains one or more characters"),
            ("a\n", "contains one or more characters"),
            ("../x", "contains one or more characters"),
        ],
    )
    def test_illegal_names_are_refused(self, name: str, problem: str) -> None:
        result = Cluster().create(name)
        assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert (result.error_message or "").startswith("Topic name is invalid: ")
        assert problem in (result.error_message or "")

    def test_the_longest_legal_name_is_accepted(self) -> None:
        assert topic_name_problem("x" * 249) is None
        assert Cluster().create("x" * 249).error_code == ErrorCode.NONE

    def test_the_metadata_topic_cannot_be_created(self) -> None:
        result = Cluster().create("__cluster_metadata")
        assert result.error_code == ErrorCode.INVALID_REQUEST
        assert result.error_message == "Creation of internal topic __cluster_metadata is prohibited."

    @pytest.mark.parametrize(
        ("partitions", "factor", "code", "message"),
        [
            (0, 1, ErrorCode.INVALID_PARTITIONS, "invalid non-positive value"),
            (-2, 1, ErrorCode.INVALID_PARTITIONS, "invalid non-positive value"),
            (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0, or -1 to use the default value"),
            (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
            (
                1,
                2,
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be "
                "reached because only 1 broker(s) are registered or some brokers have all their log "
                "directories cordoned.",
            ),
        ],
    )
    def test_invalid_counts_are_refused(
        self, partitions: int, factor: int, code: ErrorCode, message: str
    ) -> None:
        result = Cluster().create("orders", partitions, factor)
        assert result.error_code == code
        assert message in (result.error_message or "")

    def test_too_many_partitions_refuse_the_whole_request(self) -> None:
        cluster = Cluster()
        request = CreateTopicsRequest(topics=[new_topic("a", 1, 1), new_topic("b", 10_000, 1)])
        response = cluster.decide(create_topics, request)
        assert [(topic.name, topic.error_code, topic.error_message) for topic in response.topics] == [
            (name, ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
            for name in ("a", "b")
        ]
        assert cluster.records == []

    def test_without_an_active_broker_creation_is_refused(self) -> None:
        cluster = Cluster()
        cluster.stop(1)
        result = cluster.create("orders", 1, 1)
        assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert "All brokers are currently fenced" in (result.error_message or "")

    def test_an_invalid_topic_does_not_affect_the_others(self) -> None:
        cluster = Cluster()
        topics = [new_topic("good", 1, 1), new_topic("bad/", 1, 1), new_topic("twice"), new_topic("twice")]
        response = cluster.decide(create_topics, CreateTopicsRequest(topics=topics))
        codes = {topic.name: topic.error_code for topic in response.topics}
        assert codes == {
            "good": ErrorCode.NONE,
            "bad/": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "twice": ErrorCode.INVALID_REQUEST,
        }
        assert list(cluster.controller.image.topics.by_name) == ["good"]

    def test_an_own_min_insync_replicas_clears_the_elr(self) -> None:
        cluster = Cluster()
        cluster.create(configs={"min.insync.replicas": "1"})
        kinds = [type(record) for record in cluster.records]
        assert kinds == [TopicRecord, ConfigRecord, ClearElrRecord, PartitionRecord]


class TestAssignments:
    def test_a_manual_assignment_is_used(self) -> None:
        cluster = Cluster((1, 2, 3))
        result = cluster.create(assignments={1: [3, 1], 0: [2, 3]})
        assert (result.num_partitions, result.replication_factor) == (2, 2)
        assert cluster.partition(index=0).replicas == (2, 3)
        assert cluster.partition(index=0).directories == (uid(102), uid(103))
        assert cluster.partition(index=1).leader == 3

    @pytest.mark.parametrize(
        ("assignments", "message"),
        [
            ({0: []}, "includes an empty replica list"),
            ({0: [1, 9]}, "includes broker 9, but no such broker is registered"),
            ({0: [1, 1]}, "includes the broker 1 more than once"),
            ({0: [1], 1: [1, 2]}, "includes a partition with 2 replica(s), but this is not consistent"),
            ({0: [1], 2: [2]}, "partitions should be a consecutive 0-based integer sequence"),
        ],
    )
    def test_invalid_assignments_are_refused(self, assignments: dict[int, list[int]], message: str) -> None:
        result = Cluster((1, 2)).create(assignments=assignments)
        assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert message in (result.error_message or "")

    def test_counts_must_be_minus_one(self) -> None:
        cluster = Cluster()
        for partitions, factor in ((1, -1), (-1, 1)):
            result = cluster.create("orders", partitions, factor, assignments={0: [1]})
            assert result.error_code == ErrorCode.INVALID_REQUEST
            assert "was not set to -1." in (result.error_message or "")

    def test_only_active_replicas_are_in_the_isr(self) -> None:
        cluster = Cluster((1, 2))
        cluster.register(3)
        cluster.create(assignments={0: [3, 2]})
        assert (cluster.partition().isr, cluster.partition().leader) == ((2,), 2)
        result = cluster.create("other", assignments={0: [3]})
        assert "are fenced or in controlled shutdown" in (result.error_message or "")


class TestConfigsOfNewTopics:
    def test_unknown_configs_are_refused(self) -> None:
        result = Cluster().create(configs={"retention.mss": "1"})
        assert result.error_code == ErrorCode.INVALID_CONFIG
        assert result.error_message == "Unknown topic config name: retention.mss"

    def test_invalid_values_are_refused(self) -> None:
        result = Cluster().create(configs={"retention.ms": "soon"})
        assert result.error_code == ErrorCode.INVALID_CONFIG
        expected = "Invalid value soon for configuration retention.ms: Not a number of type LONG"
        assert result.error_message == expected

    def test_null_values_are_refused(self) -> None:
        result = Cluster().create(configs={"retention.ms": None})
        assert result.error_code == ErrorCode.INVALID_CONFIG
        assert result.error_message == "Null value not supported for topic configs: retention.ms"


def delete(cluster: Cluster, *names: str, version: int = 6):
    topics = [DeleteTopicState(name=name) for name in names]
    return cluster.decide(delete_topics, DeleteTopicsRequest(topics=topics), version=version).responses


class TestDelete:
    def test_topics_are_deleted_by_name_and_by_id(self) -> None:
        cluster = Cluster()
        by_id = cluster.create("a", configs={"retention.ms": "1"}).topic_id
        cluster.create("b")
        request = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=by_id), DeleteTopicState(name="b")])
        responses = cluster.decide(delete_topics, request, version=6).responses
        assert [(r.name, r.error_code) for r in responses] == [("a", 0), ("b", 0)]
        assert not cluster.controller.image.topics.by_name
        assert cluster.controller.image.topic_config("a") == {}

    def test_versions_before_6_use_topic_names(self) -> None:
        cluster = Cluster()
        cluster.create("a")
        request = DeleteTopicsRequest(topic_names=["a", "b"])
        responses = cluster.decide(delete_topics, request, version=3).responses
        codes = {r.name: r.error_code for r in responses}
        assert codes == {"a": ErrorCode.NONE, "b": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

    def test_unknown_topics_are_reported(self) -> None:
        cluster = Cluster()
        (by_name,) = delete(cluster, "nobody")
        assert by_name.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert by_name.error_message == "This server does not host this topic-partition."
        request = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=uid(9))])
        (by_id,) = cluster.decide(delete_topics, request, version=6).responses
        assert (by_id.error_code, by_id.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
        assert by_id.error_message == "This server does not host this topic ID."

    def test_duplicate_topics_are_refused(self) -> None:
        cluster = Cluster()
        topic_id = cluster.create("a").topic_id
        named, known = DeleteTopicState(name="a"), DeleteTopicState(topic_id=topic_id)
        for topics, message in [
            ([named, named], "Duplicate topic name."),
            ([known, known], "Duplicate topic id."),
            ([named, known], "The provided topic name maps to an ID that was already supplied."),
            (
                [DeleteTopicState(name="a", topic_id=topic_id)],
                "You may not specify both topic name and topic id.",
            ),
            ([DeleteTopicState(name=None, topic_id=ZERO_UUID)], "Neither topic name nor id were specified."),
        ]:
            request = DeleteTopicsRequest(topics=topics)
            (response,) = cluster.decide(delete_topics, request, version=6).responses
            assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, message)
        assert "a" in cluster.controller.image.topics.by_name

    def test_deletion_can_be_disabled(self) -> None:
        cluster = Cluster(delete_topic_enable="false")
        assert [(r.name, r.error_code) for r in delete(cluster, "a", "b")] == [
            ("a", ErrorCode.TOPIC_DELETION_DISABLED),
            ("b", ErrorCode.TOPIC_DELETION_DISABLED),
        ]
        (older,) = delete(cluster, "a", version=2)
        assert older.error_code == ErrorCode.INVALID_REQUEST


class TestCreatePartitions:
    def grow(self, cluster: Cluster, count: int, *assignments: list[int], validate_only: bool = False):
        topic = CreatePartitionsTopic(
            name="orders",
            count=count,
            assignments=[CreatePartitionsAssignment(broker_ids=ids) for ids in assignments] or None,
        )
        request = CreatePartitionsRequest(topics=[topic], validate_only=validate_only)
        return cluster.decide(create_partitions, request).results[0]

    def test_partitions_are_added(self) -> None:
        cluster = Cluster()
        cluster.create("orders", 2, 1)
        result = self.grow(cluster, 5)
        assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
        assert sorted(cluster.controller.image.topics.by_name["orders"].partitions) == [0, 1, 2, 3, 4]

    def test_a_manual_assignment_is_used(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create("orders", 1, 1)
        assert self.grow(cluster, 2, [2]).error_code == ErrorCode.NONE
        assert cluster.partition(index=1).replicas == (2,)

    def test_too_few_brokers_are_refused(self) -> None:
        cluster = Cluster((1, 2))
        cluster.create("orders", 1, 2)
        cluster.decide(unregister_broker, UnregisterBrokerRequest(broker_id=2))
        result = self.grow(cluster, 2)
        assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert (result.error_message or "").startswith("The target replication factor of 2 cannot be reached")

    def test_validate_only_writes_no_records(self) -> None:
        cluster = Cluster()
        cluster.create("orders", 1, 1)
        assert self.grow(cluster, 2, validate_only=True).error_code == ErrorCode.NONE
        assert len(cluster.controller.image.topics.by_name["orders"].partitions) == 1

    @pytest.mark.parametrize(
        ("count", "assignments", "code", "message"),
        [
            (2, [], ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
            (
                1,
                [],
                ErrorCode.INVALID_PARTITIONS,
                "currently has 2 partition(s); 1 would not be an increase.",
            ),
            (
                4,
                [[1]],
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
            ),
            (3, [[1, 2]], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not consistent with previous partitions"),
            (20_000, [], ErrorCode.POLICY_VIOLATION, "excessively large batch operation"),
        ],
    )
    def test_invalid_requests_are_refused(
        self, count: int, assignments: list[list[int]], code: ErrorCode, message: str
    ) -> None:
        cluster = Cluster((1, 2))
        cluster.create("orders", 2, 1)
        result = self.grow(cluster, count, *assignments)
        assert result.error_code == code
        assert message in (result.error_message or "")

    def test_unknown_and_duplicate_topics_are_refused(self) -> None:
        cluster = Cluster()
        assert self.grow(cluster, 2).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topics = [CreatePartitionsTopic(name="x", count=2), CreatePartitionsTopic(name="x", count=3)]
        response = cluster.decide(create_partitions, CreatePartitionsRequest(topics=topics))
        assert [(r.name, r.error_message) for r in response.results] == [("x", "Duplicate topic name.")]


def test_large_requests_are_decided_quickly() -> None:
    """In CPU time and without garbage collections, which depend on the tests that ran before."""
    cluster = Cluster()
    gc.disable()
    try:
        wide, many = _time_creations(cluster)
    finally:
        gc.enable()
    assert wide < 0.5, f"1000 partitions took {wide:.3f} s"
    assert many < 2.0, f"500 topics took {many:.3f} s"


def _time_creations(cluster: Cluster) -> tuple[float, float]:
    started = time.process_time()
    cluster.create("wide", 1000, 1)
    wide = time.process_time() - started
    started = time.process_time()
    for number in range(500):
        cluster.create(f"topic-{number}", 1, 1)
    return wide, time.process_time() - started
