"""kafka-metadata-quorum, kafka-features, kafka-leader-election: what they send, print and refuse."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode
from moldau.base.ids import TopicPartition, format_uuid
from moldau.cli.kafka import leader_election
from moldau.cli.kafka.features import command as features
from moldau.cli.kafka.leader_election import parse_partitions
from moldau.cli.kafka.metadata_quorum import command as metadata_quorum
from moldau.cli.kafka.metadata_quorum.controller_properties import controller_of
from moldau.cli.shared.tool import ToolError
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from moldau.protocol.messages.describe_cluster import DescribeClusterResponse
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from moldau.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from moldau.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker
from tests.unit.metadata.builders import uid

ELECT_LEADERS, DESCRIBE_QUORUM, UPDATE_FEATURES, DESCRIBE_CLUSTER, ADD_VOTER, REMOVE_VOTER = (
    *(43, 55, 57, 60),
    *(80, 81),
)
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


def updated(request: UpdateFeaturesRequest) -> Message:
    if any(update.max_version_level > 30 for update in request.feature_updates):
        return UpdateFeaturesResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="too high")
    return UpdateFeaturesResponse(error_message=None)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker(
        {
            ELECT_LEADERS: elected,
            DESCRIBE_QUORUM: quorum,
            UPDATE_FEATURES: updated,
            DESCRIBE_CLUSTER: lambda _: DescribeClusterResponse(cluster_id="the-id", controller_id=1),
            ADD_VOTER: lambda _: AddRaftVoterResponse(
                error_code=ErrorCode.DUPLICATE_VOTER, error_message="is there already"
            ),
            REMOVE_VOTER: lambda _: RemoveRaftVoterResponse(error_message=None),
        }
    ) as fake:
        yield fake


def test_the_quorum_in_short(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert metadata_quorum.main(["--bootstrap-server", broker.bootstrap, "describe", "--status"]) == 0
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


def test_the_quorum_node_by_node(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--bootstrap-server", broker.bootstrap, "describe", "--replication"]
    assert metadata_quorum.main(argv) == 0
    rows = [[cell.strip() for cell in line.split("\t")] for line in capsys.readouterr().out.splitlines()]
    assert [(row[0], row[3], row[6]) for row in rows[1:]] == [
        ("2", "0", "Leader"),
        ("1", "20", "Follower"),
        ("3", "100", "Observer"),
    ]
    assert rows[1][4] == str(NOW_MS)
    assert metadata_quorum.main([*argv, "--human-readable"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.search(r"\t\d+ ms ago +\t\d+ ms ago +\tLeader", lines[1])
    assert re.search(r"\t-1 +\t-1 +\tObserver", lines[3])


@pytest.mark.parametrize(
    ("argv", "sentence"),
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
def test_quorum_mistakes(argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert metadata_quorum.main(["--bootstrap-server", "127.0.0.1:1", *argv]) == 1
    assert sentence in capsys.readouterr().err


def test_one_address_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["describe"], ["--bootstrap-server", "a:1", "--bootstrap-controller", "b:1", "describe"]):
        assert metadata_quorum.main(argv) == 1
        assert "one of the arguments --bootstrap-server --bootstrap-controller" in capsys.readouterr().err


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    """The settings of a formatted controller."""
    (tmp_path / "meta.properties").write_text(
        f"version=1\nnode.id=4\ncluster.id=x\ndirectory.id={format_uuid(uid(44))}\n"
    )
    return {
        "node.id": "4",
        "process.roles": "controller",
        "listeners": "CONTROLLER://:9093,OTHER://h:1",
        "controller.listener.names": "controller",
        "log.dirs": str(tmp_path),
    }


def test_adding_and_removing_voters(
    broker: FakeBroker, properties: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "controller.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    argv = ["--bootstrap-server", broker.bootstrap, "--command-config", str(file), "add-controller"]
    assert metadata_quorum.main([*argv, "--dry-run"]) == 0
    directory = format_uuid(uid(44))
    assert capsys.readouterr().out == (
        f"DRY RUN of adding controller 4 with directory id {directory} and endpoints: "
        "CONTROLLER://localhost:9093\n"
    )
    assert metadata_quorum.main(argv) == 1
    assert capsys.readouterr().err == "is there already\n"
    sent = broker.requests[-1]
    assert isinstance(sent, AddRaftVoterRequest)
    assert (sent.cluster_id, sent.voter_id, sent.voter_directory_id) == (None, 4, uid(44))
    remove = ["remove-controller", "-i", "4", "-d", directory]
    assert metadata_quorum.main(["--bootstrap-server", broker.bootstrap, *remove]) == 0
    assert capsys.readouterr().out == f"Removed  KRaft controller 4 with directory id {directory}\n"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"node.id": None}, "node.id not found in configuration file"),
        ({"node.id": "x"}, "node.id is not a number"),
        ({"node.id": "-1"}, "node.id was negative in configuration file"),
        ({"process.roles": "broker"}, "process.roles did not contain 'controller'"),
        ({"log.dirs": None}, "Neither metadata.log.dir nor log.dirs were found"),
        ({"log.dirs": "/nowhere"}, "Unable to read meta.properties from /nowhere"),
        ({"controller.listener.names": None}, "controller.listener.names was not found"),
        ({"controller.listener.names": "X"}, "Cannot find information about controller listener name: X"),
        ({"listeners": "nonsense"}, "listeners has the entry 'nonsense'"),
    ],
)
def test_files_of_no_controller(
    properties: dict[str, str], changes: dict[str, str | None], sentence: str
) -> None:
    changed = {name: value for name, value in {**properties, **changes}.items() if value is not None}
    with pytest.raises(ToolError, match=re.escape(sentence)):
        controller_of(changed)


def test_advertised_listeners_count_more(properties: dict[str, str]) -> None:
    found = controller_of({**properties, "advertised.listeners": "CONTROLLER://[::1]:5"})
    assert [str(listener) for listener in found.listeners] == ["CONTROLLER://[::1]:5"]


def test_leaders_are_elected(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--bootstrap-server", broker.bootstrap, "--election-type", "PREFERRED"]
    assert leader_election.main([*argv, "--topic", "a", "--partition", "0"]) == 0
    good = [
        "Successfully completed leader election (PREFERRED) for partitions a-0",
        "Valid replica already elected for partitions a-1",
    ]
    assert capsys.readouterr().out.splitlines() == good
    assert leader_election.main([*argv, "--all-topic-partitions"]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        *good,
        "Error completing leader election (PREFERRED) for partition: a-2: "
        "org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: it is gone",
    ]
    assert said.err == "1 replica(s) could not be elected\n"


@pytest.mark.parametrize(
    ("argv", "sentence"),
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
def test_election_mistakes(argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert leader_election.main(argv) == 1
    assert sentence in capsys.readouterr().err


def test_partitions_of_a_file() -> None:
    text = '{"partitions": [{"topic": "a", "partition": 1}, {"topic": "b", "partition": 0}]}'
    assert parse_partitions(text) == [TopicPartition("a", 1), TopicPartition("b", 0)]
    twice = '{"partitions": [{"topic": "a", "partition": 1}, {"topic": "a", "partition": 1}]}'
    for bad, sentence in (
        ("", "Replica election data is empty"),
        ("{}", 'Replica election data is missing "partitions" field'),
        (twice, "Replica election data contains duplicate partitions: [a-1]"),
        ('{"partitions": [{"topic": 1}]}', "needs a field 'topic' that is a string"),
    ):
        with pytest.raises(ToolError, match=re.escape(sentence)):
            parse_partitions(bad)


def test_levels_of_releases(capsys: pytest.CaptureFixture[str]) -> None:
    assert features.main(["version-mapping", "--release-version", "4.0"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "metadata.version=25 (4.0)",
        "kraft.version=1",
        "transaction.version=2",
        "group.version=1",
        "eligible.leader.replicas.version=0",
        "share.version=0",
        "streams.version=0",
    ]
    assert features.main(["version-mapping"]) == 0
    assert capsys.readouterr().out.startswith("metadata.version=30 (4.3-IV0)\n")


def test_what_levels_need(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ("metadata.version=25", "eligible.leader.replicas.version=1", "group.version=1")
    argv = [word for level in wanted for word in ("--feature", level)]
    assert features.main(["feature-dependencies", *argv]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "metadata.version=25 (4.0-IV3) has no dependencies.",
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
        "group.version=1 has no dependencies.",
    ]


def test_features_are_changed(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--bootstrap-server", broker.bootstrap]
    levels = ["--feature", "b=2", "--feature", "a=1"]
    assert features.main([*argv, "upgrade", *levels]) == 0
    assert capsys.readouterr().out.splitlines() == ["a was upgraded to 1.", "b was upgraded to 2."]
    assert features.main([*argv, "downgrade", "--metadata", "4.0", "--unsafe", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        " `metadata` flag is deprecated and may be removed in a future release.",
        "metadata.version can be downgraded to 25.",
    ]
    sent = broker.requests[-1]
    assert isinstance(sent, UpdateFeaturesRequest)
    assert (sent.validate_only, sent.feature_updates[0].upgrade_type) == (True, 3)
    assert features.main([*argv, "disable", "--feature", "a"]) == 0
    assert capsys.readouterr().out == "a was disabled.\n"
    assert features.main([*argv, "upgrade", "--feature", "a=31"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "Could not upgrade a to 31. too high\n",
        "1 out of 1 operation(s) failed.\n",
    )


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["upgrade"], "You must specify at least one feature to upgrade"),
        (["disable"], "You must specify at least one feature to disable"),
        (["upgrade", "--feature", "a"], "Can't parse feature=level string a: equals sign not found."),
        (
            ["upgrade", "--feature", "a=x"],
            "feature=level string a=x: unable to parse x as a short.",
        ),
        (["upgrade", "--feature", "a=99999"], "unable to parse 99999 as a short."),
        (["upgrade", "--feature", "a=1", "--feature", "a=2"], "Feature a was specified more than once."),
        (["disable", "--feature", "a", "--feature", "a"], "Feature a was specified more than once."),
        (
            ["upgrade", "--release-version", "4.3", "--feature", "a=1"],
            "Can not specify `release-version` with other feature flags.",
        ),
        (["upgrade", "--release-version", "9"], "Unknown metadata.version '9'. Supported metadata.version"),
        (["describe", "--node-id", "-1"], "Invalid node id -1: must be non-negative."),
        (["feature-dependencies", "--feature", "x=1"], "Unknown feature: x"),
        (
            ["feature-dependencies", "--feature", "group.version=9"],
            "No feature:group.version with feature",
        ),
        (["feature-dependencies", "--feature", "metadata.version=6"], "Unknown metadata.version 6"),
    ],
)
def test_feature_mistakes(
    broker: FakeBroker, argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert features.main(["--bootstrap-server", broker.bootstrap, *argv]) == 1
    assert sentence in capsys.readouterr().err


def test_features_need_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert features.main(["describe"]) == 1
    assert "You must specify either --bootstrap-controller or --bootstrap-server." in capsys.readouterr().err
