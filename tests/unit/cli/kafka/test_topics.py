"""kafka-topics and kafka-configs: what the command line means, what is printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.base.errors import ErrorCode
from moldau.cli.kafka.configs import command as configs
from moldau.cli.kafka.topics import command as topics
from moldau.protocol.messages.create_partitions import CreatePartitionsResponse, CreatePartitionsTopicResult
from moldau.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from moldau.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from moldau.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from moldau.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from moldau.protocol.messages.metadata import MetadataResponseTopic
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker

TOPIC_ID = bytes(range(16))


def describe_partitions(request: Any) -> Message:
    partitions = [
        DescribeTopicPartitionsResponsePartition(
            partition_index=0,
            leader_id=1,
            replica_nodes=[1, 2],
            isr_nodes=[1],
            eligible_leader_replicas=[],
            last_known_elr=[2],
        ),
        DescribeTopicPartitionsResponsePartition(
            partition_index=1, leader_id=-1, replica_nodes=[2, 1], isr_nodes=[2, 1]
        ),
    ]
    topic = DescribeTopicPartitionsResponseTopic(name="orders", topic_id=TOPIC_ID, partitions=partitions)
    return DescribeTopicPartitionsResponse(topics=[topic])


def describe_configs(request: Any) -> Message:
    synonyms = [
        DescribeConfigsSynonym(name="cleanup.policy", value="compact", source=1),
        DescribeConfigsSynonym(name="log.cleanup.policy", value="delete", source=5),
    ]
    entries = [
        DescribeConfigsResourceResult(
            name="cleanup.policy", value="compact", config_source=1, synonyms=synonyms, documentation=None
        ),
        DescribeConfigsResourceResult(
            name="min.insync.replicas", value="2", config_source=5, documentation=None
        ),
        DescribeConfigsResourceResult(
            name="ssl.key", value=None, config_source=4, is_sensitive=True, documentation=None
        ),
    ]
    asked = request.resources[0]
    result = DescribeConfigsResult(
        error_message=None,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=entries,
    )
    return DescribeConfigsResponse(results=[result])


def reassignments(request: Any) -> Message:
    partition = OngoingPartitionReassignment(
        partition_index=1, replicas=[2, 1], adding_replicas=[2], removing_replicas=[]
    )
    topic = OngoingTopicReassignment(name="orders", partitions=[partition])
    return ListPartitionReassignmentsResponse(error_message=None, topics=[topic])


def altered(request: IncrementalAlterConfigsRequest) -> Message:
    resource = request.resources[0]
    response = AlterConfigsResourceResponse(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    return IncrementalAlterConfigsResponse(responses=[response])


def created(request: Any) -> Message:
    results = [
        CreatableTopicResult(name=topic.name, error_message=None, configs=None) for topic in request.topics
    ]
    return CreateTopicsResponse(topics=results)


def grown(request: Any) -> Message:
    return CreatePartitionsResponse(
        results=[CreatePartitionsTopicResult(name=topic.name) for topic in request.topics]
    )


@pytest.fixture
def broker() -> Any:
    names = ["__consumer_offsets", "orders"]
    answers: dict[int, Callable[[Any], Message]] = {
        3: lambda _: fake.metadata(topics=[MetadataResponseTopic(name=name) for name in names]),
        19: created,
        32: describe_configs,
        37: grown,
        44: altered,
        46: reassignments,
        60: lambda _: DescribeClusterResponse(
            cluster_id="fake", brokers=[DescribeClusterBroker(broker_id=1, host="127.0.0.1", port=fake.port)]
        ),
        75: describe_partitions,
    }
    fake = FakeBroker(answers)
    with fake:
        yield fake


def run(main: Callable[[list[str]], int], broker: FakeBroker, *argv: str) -> int:
    return main(["--bootstrap-server", broker.bootstrap, *argv])


def test_describe(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(topics.main, broker, "--describe", "--topic", "orders") == 0
    first, second = (
        "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\tElr: \tLastKnownElr: 2",
        "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,1\tIsr: 2,1"
        "\tAdding Replicas: 2\tRemoving Replicas: \tElr: N/A\tLastKnownElr: N/A",
    )
    assert capsys.readouterr().out.splitlines() == [
        "Topic: orders\tTopicId: AAECAwQFBgcICQoLDA0ODw\tPartitionCount: 2\tReplicationFactor: 2"
        "\tConfigs: cleanup.policy=compact,ssl.key=null",
        first,
        second,
    ]
    for flag, lines in (
        ("--under-replicated-partitions", [first]),
        ("--unavailable-partitions", [second]),
        ("--under-min-isr-partitions", [first, second]),
        ("--at-min-isr-partitions", [second]),
    ):
        assert run(topics.main, broker, "--describe", "--topic", "orders", flag) == 0
        assert capsys.readouterr().out.splitlines() == lines


def test_list(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(topics.main, broker, "--list") == 0
    assert capsys.readouterr().out == "__consumer_offsets\norders\n"
    assert run(topics.main, broker, "--list", "--exclude-internal") == 0
    assert capsys.readouterr().out == "orders\n"
    assert run(topics.main, broker, "--list", "--topic", "nothing,ord.*") == 0
    assert capsys.readouterr().out == "orders\n"


def test_create(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("--create", "--topic", "my.topic", "--partitions", "3", "--config", "retention.ms = 5")
    assert run(topics.main, broker, *argv) == 0
    warning, done = capsys.readouterr().out.splitlines()
    assert warning.startswith("WARNING: Due to limitations in metric names")
    assert done == "Created topic my.topic."
    sent: Any = broker.requests[-1]
    assert (sent.topics[0].num_partitions, sent.topics[0].replication_factor) == (3, -1)
    assert [(config.name, config.value) for config in sent.topics[0].configs] == [("retention.ms", "5")]


def test_create_with_an_assignment(broker: FakeBroker) -> None:
    assert run(topics.main, broker, "--create", "--topic", "t", "--replica-assignment", "1:2,2:1") == 0
    sent: Any = broker.requests[-1]
    assert [item.broker_ids for item in sent.topics[0].assignments] == [[1, 2], [2, 1]]


def test_alter_with_an_assignment_sends_only_the_new_partitions(broker: FakeBroker) -> None:
    argv = ("--alter", "--topic", "orders", "--partitions", "3", "--replica-assignment", "1:2,2:1,1:3")
    assert run(topics.main, broker, *argv) == 0
    sent: Any = broker.requests[-1]
    assert sent.topics[0].count == 3
    assert [item.broker_ids for item in sent.topics[0].assignments] == [[1, 3]]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--describe", "--topic", "nope"], "Topic 'nope' does not exist as expected"),
        (["--delete", "--topic", "nope"], "Topic 'nope' does not exist as expected"),
        (["--create", "--topic", "t", "--partitions", "0"], "The partitions must be greater than 0"),
        (
            ["--create", "--topic", "t", "--replication-factor", "0"],
            "The replication factor must be between 1",
        ),
        (["--create", "--topic", "t", "--config", "x"], 'must be in the format "key=val"'),
        (["--create", "--topic", "t", "--replica-assignment", "1:1"], "duplicate entries: 1"),
        (
            ["--create", "--topic", "t", "--replica-assignment", "1:2,1"],
            "Partition 1 has different replication",
        ),
        (["--create", "--topic", "t", "--replica-assignment", "a"], "is not a list of broker ids"),
        (["--describe", "--topic-id", "x"], "--topic-id"),
    ],
)
def test_errors_of_topics(
    broker: FakeBroker, argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(topics.main, broker, *argv) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("Error while executing topic command : ")
    assert sentence in shown


def test_if_exists_is_quiet(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("--describe", "--delete"):
        assert run(topics.main, broker, action, "--topic", "nope", "--if-exists") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--topic", "t"], "Command must include exactly one action"),
        (["--list", "--create"], "Command must include exactly one action"),
        (["--create"], 'Missing required argument "[topic]"'),
        (["--alter", "--topic", "t"], 'Missing required argument "[partitions]"'),
        (["--alter", "--topic", "t", "--config", "a=b"], "the kafka-configs tool can be used"),
        (["--list", "--partitions", "3"], 'Option "[partitions]" can\'t be used with option "[list]"'),
        (["--delete", "--topic", "t", "--if-not-exists"], 'Option "[if-not-exists]" can\'t be used'),
        (
            ["--create", "--topic", "t", "--replica-assignment", "1", "--partitions", "1"],
            'Option "[replica-assignment]" can\'t be used with option "[partitions]"',
        ),
    ],
)
def test_command_lines_that_make_no_sense(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert topics.main(["--bootstrap-server", "h:1", *argv]) == 1
    assert sentence in capsys.readouterr().err


def test_describe_configs(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(configs.main, broker, "--describe", "--topic", "orders") == 0
    line = (
        "  cleanup.policy=compact sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact, "
        "DEFAULT_CONFIG:log.cleanup.policy=delete}"
    )
    assert capsys.readouterr().out.splitlines() == ["Dynamic configs for topic orders are:", line]
    assert run(configs.main, broker, "--describe", "--entity-type", "brokers", "--all") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "All configs for broker 1 are:"
    assert shown[3] == "  ssl.key=null sensitive=true synonyms={}"
    assert shown[4] == "Default configs for brokers in the cluster are:"
    assert run(configs.main, broker, "--describe", "--topic", "nope") == 0
    assert capsys.readouterr().out == "The topic 'nope' doesn't exist and doesn't have dynamic config.\n"


def test_alter_configs(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("--alter", "--entity-type", "topics", "--entity-name", "orders")
    added = ("--add-config", "a=1,b=[x,y=z],c=", "--delete-config", "d,e")
    assert run(configs.main, broker, *argv, *added) == 0
    assert capsys.readouterr().out == "Completed updating config for topic orders.\n"
    sent: Any = broker.requests[-1]
    changes = [(c.name, c.config_operation, c.value) for c in sent.resources[0].configs]
    assert changes == [("a", 0, "1"), ("b", 0, "x,y=z"), ("c", 0, ""), ("d", 1, ""), ("e", 1, "")]
    assert run(configs.main, broker, "--alter", "--broker-defaults", "--add-config", "a=1") == 0
    assert capsys.readouterr().out == "Completed updating default config for brokers in the cluster.\n"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--topic", "t"], "Command must include exactly one action: --describe, --alter"),
        (["--describe"], "At least one entity type must be specified"),
        (["--describe", "--entity-type", "bogus"], "Invalid entity type bogus"),
        (["--describe", "--entity-type", "topics", "--entity-type", "topics"], "Duplicate entity type(s)"),
        (["--describe", "--entity-type", "topics", "--entity-type", "brokers"], "Only 'users' and 'clients'"),
        (["--describe", "--broker", "x"], "must be a valid integer broker id, but it is: x"),
        (["--describe", "--entity-type", "topics", "--entity-default"], "--entity-default must not be"),
        (
            ["--describe", "--user", "u", "--entity-type", "clients"],
            "--entity-{type,name,default} should not",
        ),
        (["--alter", "--entity-type", "topics", "--add-config", "a=b"], "An entity name must be specified"),
        (["--alter", "--topic", "t"], "At least one of --add-config"),
        (["--alter", "--topic", "t", "--add-config", "a"], 'must be in the format "key=val"'),
        (["--alter", "--topic", "t", "--add-config", "a b=c"], "Invalid character found for config key: a b"),
        (["--alter", "--client", "c", "--add-config", "foo=1"], "Only quota configs can be added"),
        (["--alter", "--user", "u", "--add-config", "foo=1"], "Only quota and SCRAM credential configs"),
        (["--alter", "--client", "c", "--add-config", "producer_byte_rate=x"], "Cannot parse quota"),
        (
            ["--alter", "--user-defaults", "--add-config", "SCRAM-SHA-256=[password=x]"],
            "--user-defaults is not",
        ),
        (
            ["--alter", "--user", "u", "--add-config", "SCRAM-SHA-256=[iterations=9,password=x]"],
            "minimum 4096",
        ),
        (["--describe", "--topic", "t", "--add-config", "a=b"], 'Option "[describe]" can\'t be used'),
    ],
)
def test_config_command_lines_that_make_no_sense(
    broker: FakeBroker, argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(configs.main, broker, *argv) == 1
    assert sentence in capsys.readouterr().err


def test_the_brokers_errors_are_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    def refused(request: Any) -> Message:
        result = CreatableTopicResult(
            name="t", error_code=ErrorCode.INVALID_REPLICATION_FACTOR, error_message="Too many.", configs=None
        )
        return CreateTopicsResponse(topics=[result])

    with FakeBroker({19: refused}) as broker:
        assert run(topics.main, broker, "--create", "--topic", "t", "--replication-factor", "9") == 1
    assert capsys.readouterr().out == "Error while executing topic command : Too many.\n"
