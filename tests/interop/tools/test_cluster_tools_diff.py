"""Moldau's tools compared with Apache Kafka's Java tools on three nodes, of Apache Kafka and of Moldau."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.harness.apache.nodes import ApacheNodes
from tests.harness.apache.tool_pairs import Tools
from tests.harness.waiting import eventually
from tests.interop.tools.test_tools_diff import sorted_json

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.fixture(scope="module", params=["apache", "moldau"])
def cluster(request: pytest.FixtureRequest, libs: Path) -> Iterator[Cluster | ApacheNodes]:
    with ApacheNodes(3, libs=libs) if request.param == "apache" else Cluster(brokers=3) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def tools(cluster: Cluster | ApacheNodes, libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools(cluster, libs, tmp_path_factory.mktemp("tools"))


def create(tools: Tools, topic: str, assignment: str) -> None:
    wanted = ("--replica-assignment", assignment, "--config", "min.insync.replicas=1")
    tools.same("kafka-topics", "--create", "--topic", "{topic}", *wanted, topic=topic)


def in_sync(tools: Tools, topic: str) -> None:
    """Wait until all replicas of the topics are in sync."""
    which = ("--describe", "--topic", f"{topic}-.*", "--under-replicated-partitions")
    eventually(lambda: tools.run("kafka-topics", *which).java.out == "", timeout=90, what="all in sync")


def plans(folder: Path, topic: str, replicas: list[list[int]]) -> tuple[str, str]:
    """Write a reassignment plan for the topic of each tool."""
    for name in (f"{topic}-ours", f"{topic}-java"):
        partitions = [
            {"topic": name, "partition": index, "replicas": each} for index, each in enumerate(replicas)
        ]
        (folder / f"{name}.json").write_text(json.dumps({"version": 1, "partitions": partitions}))
    return "--reassignment-json-file", str(folder / "{topic}.json")


def test_quorum_tool_matches_java(tools: Tools, cluster: Cluster | ApacheNodes) -> None:
    def quorum(*argv: str, bootstrap: bool = True) -> str:
        return tools.same("kafka-metadata-quorum", *argv, bootstrap=bootstrap)

    quorum("describe", "--status")
    controllers = ("--bootstrap-controller", cluster.bootstrap_controllers)
    quorum(*controllers, "describe", "--status", bootstrap=False)
    both = tools.run("kafka-metadata-quorum", *controllers, "describe", "--replication", bootstrap=False)
    ours, java = ([line.split("\t") for line in run.lines] for run in both)
    assert [[*row[:2], row[6]] for row in ours] == [[*row[:2], row[6]] for row in java]
    unknown = ("--controller-id", "9", "--controller-directory-id", "7Pl7b8h4TDyPaOTHkLUIwg")
    quorum("remove-controller", *unknown, "--dry-run")
    for argv in (
        ("describe",),
        ("describe", "--status", "--replication"),
        ("describe", "--status", "--human-readable"),
        ("add-controller",),
        ("remove-controller", *unknown),
    ):
        tools.same_failure("kafka-metadata-quorum", *argv)


def test_features_tool_matches_java(tools: Tools, cluster: Cluster | ApacheNodes) -> None:
    def features(*argv: str, bootstrap: bool = True) -> str:
        return tools.same("kafka-features", *argv, bootstrap=bootstrap)

    features("describe")
    features("describe", "--node-id", "3")
    controllers = ("--bootstrap-controller", cluster.bootstrap_controllers)
    features(*controllers, "describe", bootstrap=False)
    for release in ((), ("--release-version", "4.0"), ("--release-version", "3.9-IV0")):
        features("version-mapping", *release, bootstrap=False)
    features("feature-dependencies", "--feature", "eligible.leader.replicas.version=1", bootstrap=False)
    features("upgrade", "--feature", "group.version=1", "--dry-run")
    for argv in (
        ("upgrade", "--feature", "group.version=7"),
        ("downgrade", "--feature", "metadata.version=25"),
        ("disable", "--feature", "nope.version"),
    ):
        both = tools.run("kafka-features", *argv)
        assert both.ours == both.java
        assert both.ours.code == 1
    for argv in (("upgrade",), ("upgrade", "--feature", "x"), ("version-mapping", "--release-version", "9")):
        tools.same_failure("kafka-features", *argv)


def test_reassignment_tool_matches_java(tools: Tools, cluster: Cluster | ApacheNodes, tmp_path: Path) -> None:
    create(tools, "move", "1:2,2:3,3:1")
    in_sync(tools, "move")
    file = plans(tmp_path, "move", [[3, 2], [1, 3]])

    def reassign(*argv: str) -> str:
        both = tools.run("kafka-reassign-partitions", *argv, topic="move")
        assert (both.ours.code, both.java.code) == (0, 0), both
        # The choice of a log directory may differ.
        ours, java = (re.sub(r'"log_dirs":\[[^]]*\]', '"log_dirs":[]', run.out) for run in both)
        assert ours == java
        return ours

    assert "Successfully started" in reassign("--execute", *file, "--throttle", "5000000")
    done = "Reassignment of partition move-x-1 is completed."
    eventually(lambda: done in reassign("--verify", *file, "--preserve-throttles"), timeout=60)
    assert "Clearing topic-level throttles" in reassign("--verify", *file)
    assert reassign("--list") == "No partition reassignments found.\n"
    reassign("--cancel", *file)
    other = plans(tmp_path, "move", [[2, 1], [3, 2]])
    reassign("--verify", *other)
    controllers = ("--bootstrap-controller", cluster.bootstrap_controllers)
    both = tools.run("kafka-reassign-partitions", *controllers, "--list", bootstrap=False)
    assert both.ours == both.java
    for replicas in ([[1, 9]], [[1, 1]], [[]], [], [[1]] * 4):
        bad = plans(tmp_path, "move", replicas)
        tools.same_failure("kafka-reassign-partitions", "--execute", *bad, topic="move")
    for argv in (
        ("--list", "--verify"),
        ("--verify",),
        ("--list", "--throttle", "5"),
        ("--list", "--bootstrap-controller", "x:1"),
    ):
        tools.same_failure("kafka-reassign-partitions", *argv)


def test_leader_election_tool_matches_java(tools: Tools) -> None:
    create(tools, "elect", "1:2,2:3")
    in_sync(tools, "elect")

    def elect(*argv: str) -> str:
        return tools.same("kafka-leader-election", *argv, topic="elect")

    elect("--election-type", "preferred", "--topic", "{topic}", "--partition", "0")
    elect("--election-type", "unclean", "--topic", "{topic}", "--partition", "0")
    elect("--election-type", "preferred", "--all-topic-partitions")
    for argv in (
        ("--election-type", "preferred", "--topic", "nope", "--partition", "0"),
        ("--election-type", "preferred", "--topic", "nope"),
        ("--election-type", "x", "--topic", "nope", "--partition", "0"),
        ("--election-type", "preferred"),
        ("--topic", "nope"),
    ):
        tools.same_failure("kafka-leader-election", *argv)


def test_metadata_shell_matches_java(tools: Tools, cluster: Cluster | ApacheNodes, tmp_path: Path) -> None:
    """Use a copy of a node's log; retry Java's shell, which may list records before it has loaded all."""
    create(tools, "shell", "1:2:3")
    (folder,) = next(iter(_data_dirs(cluster))).rglob("__cluster_metadata-0")
    copy = tmp_path / "__cluster_metadata-0"
    shutil.copytree(folder, copy)
    (log,) = copy.glob("*.log")
    for argv in (
        ("tree", "/image"),
        ("ls", "/"),
        ("ls", "/image/cluster", "/image/provenance"),
        ("find", "/image/topics/byName"),
        ("cat", "/image/topics/byName/shell-*/0"),
        ("cat", "/image", "/nope"),
        ("ls", "/image/c*"),
    ):

        def alike(argv: tuple[str, ...] = argv) -> bool:
            both = tools.run("kafka-metadata-shell", "--snapshot", str(log), *argv, bootstrap=False)
            return (both.ours.code, both.ours.out) == (both.java.code, both.java.out)

        eventually(alike, timeout=60, what=f"the same answer to {argv}")


def _data_dirs(cluster: Cluster | ApacheNodes) -> Iterator[Path]:
    if isinstance(cluster, ApacheNodes):
        yield from (node.data_dir for node in cluster.nodes.values())
    else:
        yield from (cluster.data_dir / f"node-{node.id}" for node in cluster.nodes)


def test_tools_report_a_missing_broker_like_java(tools: Tools, cluster: Cluster | ApacheNodes) -> None:
    """This test runs last: it kills a broker."""
    create(tools, "three", "1:2:3,2:3:1,3:1:2")
    lines = "".join(f"{number}\tvalue\n" for number in range(60))
    keyed = ("--topic", "{topic}", "--reader-property", "parse.key=true")
    tools.same("kafka-console-producer", *keyed, topic="three", stdin=lines)
    in_sync(tools, "three")
    tools.same("kafka-cluster", "list-endpoints")
    _say_the_same(tools)
    cluster.kill(2)
    leaders = ("--describe", "--topic", "three-.*")
    eventually(lambda: "Leader: 2" not in tools.run("kafka-topics", *leaders).java.out, timeout=90)
    _say_the_same(tools)
    tools.same("kafka-cluster", "list-endpoints", "--include-fenced-brokers")
    tools.same("kafka-metadata-quorum", "describe", "--status")
    gone = ("--election-type", "preferred", "--topic", "{topic}", "--partition", "1")
    tools.same_failure("kafka-leader-election", *gone, topic="three")


def _say_the_same(tools: Tools) -> None:
    tools.same_lines("kafka-broker-api-versions")
    tools.same("kafka-get-offsets", "--topic", "three-.*")
    reports = ("under-replicated", "under-min-isr", "at-min-isr", "unavailable")
    for report in ((), *((f"--{name}-partitions",) for name in reports)):
        tools.same_lines("kafka-topics", "--describe", "--topic", "three-.*", *report)
    both = tools.run("kafka-log-dirs", "--describe", "--topic-list", "three-ours,three-java")
    assert both.ours.lines[:2] == both.java.lines[:2]
    assert _directories(both.ours.lines[2]) == _directories(both.java.lines[2])


def _directories(text: str) -> object:
    """Sort log directories: Java lists them in hash order."""
    data = sorted_json(text)
    assert isinstance(data, dict)
    for broker in data["brokers"]:
        broker["logDirs"].sort(key=lambda directory: directory["logDir"])
    return data
