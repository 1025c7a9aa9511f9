"""kafka-consumer-groups: what the command line means, reset plans as text, tables of offsets and members."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from moldau.base.ids import TopicPartition
from moldau.cli.kafka.consumer_groups import command as consumer_groups
from moldau.cli.kafka.consumer_groups.listing import STATES, parse_names
from moldau.cli.kafka.consumer_groups.report import assignment_text
from moldau.cli.kafka.consumer_groups.reset import print_plans
from moldau.cli.kafka.consumer_groups.reset_plan import csv_line, parse_datetime, parse_duration, parse_plan
from moldau.cli.kafka.consumer_groups.scope import parse_partitions
from moldau.cli.shared.arguments import UsageError
from moldau.cli.shared.tool import ToolError
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from moldau.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from moldau.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from moldau.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from moldau.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from moldau.protocol.schema import Message
from tests.harness.wire.fake_broker import FakeBroker

LIST_OFFSETS, OFFSET_FETCH, TOPIC_PARTITIONS = 2, 9, 75
LIST_GROUPS, FIND_COORDINATOR, CONSUMER_GROUP_DESCRIBE, DELETE_GROUPS = 16, 10, 69, 42


def listed(request: Any) -> Message:
    groups = [
        ListedGroup(
            group_id="b-group", protocol_type="consumer", group_state="Stable", group_type="consumer"
        ),
        ListedGroup(group_id="a-group", protocol_type="", group_state="Empty", group_type="classic"),
        ListedGroup(group_id="worker", protocol_type="connect", group_state="Stable", group_type="classic"),
    ]
    return ListGroupsResponse(groups=groups)


def described(request: Any) -> Message:
    def given(*partitions: int) -> Assignment:
        topic = TopicPartitions(topic_name="orders", partitions=list(partitions))
        return Assignment(topic_partitions=[topic] if partitions else [])

    members = [
        Member(
            member_id="one",
            instance_id="i-1",
            client_id="app",
            client_host="/10.0.0.1",
            member_epoch=4,
            member_type=1,
            assignment=given(2, 0),
            target_assignment=given(0),
        ),
        Member(
            member_id="two",
            instance_id=None,
            client_id="old",
            client_host="/10.0.0.2",
            member_epoch=3,
            member_type=0,
            assignment=given(),
            target_assignment=given(2),
        ),
    ]
    group = DescribedGroup(
        group_id=request.group_ids[0],
        group_state="Empty" if request.group_ids == ["idle"] else "Reconciling",
        group_epoch=5,
        assignment_epoch=5,
        assignor_name="range",
        members=members,
        error_message=None,
    )
    return ConsumerGroupDescribeResponse(groups=[group])


def committed(request: Any) -> Message:
    def at(index: int, offset: int) -> OffsetFetchResponsePartitions:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=offset, committed_leader_epoch=3, metadata=""
        )

    topics = [
        OffsetFetchResponseTopics(name="orders", partitions=[at(2, 7), at(1, 5)]),
        OffsetFetchResponseTopics(name="deleted", partitions=[at(0, 1)]),
    ]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="shop", topics=topics)])


def partitions(request: Any) -> Message:
    """`orders` has no leader for partition 1; there is no other topic."""
    found = [
        DescribeTopicPartitionsResponsePartition(partition_index=index, leader_id=leader)
        for index, leader in enumerate([1, -1, 1])
    ]
    topics = [
        DescribeTopicPartitionsResponseTopic(name="orders", partitions=found)
        if asked.name == "orders"
        else DescribeTopicPartitionsResponseTopic(name=asked.name, error_code=3)
        for asked in request.topics
    ]
    return DescribeTopicPartitionsResponse(topics=topics)


def leaders(broker: FakeBroker) -> Message:
    found = [MetadataResponsePartition(partition_index=index, leader_id=1) for index in range(3)]
    return broker.metadata(topics=[MetadataResponseTopic(name="orders", partitions=found)])


def ends(request: Any) -> Message:
    found = [
        ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=10)
        for each in request.topics[0].partitions
    ]
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=found)])


def deleted(request: Any) -> Message:
    code = {"busy": 68, "gone": 69}
    results = [
        DeletableGroupResult(group_id=name, error_code=code.get(name, 0)) for name in request.groups_names
    ]
    return DeleteGroupsResponse(results=results)


class Groups:
    def __init__(self, broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
        self._broker = broker
        self._capsys = capsys

    def run(self, *argv: str) -> tuple[int, str, str]:
        code = consumer_groups.main(["--bootstrap-server", self._broker.bootstrap, *argv])
        said = self._capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
def groups(capsys: pytest.CaptureFixture[str]) -> Any:
    broker = FakeBroker(
        {
            LIST_GROUPS: listed,
            CONSUMER_GROUP_DESCRIBE: described,
            DELETE_GROUPS: deleted,
            OFFSET_FETCH: committed,
            TOPIC_PARTITIONS: partitions,
            LIST_OFFSETS: ends,
            ApiKey.METADATA: lambda request: leaders(broker),
            FIND_COORDINATOR: lambda request: FindCoordinatorResponse(
                coordinators=[
                    Coordinator(key=key, node_id=1, host="127.0.0.1", port=broker.port, error_message=None)
                    for key in request.coordinator_keys
                ]
            ),
        }
    )
    with broker:
        yield Groups(broker, capsys)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--list", "--describe", "--group", "g"], '"[group]" can\'t be used with option "[list]"'),
        ([], "Command must include exactly one action: --list, --describe, --delete, --reset-offsets"),
        (["--describe"], "Option [describe] takes one of these options: [group], [all-groups]"),
        (["--delete"], "Option [delete] takes one of these options"),
        (["--reset-offsets", "--dry-run"], "Option [reset-offsets] takes one of these options"),
        (
            ["--describe", "--group", "g", "--members", "--state"],
            "Option [describe] takes at most one of these options: [members], [offsets], [state]",
        ),
        (
            ["--describe", "--group", "g", "--state", "x"],
            "Option [describe] does not take a value for [state]",
        ),
        (["--delete", "--group", "g", "--topic", "t"], "does not support topic-specific offset deletion"),
        (["--delete-offsets", "--group", "g"], "Option [delete-offsets] takes the following options"),
        (
            ["--reset-offsets", "--group", "g", "--execute", "--dry-run"],
            "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
        ),
        (
            ["--reset-offsets", "--group", "g", "--dry-run", "--to-latest", "--to-offset", "1"],
            '"[to-offset]" can\'t be used with option "[to-latest]"',
        ),
        (["--list", "--members"], "Option(s) [members] are unavailable given other options"),
        (["--describe", "--group", "g", "--type"], "Option(s) [type] are unavailable given other options"),
        (["--describe", "--group", "g", "--all-groups"], '"[group]" can\'t be used with'),
        (["--reset-offsets", "--group", "g", "--to-offset", "many"], "Cannot parse argument 'many'"),
    ],
)
def test_command_lines_that_make_no_sense(groups: Groups, argv: list[str], sentence: str) -> None:
    code, _, err = groups.run(*argv)
    assert (code, sentence in err) == (1, True), err


def test_a_cluster_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert consumer_groups.main(["--list"]) == 1
    assert 'Missing required argument "[bootstrap-server]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("regex", "verdict"),
    [
        ("orders-.*", "valid"),
        ("a(", "invalid: missing closing )"),
        ("[a", "invalid: missing closing ]"),
        ("(?=x)", "invalid: invalid or unsupported Perl syntax"),
    ],
)
def test_regular_expressions_are_judged_by_re2(
    regex: str, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert consumer_groups.main(["--validate-regex", regex]) == 0
    assert capsys.readouterr().out == f"The regular expression `{regex}` is {verdict}.\n"


def test_lists(groups: Groups) -> None:
    assert groups.run("--list") == (0, "a-group\nb-group\n", "")
    _, out, _ = groups.run("--list", "--type", "--state", "stable, EMPTY")
    assert [line.rstrip() for line in out.splitlines()] == [
        "GROUP                     TYPE                 STATE",
        "a-group                   Classic              Empty",
        "b-group                   Consumer             Stable",
    ]
    code, _, err = groups.run("--list", "--state", "asleep")
    assert (code, err.startswith("Invalid state list 'asleep'. Valid states are: ")) == (1, True)
    code, _, err = groups.run("--list", "--type", "share")
    assert (code, err.startswith("Invalid types list 'share'. Valid types are: ")) == (1, True)


def test_members_of_a_group_that_moves_to_the_new_protocol(groups: Groups) -> None:
    code, out, err = groups.run("--describe", "--group", "shop", "--members", "--verbose")
    assert (code, err) == (0, "\nWarning: Consumer group 'shop' is rebalancing.\n")
    whoever = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID"]
    assignments = ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    assert [line.split() for line in out.splitlines()] == [
        [],
        [*whoever, "#PARTITIONS", *assignments, "UPGRADED"],
        ["shop", "one", "i-1", "/10.0.0.1", "app", "2", "4", "orders:0,2", "5", "orders:0", "true"],
        ["shop", "two", "/10.0.0.2", "old", "0", "3", "-", "5", "orders:2", "false"],
    ]


def test_offsets_also_where_a_partition_has_no_leader_or_is_gone(groups: Groups) -> None:
    code, out, _ = groups.run("--describe", "--group", "shop", "--verbose")
    table = [line.split() for line in out.splitlines()]
    assert (code, table[2:]) == (
        0,
        [
            ["shop", "orders", "0", "-", "-", "10", "-", "one", "/10.0.0.1", "app"],
            ["shop", "orders", "2", "3", "7", "10", "3", "one", "/10.0.0.1", "app"],
            ["shop", "deleted", "0", "3", "1", "-", "-", "-", "-", "-"],
            ["shop", "orders", "1", "3", "5", "-", "-", "-", "-", "-"],
        ],
    )


def test_a_topic_that_is_not_there_is_named(groups: Groups) -> None:
    reset = ("--reset-offsets", "--group", "idle", "--to-latest", "--dry-run")
    missing = "UnknownTopicOrPartitionException: Topic deleted does not exist."
    for topic in ("deleted", "deleted:0"):
        code, out, _ = groups.run(*reset, "--topic", topic)
        assert (code, missing in out) == (0, True), out
    _, out, _ = groups.run(*reset, "--topic", "orders:9")
    assert 'failed due to The partitions "orders-9" do not exist' in out
    _, out, _ = groups.run(*reset, "--topic", "orders:1")
    assert 'The partitions "orders-1" have no leader' in out


def test_deleting_some_of_the_groups(groups: Groups) -> None:
    code, out, _ = groups.run("--delete", "--group", "busy", "--group", "idle", "--group", "gone")
    errors = "org.apache.kafka.common.errors"
    assert (code, out.splitlines()) == (
        0,
        [
            "",
            "Error: Deletion of some consumer groups failed:",
            f"* Group 'busy' could not be deleted due to: {errors}.GroupNotEmptyException: "
            "The group is not empty.",
            f"* Group 'gone' could not be deleted due to: {errors}.GroupIdNotFoundException: "
            "The group id does not exist.",
            "",
            "These consumer groups were deleted successfully: 'idle'",
        ],
    )
    _, out, _ = groups.run("--delete", "--group", "idle")
    assert out == "Deletion of requested consumer groups ('idle') was successful.\n"


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:01.000", 1000),
        ("1970-01-01T00:00:01.5", 1005),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T01:00:00.000+01", 0),
        ("1969-12-31T22:30:00.000-0130", 0),
        ("2026-02-28T23:59:59.999Z", 1772323199999),
    ],
)
def test_points_in_time(text: str, milliseconds: int) -> None:
    assert parse_datetime(text) == milliseconds


@pytest.mark.parametrize("text", ["2026-01-01", "2026-01-01T00:00:00", "2026-02-30T00:00:00.000", "T", ""])
def test_what_is_no_point_in_time(text: str) -> None:
    with pytest.raises(ToolError):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("P1D", 86_400_000),
        ("PT1H2M3S", 3_723_000),
        ("P1DT1S", 86_401_000),
        ("pt0.25s", 250),
        ("PT-1.5S", -1500),
        ("-PT1M", -60_000),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1Y", "P1H", "P1DT"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ToolError):
        parse_duration(text)


def test_plans_survive_a_file() -> None:
    text = csv_line("orders", 0, 5) + csv_line("orders", 1, 7)
    expected = {TopicPartition("orders", 0): 5, TopicPartition("orders", 1): 7}
    assert parse_plan(text, "mine") == {"mine": expected}
    groups = csv_line("a,b", "t", 0, 1) + csv_line('say "hi"', "t" * 25, 3, 2)
    assert groups == f'"a,b",t,0,1\n"say ""hi""","{"t" * 25}",3,2\n'
    assert parse_plan(groups, None) == {
        "a,b": {TopicPartition("t", 0): 1},
        'say "hi"': {TopicPartition("t" * 25, 3): 2},
    }
    assert parse_plan("g,t,0,1\n", "g") == {"g": {TopicPartition("t", 0): 1}}


