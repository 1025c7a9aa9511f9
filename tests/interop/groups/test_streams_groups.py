"""Kafka Streams with `group.protocol=streams` (KIP-1071), and kafka-streams-groups, on both brokers.

The word count and its judgement are those of `pipelines/test_kafka_streams.py`.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from moldau.cli.kafka.streams_groups import command as streams_groups
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire
from tests.interop.conftest import JavaTool, Node
from tests.interop.pipelines.test_kafka_streams import A_STEP, PARTITIONS, Application, internal_topics

pytestmark = pytest.mark.interop

CONFIG = {
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "4000",
    "group.streams.min.heartbeat.interval.ms": "200",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.initial.rebalance.delay.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
STREAMS = ("group.protocol=streams",)
KILLS = 6
INSTANCES = 2


@pytest.fixture(params=["apache", "moldau"])
def node(request: pytest.FixtureRequest, libs: Path) -> Iterator[Node]:
    """A separate node, because it is killed."""
    config = {**CONFIG, **getattr(request.function, "config", {})}
    with (
        ApacheCluster(config=config, libs=libs)
        if request.param == "apache"
        else Cluster(config=config) as started
    ):
        yield started


def described(application: Application) -> Any:
    with Wire(application.bootstrap) as wire:
        return wire.call(StreamsGroupDescribeRequest(group_ids=[application.name]), 0).groups[0]


def is_stable(application: Application, members: int) -> bool:
    found = described(application)
    return found.group_state == "Stable" and len(found.members) == members


def plain(application: Application) -> dict[str, Any]:
    """Return a description without ids, with the tasks of all members together."""
    found = described(application)
    name = re.compile(re.escape(application.name))
    return {
        "state": found.group_state,
        "topology": name.sub("APPLICATION", repr(found.topology)),
        "active": tasks(found, "active_tasks"),
        "standby": tasks(found, "standby_tasks"),
        "members": len(found.members),
    }


def tasks(found: Any, role: str) -> list[tuple[str, int]]:
    return sorted(
        (each.subtopology_id, partition)
        for member in found.members
        for each in getattr(member.assignment, role)
        for partition in each.partitions
    )


ALL_TASKS = [(subtopology, index) for subtopology in ("0", "1") for index in range(PARTITIONS)]


def test_internal_topics_and_description(node: Node, tmp_path: Path) -> None:
    """The coordinator creates the topics that the classic protocol leaves to the client."""
    application = Application(node, "at_least_once", tmp_path, instances=2, settings=STREAMS)
    try:
        application.send(210)
        eventually(application.arrived, timeout=60, every=0.5, what="all counts")
        eventually(lambda: is_stable(application, 2), timeout=60, every=0.2, what="a stable group")
        found = application.counted()
        assert all(set(counts) <= set(found[word]) for word, counts in application.expected().items()), found
        admin = AdminClient({"bootstrap.servers": application.bootstrap, "log_level": 0})
        assert internal_topics(admin, application.name) == {
            "counts-changelog": (PARTITIONS, "compact", "604800000"),
            "words-repartition": (PARTITIONS, "delete", "-1"),
        }
        shown = plain(application)
        assert (shown["state"], shown["members"]) == ("Stable", 2)
        assert (shown["active"], shown["standby"]) == (ALL_TASKS, [])
        assert shown["topology"].count("APPLICATION-words-repartition") == 2
        with Wire(application.bootstrap) as wire:
            listed = wire.call(ListGroupsRequest(types_filter=["streams"]), 5).groups
        assert [(each.group_id, each.group_type) for each in listed] == [(application.name, "streams")]
    finally:
        application.stop()


def test_exactly_once_under_kill_9(node: Node, tmp_path: Path) -> None:
    application = Application(node, "exactly_once_v2", tmp_path, INSTANCES, settings=STREAMS)
    chance = random.Random(11)
    try:
        for step in range(KILLS):
            application.send(A_STEP)
            eventually(application.arrived, timeout=60, every=0.2, what=f"the counts before kill {step}")
            application.send(A_STEP)
            # The kill hits an instance at a random moment while it processes the new records.
            time.sleep(chance.uniform(0.0, 0.4))
            if step % 3 == 2:
                node.kill()
                node.restart()
            else:
                application.kill(chance.randrange(INSTANCES))
        eventually(application.arrived, timeout=60, every=0.5, what="all counts")
        assert application.counted() == application.expected()
    finally:
        application.stop()


def test_standby_tasks_and_growing_instances(node: Node, tmp_path: Path) -> None:
    """With a standby replica, every stateful task has one copy in another process."""
    application = Application(
        node, "at_least_once", tmp_path, instances=1, settings=(*STREAMS, "application.server=a:1")
    )
    try:
        application.send(70)
        eventually(application.arrived, timeout=60, every=0.5, what="all counts")
        for place in (1, 2):
            application.add(place)
        eventually(lambda: is_stable(application, 3), timeout=60, every=0.2, what="three members")
        found = described(application)
        assert tasks(found, "active_tasks") == ALL_TASKS
        assert tasks(found, "standby_tasks") == [("1", index) for index in range(PARTITIONS)]
        assert {len(each.assignment.active_tasks) for each in found.members} <= {1, 2}
        for each in found.members:
            active = {(t.subtopology_id, p) for t in each.assignment.active_tasks for p in t.partitions}
            copies = {(t.subtopology_id, p) for t in each.assignment.standby_tasks for p in t.partitions}
            assert not active & copies
        application.send(70)
        eventually(application.arrived, timeout=60, every=0.5, what="all counts")
    finally:
        application.stop()


test_standby_tasks_and_growing_instances.config = {  # type: ignore[attr-defined]
    "group.streams.num.standby.replicas": "1"
}


def test_another_topology_is_refused_while_the_group_exists(node: Node, tmp_path: Path) -> None:
    """Kafka 4.3 does not update topologies; after the group is deleted, another one is accepted."""
    first = Application(node, "at_least_once", tmp_path, instances=1, settings=STREAMS)
    try:
        first.send(70)
        eventually(first.arrived, timeout=60, every=0.5, what="all counts")
    finally:
        first.stop()
    eventually(lambda: described(first).group_state == "Empty", timeout=60, every=0.2, what="an empty group")
    second = Application(
        node, "at_least_once", tmp_path, instances=1, settings=(*STREAMS, "count.again=true"), like=first
    )
    try:
        said = tmp_path / "said-0"
        eventually(lambda: "failed" in said.read_text(), timeout=60, every=0.5, what="a refusal")
        assert "Topology updates are not supported yet" in said.read_text()
    finally:
        second.stop()
    with Wire(node.bootstrap_servers) as wire:
        # A member that was refused may still leave.
        eventually(
            lambda: wire.call(DeleteGroupsRequest(groups_names=[first.name]), 2).results[0].error_code == 0,
            timeout=60,
            every=0.2,
            what="a deleted group",
        )
    again = tmp_path / "again"
    again.mkdir()
    third = Application(
        node, "at_least_once", again, instances=1, settings=(*STREAMS, "count.again=true"), like=first
    )
    try:
        # It starts over, with a count of its own in another topology.
        eventually(lambda: is_stable(third, 1), timeout=60, every=0.2, what="the other topology")
        assert "APPLICATION-again-changelog" in plain(third)["topology"]
        third.send(70)
        eventually(third.arrived, timeout=60, every=0.5, what="all counts")
    finally:
        third.stop()


STREAMS_GROUPS = "org.apache.kafka.tools.streams.StreamsGroupCommand"
WITH_MEMBERS = [
    ["--list"],
    ["--list", "--state"],
    ["--list", "--state", "stable"],
    ["--list", "--state", "running"],
    ["--describe", "--group", "GROUP"],
    ["--describe", "--group", "GROUP", "--verbose"],
    ["--describe", "--group", "GROUP", "--members"],
    ["--describe", "--group", "GROUP", "--members", "--verbose"],
    ["--describe", "--all-groups", "--state"],
    ["--describe", "--group", "GROUP", "--state", "--verbose"],
    ["--describe", "--group", "nowhere"],
    ["--delete", "--group", "GROUP", "--group", "nowhere"],
    ["--reset-offsets", "--group", "GROUP", "--all-input-topics", "--to-earliest", "--execute"],
    ["--delete-offsets", "--group", "GROUP", "--all-input-topics"],
    ["--delete-offsets", "--group", "GROUP", "--input-topic", "GROUP-in"],
]
WITHOUT_MEMBERS = [
    ["--describe", "--group", "GROUP"],
    ["--describe", "--group", "GROUP", "--state"],
    ["--describe", "--group", "GROUP", "--members"],
    ["--reset-offsets", "--group", "GROUP", "--all-input-topics", "--to-earliest", "--dry-run"],
    ["--reset-offsets", "--group", "GROUP", "--input-topic", "GROUP-in:0", "--to-offset", "3", "--execute"],
    ["--reset-offsets", "--group", "GROUP", "--input-topic", "GROUP-out", "--to-latest", "--dry-run"],
    ["--reset-offsets", "--group", "GROUP", "--input-topic", "GROUP-in:1", "--shift-by", "-2", "--dry-run"],
    ["--reset-offsets", "--group", "GROUP", "--all-input-topics", "--to-current", "--dry-run", "--export"],
    ["--delete-offsets", "--group", "GROUP", "--input-topic", "nowhere"],
]


def test_tool_output_equals_kafkas(
    tool: JavaTool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Moldau's tool and Kafka's print the same about the same group, with and without members."""
    with Cluster(config=CONFIG) as node:
        application = Application(node, "at_least_once", tmp_path, instances=1, settings=STREAMS)
        try:
            application.send(70)
            eventually(application.arrived, timeout=60, every=0.5, what="all counts")
            eventually(lambda: is_stable(application, 1), timeout=60, every=0.2, what="a stable group")
            settled = Settled(application)
            eventually(settled, timeout=30, every=0.5, what="committed offsets")
            _compare(WITH_MEMBERS, application, tool, capsys)
        finally:
            application.stop()
        eventually(lambda: described(application).group_state == "Empty", timeout=60, what="an empty group")
        _compare(WITHOUT_MEMBERS, application, tool, capsys)
        remove = ["--delete", "--group", application.name, "--delete-all-internal-topics"]
        assert streams_groups.main(["--bootstrap-server", node.bootstrap_servers, *remove]) == 0
        assert "associated internal topics" in capsys.readouterr().out
        admin = AdminClient({"bootstrap.servers": application.bootstrap, "log_level": 0})
        assert internal_topics(admin, application.name) == {}


