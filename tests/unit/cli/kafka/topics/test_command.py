"""kafka-topics: requests, output and invalid arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.base.errors import ErrorCode
from moldau.cli.kafka.topics import command
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker
from tests.unit.cli.kafka.topic_broker import run, topic_broker


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with topic_broker() as fake:
        yield fake


def test_describe(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command.main, broker, "--describe", "--topic", "orders") == 0
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
        assert run(command.main, broker, "--describe", "--topic", "orders", flag) == 0
        assert capsys.readouterr().out.splitlines() == lines


def test_list(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command.main, broker, "--list") == 0
    assert capsys.readouterr().out == "__consumer_offsets\norders\n"
    assert run(command.main, broker, "--list", "--exclude-internal") == 0
    assert capsys.readouterr().out == "orders\n"
    assert run(command.main, broker, "--list", "--topic", "nothing,ord.*") == 0
    assert capsys.readouterr().out == "orders\n"


def test_create(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("--create", "--topic", "my.topic", "--partitions", "3", "--config", "retention.ms = 5")
    assert run(command.main, broker, *argv) == 0
    warning, done = capsys.readouterr().out.splitlines()
    assert warning.startswith("WARNING: Due to limitations in metric names")
    assert done == "Created topic my.topic."
    sent: Any = broker.requests[-1]
    assert (sent.topics[0].num_partitions, sent.topics[0].replication_factor) == (3, -1)
    assert [(config.name, config.value) for config in sent.topics[0].configs] == [("retention.ms", "5")]


def test_create_with_an_assignment(broker: FakeBroker) -> None:
    assert run(command.main, broker, "--create", "--topic", "t", "--replica-assignment", "1:2,2:1") == 0
    sent: Any = broker.requests[-1]
    assert [item.broker_ids for item in sent.topics[0].assignments] == [[1, 2], [2, 1]]


def test_alter_with_an_assignment_sends_only_the_new_partitions(broker: FakeBroker) -> None:
    argv = ("--alter", "--topic", "orders", "--partitions", "3", "--replica-assignment", "1:2,2:1,1:3")
    assert run(command.main, broker, *argv) == 0
    sent: Any = broker.requests[-1]
    assert sent.topics[0].count == 3
    assert [item.broker_ids for item in sent.topics[0].assignments] == [[1, 3]]


@pytest.mark.parametrize(
    ("argv", "message"),
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
def test_errors_are_printed_to_standard_output(
    broker: FakeBroker, argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command.main, broker, *argv) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("Error while executing topic command : ")
    assert message in shown


def test_if_exists_ignores_missing_topics(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("--describe", "--delete"):
        assert run(command.main, broker, action, "--topic", "nope", "--if-exists") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("argv", "message"),
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
def test_invalid_arguments_are_rejected(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--bootstrap-server", "h:1", *argv]) == 1
    assert message in capsys.readouterr().err


def test_error_message_of_the_broker_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def refused(request: Any) -> Message:
        result = CreatableTopicResult(
            name="t", error_code=ErrorCode.INVALID_REPLICATION_FACTOR, error_message="Too many.", configs=None
        )
        return CreateTopicsResponse(topics=[result])

    with FakeBroker({ApiKey.CREATE_TOPICS: refused}) as broker:
        assert run(command.main, broker, "--create", "--topic", "t", "--replication-factor", "9") == 1
    assert capsys.readouterr().out == "Error while executing topic command : Too many.\n"
