"""DescribeConfigs and config changes, compared with the responses of Apache Kafka.

Documentation is excluded from the comparison: its wording is our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.broker.config import BrokerConfig
from moldau.config.client_metrics import validate_client_metrics_configs
from moldau.config.describe import (
    ConfigEntryDescription,
    describe_broker_configs,
    describe_broker_defaults,
    describe_client_metrics_configs,
    describe_group_configs,
    describe_topic_configs,
)
from moldau.config.dynamic import (
    Operation,
    apply_dynamic_configs,
    broker_configs_after,
    validate_broker_configs,
    validate_topic_configs,
)
from moldau.config.group import validate_group_configs
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.harness.apache.node import ApacheCluster
from tests.harness.waiting import eventually
from tests.harness.wire.requests import create_and_wait
from tests.harness.wire.wire import Wire
from tests.interop.java_oracle import jars

pytestmark = pytest.mark.interop

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, APPEND = 0, 2
STATIC = {
    "log.retention.hours": "100",
    "log.segment.bytes": "2000000",
    "log.roll.ms": "123456789",
    "my.own.name": "hello",
    "ssl.key.password": "hush",
    "listener.name.plaintext.max.connections": "77",
    "group.consumer.session.timeout.ms": "46000",
}
TOPIC_OVERRIDES = {"retention.ms": "1000", "cleanup.policy": "compact,delete", "max.message.bytes": "555"}
#: Written by the controller of a new cluster with eligible leader replicas.
CLUSTER_DEFAULTS = {"min.insync.replicas": "1"}


@pytest.fixture(scope="module")
def apache() -> Iterator[ApacheCluster]:
    jars()
    with ApacheCluster(config=STATIC) as cluster:
        create_and_wait(cluster.bootstrap_servers, "plain")
        create_and_wait(cluster.bootstrap_servers, "own", config=TOPIC_OVERRIDES)
        yield cluster


@pytest.fixture(scope="module")
def static(apache: ApacheCluster) -> BrokerConfig:
    return BrokerConfig.load(str(apache.data_dir / "server.properties"))


def describe(apache: ApacheCluster, kind: int, name: str) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    with Wire(apache.bootstrap_servers) as wire:
        return wire.call(request, 4).results[0]


def theirs(apache: ApacheCluster, kind: int, name: str) -> list[tuple[Any, ...]]:
    result = describe(apache, kind, name)
    assert result.error_code == 0, result.error_message
    return sorted(
        (
            *(
                entry.name,
                entry.value,
                entry.config_source,
                entry.is_sensitive,
                entry.read_only,
                entry.config_type,
            ),
            [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms],
        )
        for entry in result.configs
    )


def ours(entries: list[ConfigEntryDescription]) -> list[tuple[Any, ...]]:
    return [
        (
            *(entry.name, entry.value, entry.source, entry.is_sensitive, entry.read_only, entry.type),
            [tuple(synonym) for synonym in entry.synonyms],
        )
        for entry in entries
    ]


def alter(
    apache: ApacheCluster, kind: int, name: str, *changes: Operation, validate_only: bool = False
) -> Any:
    configs = [
        AlterableConfig(name=each.name, config_operation=each.kind, value=each.value) for each in changes
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    with Wire(apache.bootstrap_servers) as wire:
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        return wire.call(request, 1).responses[0]


def test_configs_after_start_match_apache_kafka(apache: ApacheCluster, static: BrokerConfig) -> None:
    config = static.with_dynamic(CLUSTER_DEFAULTS, {})
    assert ours(describe_topic_configs({}, config)) == theirs(apache, TOPIC, "plain")
    assert ours(describe_topic_configs(TOPIC_OVERRIDES, config)) == theirs(apache, TOPIC, "own")
    assert ours(describe_broker_configs(config)) == theirs(apache, BROKER, "1")
    assert ours(describe_broker_defaults(config)) == theirs(apache, BROKER, "")
    assert ours(describe_group_configs({}, config)) == theirs(apache, GROUP, "group")
    assert ours(describe_client_metrics_configs({})) == theirs(apache, CLIENT_METRICS, "metrics")


TOPIC_CHANGES = """
nope=1
max.message.bytes=x
max.message.bytes=-1
cleanup.policy=foo
cleanup.policy=
cleanup.policy=compact,,delete
segment.bytes=100
min.compaction.lag.ms=9223372036854775807
remote.storage.enable=true
compression.type=none
preallocate=yes
retention.ms=-5
leader.replication.throttled.replicas=x
min.cleanable.dirty.ratio=2
"""
BROKER_CHANGES = """
nope=1
message.max.bytes=x
message.max.bytes=-1
num.partitions=3
ssl.keystore.location=/x
listener.name.plaintext.ssl.keystore.location=/x
advertised.listeners=PLAINTEXT://h:1
compression.type=none
background.threads=20
producer.id.expiration.ms=0
log.segment.bytes=10
node.id=5
listener.name.x.max.connections=10
sasl.enabled.mechanisms=PLAIN
leader.replication.throttled.rate=-1
transaction.partition.verification.enable=x
"""
GROUP_CHANGES = """
nope=1
consumer.session.timeout.ms=1
consumer.session.timeout.ms=x
consumer.heartbeat.interval.ms=99999999
share.isolation.level=x
share.auto.offset.reset=x
share.auto.offset.reset=by_duration:PT1H
share.delivery.count.limit=1
share.delivery.count.limit=99
share.record.lock.duration.ms=1000
share.partition.max.record.locks=100
streams.num.standby.replicas=50
streams.initial.rebalance.delay.ms=99999999
"""
CLIENT_METRICS_CHANGES = """
nope=1
interval.ms=1
interval.ms=x
match=a
match=client_id=[
match=client_id=a.*,foo=1
match=client_id=a=b
metrics=
metrics=a,a
"""
#: The same error code, with a more helpful message than Apache Kafka's.
IN_OTHER_WORDS = """
num.io.threads=100
num.io.threads=1
num.network.threads=100
log.cleaner.threads=0
log.cleaner.dedupe.buffer.size=5
max.connections.per.ip=0
max.connections.per.ip.overrides=x
max.connections.per.ip.overrides=h:x
cordoned.log.dirs=/nowhere
metric.reporters=foo.Bar
listeners=PLAINTEXT://h:1
log.local.retention.ms=999999999999
background.threads=21
group.consumer.assignment.interval.ms=99999
"""

Change = tuple[int, str, Operation]


def changes(kind: int, resource: str, lines: str, operation: int = SET) -> list[Change]:
    pairs = (line.split("=", 1) for line in lines.split())
    return [(kind, resource, Operation(name, operation, value)) for name, value in pairs]


CHANGES = [
    *changes(TOPIC, "plain", TOPIC_CHANGES),
    *changes(BROKER, "1", BROKER_CHANGES),
    *changes(BROKER, "", BROKER_CHANGES),
    *changes(BROKER, "1", "log.cleanup.policy=compact message.max.bytes=1", APPEND),
    *changes(BROKER, "", "message.max.bytes=1", APPEND),
    *changes(GROUP, "group", GROUP_CHANGES),
    *changes(CLIENT_METRICS, "metrics", CLIENT_METRICS_CHANGES),
    *changes(CLIENT_METRICS, "", "metrics=a"),
]


def judge(config: BrokerConfig, kind: int, name: str, change: Operation) -> tuple[int, str | None]:
    try:
        if kind == BROKER:
            existing = config.dynamic_broker if name else config.dynamic_default
            validate_broker_configs(config, broker_configs_after(existing, [change]), per_broker=bool(name))
        elif kind == TOPIC:
            validate_topic_configs({change.name: change.value or ""}, config)
        elif kind == GROUP:
            validate_group_configs({change.name: change.value or ""}, config.values)
        else:
            validate_client_metrics_configs(name, {change.name: change.value or ""})
    except KafkaError as error:
        return int(error.code), error.message
    return 0, None


def test_config_changes_are_accepted_or_refused_like_apache_kafka(
    apache: ApacheCluster, static: BrokerConfig
) -> None:
    config = apply_dynamic_configs(static, CLUSTER_DEFAULTS, {}).config
    for kind, name, change in CHANGES:
        answer = alter(apache, kind, name, change, validate_only=True)
        assert judge(config, kind, name, change) == (answer.error_code, answer.error_message), (
            kind,
            name,
            change,
        )
    for kind, name, change in changes(BROKER, "1", IN_OTHER_WORDS):
        answer = alter(apache, kind, name, change, validate_only=True)
        code, sentence = judge(config, kind, name, change)
        assert code == answer.error_code == ErrorCode.INVALID_REQUEST, (kind, name, change)
        assert sentence


DEFAULTS = {
    "log.retention.ms": "5000000",
    "message.max.bytes": "1500000",
    "log.cleanup.policy": "compact, delete,delete",
    "log.roll.ms": " 5555555",
}
OWN = {
    "message.max.bytes": "2000000",
    "log.cleaner.threads": "2",
    "listener.name.plaintext.max.connections": "88",
    "some.own.name": "v",
    "follower.replication.throttled.rate": "1000",
    "group.consumer.assignment.interval.ms": "2000",
}
IN_GROUP = {"consumer.session.timeout.ms": "50000", "share.isolation.level": "read_committed"}
IN_METRICS = {"metrics": "a,a,b", "interval.ms": "5000"}
IN_TOPIC = {"flush.ms": " 77", "cleanup.policy": "compact,compact", "internal.segment.bytes": "2000000"}


def test_changed_configs_match_apache_kafka(apache: ApacheCluster, static: BrokerConfig) -> None:
    for kind, name, settings in (
        (BROKER, "", DEFAULTS),
        (BROKER, "1", OWN),
        (GROUP, "changed", IN_GROUP),
        (CLIENT_METRICS, "changed", IN_METRICS),
        (TOPIC, "own", IN_TOPIC),
    ):
        answer = alter(apache, kind, name, *(Operation(each, SET, value) for each, value in settings.items()))
        assert answer.error_code == 0, answer.error_message
    config, problems = apply_dynamic_configs(static, CLUSTER_DEFAULTS | DEFAULTS, OWN)
    assert problems == ()
    topic = ours(describe_topic_configs(TOPIC_OVERRIDES | IN_TOPIC, config))
    eventually(lambda: theirs(apache, TOPIC, "own") == topic, what="the topic as we describe it")
    assert ours(describe_topic_configs({}, config)) == theirs(apache, TOPIC, "plain")
    assert ours(describe_broker_configs(config)) == theirs(apache, BROKER, "1")
    assert ours(describe_broker_defaults(config)) == theirs(apache, BROKER, "")
    assert ours(describe_group_configs(IN_GROUP, config)) == theirs(apache, GROUP, "changed")
    assert ours(describe_client_metrics_configs(IN_METRICS)) == theirs(apache, CLIENT_METRICS, "changed")
