"""kafka-leader-election: results, invalid arguments and files."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from moldau.base.errors import ErrorCode
from moldau.base.ids import TopicPartition
from moldau.cli.kafka import leader_election
from moldau.cli.kafka.leader_election import parse_partitions
from moldau.cli.shared.tool import ToolError
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker


def elected(request: ElectLeadersRequest) -> Message:
    results = [
        PartitionResult(partition_id=0, error_message=None),
        PartitionResult(partition_id=1, error_code=ErrorCode.ELECTION_NOT_NEEDED, error_message="no"),
        PartitionResult(
            partition_id=2, error_code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, error_message="it is gone"
        ),
    ]
    count = 3 if request.topic_partitions is None else 2
    results = [ReplicaElectionResult(topic="a", partition_result=results[:count])]
    return ElectLeadersResponse(replica_election_results=results)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker(
        {
            ApiKey.ELECT_LEADERS: elected,
        }
    ) as fake:
        yield fake


def test_elected_needless_and_failed_partitions_are_reported(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--bootstrap-server", broker.bootstrap, "--election-type", "PREFERRED"]
    assert leader_election.main([*argv, "--topic", "a", "--partition", "0"]) == 0
    good = [
        "Successfully completed leader election (PREFERRED) for partitions a-0",
        "Valid replica already elected for partitions a-1",
    ]
    assert capsys.readouterr().out.splitlines() == good
    assert leader_election.main([*argv, "--all-topic-partitions"]) == 1
    output = capsys.readouterr()
    assert output.out.splitlines() == [
        *good,
        "Error completing leader election (PREFERRED) for partition: a-2: "
        "org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: it is gone",
    ]
    assert output.err == "1 replica(s) could not be elected\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--all-topic-partitions"], "Missing required option(s): bootstrap-server, election-type"),
        (["--election-type", "x"], "Cannot parse argument 'x' of option election-type"),
        (
            ["--bootstrap-server", "h:1", "--election-type", "unclean"],
            "One and only one of the following options is required: topic, all-topic-partitions, "
            "path-to-json-file",
        ),
        (
            ["--bootstrap-server", "h:1", "--election-type", "unclean", "--topic", "a"],
            "Missing required option(s): partition",
        ),
        (
            [
                *("--bootstrap-server", "h:1", "--election-type", "unclean"),
                *("--all-topic-partitions", "--partition", "1"),
            ],
            "Option partition is only allowed if topic is used",
        ),
    ],
)
def test_invalid_arguments_are_rejected(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leader_election.main(argv) == 1
    assert message in capsys.readouterr().err


def test_partitions_are_parsed_and_duplicates_rejected() -> None:
    text = '{"partitions": [{"topic": "a", "partition": 1}, {"topic": "b", "partition": 0}]}'
    assert parse_partitions(text) == [TopicPartition("a", 1), TopicPartition("b", 0)]
    twice = '{"partitions": [{"topic": "a", "partition": 1}, {"topic": "a", "partition": 1}]}'
    for bad, message in (
        ("", "Replica election data is empty"),
        ("{}", 'Replica election data is missing "partitions" field'),
        (twice, "Replica election data contains duplicate partitions: [a-1]"),
        ('{"partitions": [{"topic": 1}]}', "needs a field 'topic' that is a string"),
    ):
        with pytest.raises(ToolError, match=re.escape(message)):
            parse_partitions(bad)