class Settled:
    """Whether the lag of the group is 0 twice: the application has committed everything."""

    def __init__(self, application: Application) -> None:
        self._application = application

    def __call__(self) -> bool:
        from moldau.cli.kafka.streams_groups.report import _positions
        from moldau.client.admin.client import AdminClient as Admin
        from moldau.client.admin.streams_groups import describe_streams_group

        with Admin({"bootstrap.servers": self._application.bootstrap}) as admin:
            group = admin.run(describe_streams_group(admin.client.cluster, self._application.name))
            positions = _positions(admin, group)
        return bool(positions) and all(each.lag == 0 for each in positions.values())


def _compare(
    commands: list[list[str]], application: Application, tool: JavaTool, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in commands:
        given = [each.replace("GROUP", application.name) for each in command]
        theirs, their_code = tool(STREAMS_GROUPS, "--bootstrap-server", application.bootstrap, *given)
        code = streams_groups.main(["--bootstrap-server", application.bootstrap, *given])
        captured = capsys.readouterr()
        assert (bool(code), _rows(captured.out)) == (bool(their_code), _rows(theirs)), (
            command,
            captured,
            theirs,
            tool.stderr,
        )


def _rows(text: str) -> list[str]:
    """Return the lines in order of their text, without the details of failures.

    The order of partitions is not defined.
    """
    plain = text.replace("java.util.concurrent.ExecutionException: ", "")
    lines = (re.sub(r"(\w+Exception): .*", r"\1", line).rstrip() for line in plain.splitlines())
    return sorted(line for line in lines if line and not line.startswith("\tat "))
