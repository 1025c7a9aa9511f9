"""The small tools: offsets, deleting records, log directories, cluster, API versions; and `moldau` itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.cli.kafka import broker_api_versions as api_versions
from moldau.cli.kafka import cluster, delete_records, get_offsets, log_dirs
from moldau.cli.kafka.delete_records import parse_offsets
from moldau.cli.main import main
from moldau.cli.shared.arguments import TopicPattern
from moldau.cli.shared.tool import ToolError
from moldau.cli.tools import TOOLS, find_tool
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from moldau.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from moldau.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker


def offsets(request: Any) -> Message:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=p.partition_index, offset=100 + p.partition_index
                    )
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def deleted(request: Any) -> Message:
    partitions = [
        DeleteRecordsPartitionResult(partition_index=0, low_watermark=5),
        DeleteRecordsPartitionResult(partition_index=1, error_code=1),
    ]
    return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="a", partitions=partitions)])


def directories(request: Any) -> Message:
    partition = DescribeLogDirsPartition(
        partition_index=0, partition_size=9, offset_lag=1, is_future_key=True
    )
    topics = [DescribeLogDirsTopic(name=name, partitions=[partition]) for name in ("a", "b")]
    return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir="/data", topics=topics)])


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    def metadata(request: Any) -> Message:
        partitions = [MetadataResponsePartition(partition_index=i, leader_id=1) for i in range(3)]
        asked = request.topics
        names = ("__consumer_offsets", "a", "b") if asked is None else [topic.name for topic in asked]
        return fake.metadata(
            topics=[MetadataResponseTopic(name=name, partitions=partitions) for name in names]
        )

    def described(request: Any) -> Message:
        node = DescribeClusterBroker(broker_id=1, host="127.0.0.1", port=fake.port, rack="r1")
        kind = request.endpoint_type
        return DescribeClusterResponse(
            cluster_id="the-id", controller_id=1, endpoint_type=kind, brokers=[node]
        )

    answers: dict[int, Callable[[Any], Message]] = {
        2: offsets,
        3: metadata,
        21: deleted,
        35: directories,
        60: described,
    }
    fake = FakeBroker(answers)
    with fake:
        yield fake


@pytest.mark.parametrize(
    ("argv", "lines"),
    [
        (["--topic", "a"], ["a:0:100", "a:1:101", "a:2:102"]),
        (["--topic", "a|b", "--partitions", "1"], ["a:1:101", "b:1:101"]),
        (["--topic-partitions", "a:1-,b:0"], ["a:1:101", "a:2:102", "b:0:100"]),
        (["--topic-partitions", "a:-1,b:1-2"], ["a:0:100", "b:1:101"]),
        (["--topic-partitions", ":2", "--exclude-internal-topics"], ["a:2:102", "b:2:102"]),
    ],
)
def test_get_offsets(
    broker: FakeBroker, argv: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert get_offsets.main(["--bootstrap-server", broker.bootstrap, *argv]) == 0
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("latest", -1),
        ("-2", -2),
        ("max-timestamp", -3),
        ("earliest-local", -4),
        ("1700000000000", 1700000000000),
    ],
)
def test_times(broker: FakeBroker, text: str, timestamp: int) -> None:
    assert get_offsets.main(["--bootstrap-server", broker.bootstrap, "--topic", "a", "--time", text]) == 0
    sent: Any = broker.requests[-1]
    assert sent.topics[0].partitions[0].timestamp == timestamp


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--time", "soon"], "Malformed time argument soon."),
        (["--topic", "nope"], "Could not match any topic-partitions with the specified filters"),
        (["--topic", "a", "--topic-partitions", "a"], "--topic-partitions cannot be used with"),
        (["--partitions", "x"], "--partitions expects a comma separated list"),
        (["--topic-partitions", "a:x"], "Invalid rule specification: a:x"),
        (["--topic", "("], "( is an invalid regex"),
    ],
)
def test_get_offsets_mistakes(
    broker: FakeBroker, argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert get_offsets.main(["--bootstrap-server", broker.bootstrap, *argv]) == 1
    assert sentence in capsys.readouterr().err


def test_delete_records(broker: FakeBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "offsets.json"
    partitions = [{"topic": "a", "partition": number, "offset": 5} for number in (0, 1)]
    file.write_text(json.dumps({"partitions": partitions, "version": 1}))
    assert delete_records.main(["--bootstrap-server", broker.bootstrap, "--offset-json-file", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Executing records delete operation",
        "Records delete operation completed:",
        "partition: a-0\tlow_watermark: 5",
        "partition: a-1\terror: The offset is outside of what the partition holds.",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "The input string is not a valid JSON"),
        ("{}", "Missing partitions field"),
        ("[]", "Missing partitions field"),
        ('{"partitions": [], "version": 2}', "Not supported version field value 2"),
        ('{"partitions": [{"topic": "a", "partition": "0", "offset": 1}]}', "'partition' that is an integer"),
        ('{"partitions": [1]}', "'topic' that is a string"),
        (
            '{"partitions": [{"topic":"a","partition":0,"offset":1},{"topic":"a","partition":0,"offset":2}]}',
            "duplicate topic partitions: a-0",
        ),
    ],
)
def test_offset_files_that_make_no_sense(text: str, sentence: str) -> None:
    with pytest.raises(ToolError, match=sentence.replace("[", r"\[")):
        parse_offsets(text)


def test_log_dirs(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--bootstrap-server", broker.bootstrap, "--describe", "--topic-list", "a"]
    assert log_dirs.main(argv) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "Querying brokers for log directories information"
    assert second == "Received log directory information from brokers 1"
    replica = {"partition": "a-0", "size": 9, "offsetLag": 1, "isFuture": True}
    directory = {"partitions": [replica], "error": None, "logDir": "/data"}
    assert json.loads(third) == {"brokers": [{"broker": 1, "logDirs": [directory]}], "version": 1}
    assert log_dirs.main([*argv, "--broker-list", "1,7"]) == 1
    assert "do not exist from --broker-list: 7. Current existent brokers: 1" in capsys.readouterr().err


def test_cluster(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster.main(["cluster-id", "--bootstrap-server", broker.bootstrap]) == 0
    assert capsys.readouterr().out == "Cluster ID: the-id\n"
    assert cluster.main(["list-endpoints", "-b", broker.bootstrap]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header == "ID         HOST      PORT       RACK       STATE      ENDPOINT_TYPE  "
    assert row.split() == ["1", "127.0.0.1", str(broker.port), "r1", "unfenced", "broker"]
    assert cluster.main(["list-endpoints", "-C", broker.bootstrap]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-1] == "controller"


@pytest.mark.parametrize("argv", [["cluster-id"], ["bogus", "-b", "h:1"], ["unregister", "-b", "h:1"]])
def test_cluster_mistakes(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster.main(argv) == 1
    assert "Try 'kafka-cluster --help'." in capsys.readouterr().err


def test_api_versions(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert api_versions.main(["--bootstrap-server", broker.bootstrap]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"127.0.0.1:{broker.port} (id: 1 rack: r1 isFenced: false) -> ("
    assert lines[1] == "\tProduce(0): UNSUPPORTED,"
    assert "\tListOffsets(2): 1 to 11 [usable: 11]," in lines
    assert lines[-1] == ")"


def test_topic_patterns() -> None:
    assert TopicPattern("a, b.*").allows("bcd")
    assert not TopicPattern("a").allows("ab")
    assert not TopicPattern(".*").allows("__consumer_offsets", exclude_internal=True)
    assert TopicPattern("'a'").allows("a")


def test_moldau_knows_all_tools(capsys: pytest.CaptureFixture[str]) -> None:
    for name in TOOLS:
        assert find_tool(name) is not None
        assert find_tool(name.removeprefix("kafka-")) is find_tool(f"{name}.sh")
    assert find_tool("bogus") is None
    assert main(["topics", "--version"]) == 0
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "doctor" in shown
    assert "console-producer" in shown
    assert main(["bogus"]) == 2


def test_moldau_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocol", "HeartbeatRequest", "0"]) == 0
    shown = capsys.readouterr().out
    assert "def encode(" in shown
    assert "HeartbeatResponse" not in shown
    assert main(["protocol", "heartbeat"]) == 0
    assert "HeartbeatResponse version 4" in capsys.readouterr().out
    assert main(["protocol", "Heartbeat", "99"]) == 1
    assert "has the versions 0 to 4" in capsys.readouterr().err
    assert main(["protocol", "Produc"]) == 1
    assert "Did you mean Produce?" in capsys.readouterr().err