@pytest.mark.parametrize("line", ["t,0", "t,zero,1", "g,t,0,1,2"])
def test_a_plan_that_cannot_be_read(line: str) -> None:
    with pytest.raises(ToolError, match="line 2 of the reset plan is not topic,partition,offset"):
        parse_plan(f"t,0,1\n{line}\n", "g")


def test_partitions_of_a_topic() -> None:
    assert parse_partitions("t:0,12") == [TopicPartition("t", 0), TopicPartition("t", 12)]
    for bad in ("t:", "t:1:2", "t:x"):
        with pytest.raises(UsageError):
            parse_partitions(bad)


def test_assignments_as_text() -> None:
    partitions = [TopicPartition("b", 10), TopicPartition("a", 1), TopicPartition("b", 2)]
    assert assignment_text(partitions) == "a:1;b:2,10"
    assert assignment_text([]) == "-"


def test_the_table_of_a_reset(capsys: pytest.CaptureFixture[str]) -> None:
    print_plans({"g": {TopicPartition("a-topic-with-a-long-name", 1): 5, TopicPartition("a", 0): 1}})
    assert capsys.readouterr().out.splitlines() == [
        "",
        "GROUP           TOPIC                    PARTITION  NEW-OFFSET",
        "g               a                        0          1",
        "g               a-topic-with-a-long-name 1          5",
    ]
    print_plans({})
    assert capsys.readouterr().out == "\n"


def test_names_in_a_list() -> None:
    assert parse_names("stable,Dead", STATES, "state") == ["Stable", "Dead"]
    assert parse_names(None, STATES, "state") == []


def test_every_option_can_be_asked_for() -> None:
    options = consumer_groups._parser().parse(["--list", "--state", "--type", "classic"])
    assert isinstance(options, argparse.Namespace)
    assert (options.state, options.type, options.timeout) == ("", "classic", 30_000)
