from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode
from moldau.controller.configs.alter import alter_configs, incremental_alter_configs
from moldau.metadata.image import ResourceType
from moldau.protocol.messages.alter_configs import AlterableConfig as LegacyConfig
from moldau.protocol.messages.alter_configs import AlterConfigsRequest
from moldau.protocol.messages.alter_configs import AlterConfigsResource as LegacyResource
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.stored.metadata import ClearElrRecord, ConfigRecord
from tests.unit.controller.harness import Cluster

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
METRICS, GROUP = ResourceType.CLIENT_METRICS, ResourceType.GROUP


def cluster_with_topic(**settings: object) -> Cluster:
    cluster = Cluster(**settings)  # type: ignore[arg-type]
    cluster.create()
    return cluster


def replace(
    cluster: Cluster, kind: int, name: str, configs: dict[str, str | None], *, validate_only: bool = False
):
    entries = [LegacyConfig(name=key, value=value) for key, value in configs.items()]
    resource = LegacyResource(resource_type=kind, resource_name=name, configs=entries)
    request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return cluster.decide(alter_configs, request).responses[0]


class TestIncremental:
    def test_a_config_is_set_and_deleted(self) -> None:
        cluster = cluster_with_topic()
        answer = cluster.alter(TOPIC, "orders", ("retention.ms", SET, "1000"), ("segment.ms", SET, "5"))
        assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
        assert (answer.resource_type, answer.resource_name) == (2, "orders")
        assert cluster.controller.image.topic_config("orders") == {"retention.ms": "1000", "segment.ms": "5"}
        cluster.alter(TOPIC, "orders", ("retention.ms", DELETE, None))
        assert cluster.records == [
            ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=None)
        ]

    def test_unchanged_configs_write_no_records(self) -> None:
        cluster = cluster_with_topic()
        cluster.alter(TOPIC, "orders", ("retention.ms", SET, "1000"))
        cluster.alter(TOPIC, "orders", ("retention.ms", SET, "1000"))
        assert cluster.records == []

    def test_append_and_subtract_start_from_the_default(self) -> None:
        cluster = cluster_with_topic()
        cluster.alter(TOPIC, "orders", ("cleanup.policy", APPEND, "compact"))
        assert cluster.controller.image.topic_config("orders")["cleanup.policy"] == "delete,compact"
        cluster.alter(TOPIC, "orders", ("cleanup.policy", APPEND, "compact"))
        assert cluster.records == []
        cluster.alter(TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete"))
        assert cluster.controller.image.topic_config("orders")["cleanup.policy"] == "compact"
        refused = cluster.alter(TOPIC, "orders", ("retention.ms", APPEND, "1"))
        assert refused.error_code == ErrorCode.INVALID_CONFIG
        assert refused.error_message == "Can't APPEND to key retention.ms because its type is not LIST."

    def test_validate_only_writes_no_records(self) -> None:
        cluster = cluster_with_topic()
        answer = cluster.alter(TOPIC, "orders", ("retention.ms", SET, "1"), validate_only=True)
        assert answer.error_code == ErrorCode.NONE
        assert cluster.controller.image.topic_config("orders") == {}

    def test_an_invalid_value_refuses_the_whole_resource(self) -> None:
        cluster = cluster_with_topic()
        answer = cluster.alter(TOPIC, "orders", ("segment.ms", SET, "5"), ("retention.ms", SET, "x"))
        assert answer.error_code == ErrorCode.INVALID_CONFIG
        assert answer.error_message == (
            "Invalid value x for configuration retention.ms: Not a number of type LONG"
        )
        assert cluster.records == []

    @pytest.mark.parametrize(
        ("kind", "name", "changes", "code", "message"),
        [
            (
                TOPIC,
                "orders",
                [("nonsense", SET, "1")],
                ErrorCode.INVALID_CONFIG,
                "Unknown topic config name",
            ),
            (
                TOPIC,
                "nobody",
                [("retention.ms", SET, "1")],
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "'nobody' does",
            ),
            (TOPIC, "", [("retention.ms", SET, "1")], ErrorCode.INVALID_REQUEST, "Default topic resources"),
            (TOPIC, "a/b", [("retention.ms", SET, "1")], ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is"),
            (
                TOPIC,
                "orders",
                [("retention.ms", SET, None)],
                ErrorCode.INVALID_REQUEST,
                "Null value not supported",
            ),
            (
                TOPIC,
                "orders",
                [("retention.ms", 9, "1")],
                ErrorCode.INVALID_REQUEST,
                "Unknown operations type 9",
            ),
            (
                TOPIC,
                "orders",
                [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)],
                ErrorCode.INVALID_REQUEST,
                "Error due to duplicate config keys",
            ),
            (
                TOPIC,
                "orders",
                [("follower.replication.throttled.replicas", SET, "x" * 32768)],
                ErrorCode.INVALID_CONFIG,
                "exceeds the maximum value size of 32767 bytes",
            ),
            (1, "x", [], ErrorCode.INVALID_REQUEST, "Unknown resource type 1"),
            (77, "x", [], ErrorCode.INVALID_REQUEST, "Unknown resource type 77"),
            (BROKER, "x", [], ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: x"),
            (
                BROKER,
                "1",
                [("node.id", SET, "3")],
                ErrorCode.INVALID_REQUEST,
                "Cannot update these configs dyn",
            ),
            (
                BROKER,
                "1",
                [("min.insync.replicas", SET, "1")],
                ErrorCode.INVALID_CONFIG,
                "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
            ),
            (
                BROKER,
                "",
                [("min.insync.replicas", DELETE, None)],
                ErrorCode.INVALID_CONFIG,
                "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
            ),
            (GROUP, "", [], ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
            (GROUP, "g", [("x", SET, "1")], ErrorCode.INVALID_CONFIG, "Unknown group config name: x"),
            (METRICS, "", [], ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
            (
                METRICS,
                "m",
                [("x", SET, "1")],
                ErrorCode.INVALID_REQUEST,
                "Unknown client metrics configuration: x",
            ),
        ],
    )
    def test_invalid_changes_are_refused(
        self, kind: int, name: str, changes: list[tuple[str, int, str | None]], code: ErrorCode, message: str
    ) -> None:
        answer = cluster_with_topic().alter(kind, name, *changes)
        assert (ErrorCode(answer.error_code), message in (answer.error_message or "")) == (code, True)

    def test_a_duplicate_resource_is_refused(self) -> None:
        cluster = cluster_with_topic()
        change = AlterableConfig(name="retention.ms", config_operation=SET, value="1")
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=[change])
        request = IncrementalAlterConfigsRequest(resources=[resource, resource])
        responses = cluster.decide(incremental_alter_configs, request).responses
        assert [r.error_message for r in responses] == ["Each resource must appear at most once."] * 2

    def test_group_and_client_metrics_configs_are_stored(self) -> None:
        cluster = Cluster()
        assert cluster.alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")).error_code == 0
        assert cluster.controller.image.config(GROUP, "g") == {"consumer.session.timeout.ms": "50000"}
        assert cluster.alter(METRICS, "m", ("interval.ms", SET, "1000")).error_code == 0
        assert cluster.controller.image.config(METRICS, "m") == {"interval.ms": "1000"}


class TestBrokers:
    def test_dynamic_defaults_and_overrides_apply_to_later_decisions(self) -> None:
        cluster = Cluster()
        assert cluster.alter(BROKER, "", ("log.retention.ms", SET, "7777")).error_code == 0
        configs = {c.name: (c.value, c.config_source) for c in cluster.create("a").configs or []}
        assert configs["retention.ms"] == ("7777", 3)
        assert cluster.alter(BROKER, "1", ("log.retention.ms", SET, "8888")).error_code == 0
        configs = {c.name: (c.value, c.config_source) for c in cluster.create("b").configs or []}
        assert configs["retention.ms"] == ("8888", 2)

    def test_broker_configs_are_written_even_if_nothing_changes(self) -> None:
        cluster = Cluster()
        for _ in range(2):
            cluster.alter(BROKER, "1", ("log.cleaner.threads", SET, "2"))
            assert len(cluster.records) == 1

    def test_a_new_cluster_wide_min_insync_replicas_clears_the_elr(self) -> None:
        cluster = Cluster()
        cluster.alter(BROKER, "", ("min.insync.replicas", SET, "1"))
        assert cluster.records[1:] == [ClearElrRecord()]


class TestLegacy:
    def test_configs_that_are_not_given_are_removed(self) -> None:
        cluster = cluster_with_topic()
        cluster.alter(TOPIC, "orders", ("retention.ms", SET, "1"), ("segment.ms", SET, "5"))
        assert replace(cluster, TOPIC, "orders", {"retention.ms": "2"}).error_code == ErrorCode.NONE
        assert cluster.controller.image.topic_config("orders") == {"retention.ms": "2"}
        assert [(r.name, r.value) for r in cluster.records] == [  # type: ignore[attr-defined]
            ("retention.ms", "2"),
            ("segment.ms", None),
        ]

    def test_invalid_changes_are_refused(self) -> None:
        cluster = cluster_with_topic()
        assert replace(cluster, TOPIC, "orders", {"x": "1"}).error_code == ErrorCode.INVALID_CONFIG
        null = replace(cluster, TOPIC, "orders", {"retention.ms": None})
        assert null.error_message == "Null value not supported for : retention.ms"
        logger = replace(cluster, LOGGER, "1", {"root": "INFO"})
        assert logger.error_message == "Unknown resource type 8"

    def test_validate_only_writes_no_records(self) -> None:
        cluster = cluster_with_topic()
        assert replace(cluster, TOPIC, "orders", {"retention.ms": "2"}, validate_only=True).error_code == 0
        assert cluster.records == []


class TestLoggers:
    @pytest.mark.parametrize(
        ("name", "change", "code", "message"),
        [
            ("x", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST, "Node id must be an integer"),
            (
                "2",
                ("root", SET, "INFO"),
                ErrorCode.INVALID_REQUEST,
                "Unexpected node id. Expected 1, but received 2",
            ),
            (
                "1",
                ("root", SET, "LOUD"),
                ErrorCode.INVALID_CONFIG,
                "Valid log levels are DEBUG, ERROR, FATAL",
            ),
            (
                "1",
                ("root", DELETE, None),
                ErrorCode.INVALID_REQUEST,
                "Removing the log level of the root logger",
            ),
            ("1", ("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST, "APPEND operation is not allowed"),
            ("1", ("root", 9, "INFO"), ErrorCode.INVALID_REQUEST, "Unknown operation type 9 is not allowed"),
        ],
    )
    def test_invalid_log_levels_are_refused(
        self, name: str, change: tuple[str, int, str | None], code: ErrorCode, message: str
    ) -> None:
        answer = Cluster().alter(LOGGER, name, change)
        assert answer.error_code == code
        assert message in (answer.error_message or "")

    def test_log_levels_are_not_recorded(self) -> None:
        cluster = Cluster()
        changes = [
            AlterableConfig(name="root", config_operation=SET, value="DEBUG"),
            AlterableConfig(name="moldau.storage", config_operation=DELETE, value=None),
        ]
        resource = AlterConfigsResource(resource_type=LOGGER, resource_name="1", configs=changes)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        response = cluster.decide(incremental_alter_configs, request)
        assert response.responses[0].error_code == ErrorCode.NONE
        assert cluster.records == []
