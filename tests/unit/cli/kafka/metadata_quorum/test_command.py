"""kafka-metadata-quorum: requests, output and invalid arguments."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.base.ids import format_uuid
from moldau.cli.kafka.metadata_quorum import command
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.describe_cluster import DescribeClusterResponse
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker
from tests.unit.metadata.builders import uid

NOW_MS = int(time.time() * 1000)


def quorum(request: Any) -> Message:
    def state(id_: int, end: int, caught_up: int) -> ReplicaState:
        return ReplicaState(
            replica_id=id_,
            replica_directory_id=uid(id_),
            log_end_offset=end,
            last_fetch_timestamp=caught_up,
            last_caught_up_timestamp=caught_up,
        )

    partition = ResponsePartitionData(
        leader_id=2,
        leader_epoch=7,
        high_watermark=90,
        current_voters=[state(1, 80, NOW_MS - 500), state(2, 100, NOW_MS)],
        observers=[state(3, 0, -1)],
    )
    topic = ResponseTopicData(topic_name="__cluster_metadata", partitions=[partition])
    nodes = [
        Node(node_id=1, listeners=[Listener(name="CONTROLLER", host="::1", port=9093)]),
        Node(
            node_id=2, listeners=[Listener(name="A", host="h", port=1), Listener(name="B", host="h", port=2)]
        ),
    ]
    return DescribeQuorumResponse(topics=[topic], nodes=nodes)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker(
        {
            ApiKey.DESCRIBE_QUORUM: quorum,
            ApiKey.DESCRIBE_CLUSTER: lambda _: DescribeClusterResponse(cluster_id="the-id", controller_id=1),
        }
    ) as fake:
        yield fake


def test_describe_status(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--bootstrap-server", broker.bootstrap, "describe", "--status"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ClusterId:              the-id",
        "LeaderId:               2",
        "LeaderEpoch:            7",
        "HighWatermark:          90",
        "MaxFollowerLag:         20",
        "MaxFollowerLagTimeMs:   500",
        f'CurrentVoters:          [{{"id": 1, "directoryId": "{format_uuid(uid(1))}", '
        '"endpoints": ["CONTROLLER://[::1]:9093"]}, '
        f'{{"id": 2, "directoryId": "{format_uuid(uid(2))}", "endpoints": ["A://h:1", "B://h:2"]}}]',
        f'CurrentObservers:       [{{"id": 3, "directoryId": "{format_uuid(uid(3))}"}}]',
    ]


def test_describe_replication(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--bootstrap-server", broker.bootstrap, "describe", "--replication"]
    assert command.main(argv) == 0
    rows = [[cell.strip() for cell in line.split("\t")] for line in capsys.readouterr().out.splitlines()]
    assert [(row[0], row[3], row[6]) for row in rows[1:]] == [
        ("2", "0", "Leader"),
        ("1", "20", "Follower"),
        ("3", "100", "Observer"),
    ]
    assert rows[1][4] == str(NOW_MS)
    assert command.main([*argv, "--human-readable"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.search(r"\t\d+ ms ago +\t\d+ ms ago +\tLeader", lines[1])
    assert re.search(r"\t-1 +\t-1 +\tObserver", lines[3])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["describe"], "One of --status or --replication must be specified"),
        (["describe", "--status", "--replication"], "Only one of --status or --replication should"),
        (["describe", "--status", "--human-readable"], "The option --human-readable is only supported"),
        (["add-controller"], "You must supply the configuration file of the controller"),
        (["remove-controller", "-i", "-4", "-d", "x"], "Invalid negative --controller-id: -4"),
        (["remove-controller", "-i", "4", "-d", "x"], "Failed to parse --controller-directory-id: "),
        (["remove-controller", "-d", "x"], "controller-id"),
    ],
)
def test_invalid_arguments_are_rejected(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--bootstrap-server", "127.0.0.1:1", *argv]) == 1
    assert message in capsys.readouterr().err


def test_exactly_one_bootstrap_address_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["describe"], ["--bootstrap-server", "a:1", "--bootstrap-controller", "b:1", "describe"]):
        assert command.main(argv) == 1
        assert "one of the arguments --bootstrap-server --bootstrap-controller" in capsys.readouterr().err
