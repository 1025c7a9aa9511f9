"""The tools of a cluster against three nodes, or with `MOLDAU_TEST_BROKER=apache` against Apache Kafka."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode
from moldau.client.admin.client import AdminClient, AsyncAdminClient
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.testing import Cluster
from tests.harness.apache.nodes import ApacheNodes
from tests.harness.tools import Tools, run_tool, tool_command
from tests.harness.waiting import eventually
from tests.harness.wire.requests import wait_until_known
from tests.integration.conftest import runs_apache

pytestmark = pytest.mark.timeout(240)
Nodes = Cluster | ApacheNodes


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Three nodes with two log directories each."""
    folder = tmp_path_factory.mktemp("cluster")
    dirs = {node: {"log.dirs": f"{folder}/{node}/first,{folder}/{node}/second"} for node in (1, 2, 3)}
    if runs_apache():
        with ApacheNodes(3, configs=dirs) as apache:
            yield apache
    else:
        with Cluster(brokers=3, node_config=dirs) as moldau:
            yield moldau


@pytest.fixture
def tools(cluster: Nodes) -> Tools:
    return Tools(cluster.bootstrap_servers)


def create(tools: Tools, topic: str, assignment: str) -> None:
    """Return tools for topics whose min.insync.replicas is 1."""
    config = ("--config", "min.insync.replicas=1")
    tools.good("kafka-topics", "--create", "--topic", topic, "--replica-assignment", assignment, *config)
    wait_until_known(tools.bootstrap, topic)
    eventually(lambda: isr_complete(tools, topic), what="all replicas in sync")


def partitions(tools: Tools, topic: str) -> list[dict[str, str]]:
    """Return the output of --describe for each partition."""
    described = tools.good("kafka-topics", "--describe", "--topic", topic)[1:]
    return [dict(part.split(": ", 1) for part in line.split("\t") if ": " in part) for line in described]


def isr_complete(tools: Tools, topic: str) -> bool:
    return all(
        sorted(each["Isr"].split(",")) == sorted(each["Replicas"].split(","))
        for each in partitions(tools, topic)
    )


def plan(path: Path, topic: str, replicas: list[list[int]], **more: object) -> str:
    wanted = [
        {"topic": topic, "partition": index, "replicas": each, **more} for index, each in enumerate(replicas)
    ]
    path.write_text(json.dumps({"version": 1, "partitions": wanted}))
    return str(path)


def test_quorum_status_and_replication_are_described(cluster: Nodes, tools: Tools) -> None:
    by_brokers = tools.good("kafka-metadata-quorum", "describe", "--status")
    printed = dict(re.split(r":\s+", line, maxsplit=1) for line in by_brokers)
    assert printed["LeaderId"] in ("1", "2", "3")
    assert int(printed["HighWatermark"]) > 0
    voters = json.loads(printed["CurrentVoters"])
    assert sorted(voter["id"] for voter in voters) == [1, 2, 3]
    controllers = cluster.bootstrap_controllers.split(",")
    assert sorted(voter["endpoints"][0] for voter in voters) == sorted(
        f"CONTROLLER://{controller}" for controller in controllers
    )
    done = run_tool(
        "kafka-metadata-quorum", "--bootstrap-controller", controllers[0], "describe", "--replication"
    )
    rows = [line.split("\t") for line in done.lines]
    assert [cell.strip() for cell in rows[0][:4]] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert [row[6].strip() for row in rows[1:]] == ["Leader", "Follower", "Follower"]
    human = tools.good("kafka-metadata-quorum", "describe", "--replication", "--human-readable")
    assert all(" ms ago" in line for line in human[1:])


def test_invalid_voter_changes_are_rejected(cluster: Nodes, tools: Tools) -> None:
    unknown = ("--controller-id", "9", "--controller-directory-id", "7Pl7b8h4TDyPaOTHkLUIwg")
    gone = tools.run("kafka-metadata-quorum", "remove-controller", *unknown)
    assert (gone.code, gone.out) == (1, "")
    assert re.search(r"\b9\b", gone.err)
    dry = tools.good("kafka-metadata-quorum", "remove-controller", *unknown, "--dry-run")
    assert dry == ["DRY RUN of removing  KRaft controller 9 with directory id 7Pl7b8h4TDyPaOTHkLUIwg"]


def test_voter_is_removed_and_added(cluster: Nodes, tools: Tools) -> None:
    def quorum() -> tuple[int, dict[int, str], set[int]]:
        """Return the leader, the directory ids of the voters, and the observers."""
        lines = tools.good("kafka-metadata-quorum", "describe", "--status")
        printed = dict(re.split(r":\s+", line, maxsplit=1) for line in lines)
        voters = {voter["id"]: voter["directoryId"] for voter in json.loads(printed["CurrentVoters"])}
        return (
            int(printed["LeaderId"]),
            voters,
            {each["id"] for each in json.loads(printed["CurrentObservers"])},
        )

    leader, voters, _ = quorum()
    other = next(voter for voter in sorted(voters) if voter != leader)
    which = ("--controller-id", str(other), "--controller-directory-id", voters[other])
    removed = tools.good("kafka-metadata-quorum", "remove-controller", *which)
    assert removed == [f"Removed  KRaft controller {other} with directory id {voters[other]}"]
    eventually(lambda: other in quorum()[2], what="the former voter to observe")
    assert sorted(quorum()[1]) == sorted(set(voters) - {other})
    file = ("--command-config", str(properties(cluster, other)))
    added = tools.good("kafka-metadata-quorum", *file, "add-controller")
    assert added[0].startswith(f"Added controller {other} with directory id {voters[other]} and endpoints: ")
    eventually(lambda: quorum()[1] == voters, what="the voters of the beginning")
    again = tools.run("kafka-metadata-quorum", *file, "add-controller")
    assert (again.code, again.out) == (1, "")


def properties(cluster: Nodes, node: int) -> Path:
    if isinstance(cluster, ApacheNodes):
        return cluster.properties(node)
    return cluster.data_dir / f"node-{node}" / "server.properties"


def test_features_are_described_and_updated(cluster: Nodes, tools: Tools) -> None:
    described = {line.split()[1]: line for line in tools.good("kafka-features", "describe")}
    assert "FinalizedVersionLevel: 4.3-IV0" in described["metadata.version"]
    one = run_tool(
        "kafka-features",
        "--bootstrap-controller",
        cluster.bootstrap_controllers,
        "describe",
        "--node-id",
        "2",
    )
    assert [line.split()[1] for line in one.lines] == list(described)
    assert "metadata.version was upgraded to 30." in tools.good(
        "kafka-features", "upgrade", "--release-version", "4.3"
    )
    refused = tools.run("kafka-features", "downgrade", "--feature", "metadata.version=25", "--dry-run")
    assert refused.code == 1
    assert refused.out.startswith("Can not downgrade metadata.version to 25. The update failed for all")
    assert refused.err == "1 out of 1 operation(s) failed.\n"


def test_partitions_are_reassigned_to_other_brokers(tools: Tools, topic: str, tmp_path: Path) -> None:
    create(tools, topic, "1:2,2:3")
    tools.produce(topic, "".join(f"{number}\n" for number in range(200)))
    file = plan(tmp_path / "plan.json", topic, [[3, 2], [1, 3]])
    moved = tools.good(
        "kafka-reassign-partitions", "--execute", "--reassignment-json-file", file, "--throttle", "10000000"
    )
    assert json.loads(moved[2])["partitions"][0]["replicas"] == [1, 2]
    assert moved[-2:] == [
        "The inter-broker throttle limit was set to 10000000 B/s",
        f"Successfully started partition reassignments for {topic}-0,{topic}-1",
    ]
    described = tools.good("kafka-configs", "--describe", "--topic", topic)
    assert any("leader.replication.throttled.replicas=0:1,0:2,1:2,1:3" in line for line in described)

    def verified() -> list[str]:
        return tools.good(
            "kafka-reassign-partitions", "--verify", "--reassignment-json-file", file, "--preserve-throttles"
        )

    done = [f"Reassignment of partition {topic}-{index} is completed." for index in (0, 1)]
    eventually(lambda: verified()[1:3] == done, what="the reassignment to be done")
    last = tools.good("kafka-reassign-partitions", "--verify", "--reassignment-json-file", file)
    assert last[-2:] == [
        "Clearing broker-level throttles on brokers 1,2,3",
        f"Clearing topic-level throttles on topic {topic}",
    ]
    assert len(tools.good("kafka-configs", "--describe", "--topic", topic)) < len(described)
    assert [each["Replicas"] for each in partitions(tools, topic)] == ["3,2", "1,3"]
    assert sorted(tools.consume(topic, 200, "--from-beginning"), key=int) == [str(n) for n in range(200)]
    assert tools.good("kafka-reassign-partitions", "--list") == ["No partition reassignments found."]


def test_ongoing_reassignment_is_listed_and_cancelled(
    cluster: Nodes, tools: Tools, topic: str, tmp_path: Path
) -> None:
    create(tools, topic, "1:2")
    # The throttle lets one batch pass, and then none for days.
    tools.produce(topic, ("x" * 900_000 + "\n") * 2)
    file = plan(tmp_path / "plan.json", topic, [[1, 3]])
    slowly = ("--execute", "--reassignment-json-file", file, "--throttle", "1")
    tools.good("kafka-reassign-partitions", *slowly)
    line = f"{topic}-0: replicas: 1,3,2. adding: 3. removing: 2."
    by_controller = ("--bootstrap-controller", cluster.bootstrap_controllers)
    listed = run_tool("kafka-reassign-partitions", *by_controller, "--list")
    assert line in listed.lines
    again = tools.run("kafka-reassign-partitions", *slowly)
    assert again.code == 1
    assert again.out.startswith("Cannot execute because there is an existing partition assignment.")
    cancelled = tools.good("kafka-reassign-partitions", "--cancel", "--reassignment-json-file", file)
    assert cancelled[0] == f"Successfully cancelled partition reassignment for: {topic}-0"
    assert tools.good("kafka-reassign-partitions", "--list") == ["No partition reassignments found."]


def test_replicas_move_between_log_directories(tools: Tools, topic: str, tmp_path: Path) -> None:
    create(tools, topic, "1:2")
    tools.produce(topic, "a\nb\nc\n")
    with AdminClient(tools.bootstrap) as admin:
        found = admin.describe_log_dirs([2])[2]
        here = next(path for path, each in found.items() if any(p.topic == topic for p in each.replicas))
        there = next(path for path in found if path != here)
    file = plan(tmp_path / "plan.json", topic, [[1, 2]], log_dirs=["any", there])
    moved = tools.good("kafka-reassign-partitions", "--execute", "--reassignment-json-file", file)
    assert moved[-1] == (
        f"Successfully started moving log directory to {there} for replica {topic}-0 with broker 2 "
    )
    finished = f"Reassignment of replica {topic}-0-2 completed successfully."

    def verified() -> list[str]:
        return tools.good("kafka-reassign-partitions", "--verify", "--reassignment-json-file", file)

    eventually(lambda: finished in verified(), what="the replica to be in its new directory")
    assert tools.consume(topic, 3, "--from-beginning") == ["a", "b", "c"]


def test_generate_proposes_a_reassignment(tools: Tools, topic: str, tmp_path: Path) -> None:
    create(tools, topic, "1:2,1:2,1:2")
    (tmp_path / "topics.json").write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    file = ("--topics-to-move-json-file", str(tmp_path / "topics.json"))
    printed = tools.good("kafka-reassign-partitions", "--generate", *file, "--broker-list", "1,2,3")
    current, proposed = json.loads(printed[1])["partitions"], json.loads(printed[4])["partitions"]
    assert [each["replicas"] for each in current] == [[1, 2]] * 3
    assert all("any" not in each["log_dirs"] for each in current)
    assert sorted(each["replicas"][0] for each in proposed) == [1, 2, 3]
    assert sorted(broker for each in proposed for broker in each["replicas"]) == [1, 1, 2, 2, 3, 3]
    few = tools.run("kafka-reassign-partitions", "--generate", *file, "--broker-list", "1")
    assert few.code == 1
    assert few.out.startswith("Error: The target replication factor of 2 cannot be reached because only 1")


@pytest.mark.parametrize(
    ("replicas", "sentence"),
    [
        ([[1, 9]], "Error: Unknown broker id 9"),
        ([[1, 1]], "Error: Partition replica lists may not contain duplicate entries: "),
        ([[]], "Error: Partition replica list cannot be empty"),
        ([], "Error: Partition reassignment list cannot be empty"),
        (
            [[1, 2], [1, 2]],
            "Error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Unable to find",
        ),
    ],
)
def test_invalid_reassignments_are_rejected(
    tools: Tools, topic: str, tmp_path: Path, replicas: list[list[int]], sentence: str
) -> None:
    create(tools, topic, "1:2")
    file = plan(tmp_path / "plan.json", topic, replicas)
    done = tools.run("kafka-reassign-partitions", "--execute", "--reassignment-json-file", file)
    assert (done.code, done.out.startswith(sentence)) == (1, True), done


def test_replica_verification_compares_all_replicas(tools: Tools, topic: str) -> None:
    create(tools, topic, "1:2:3,3:2:1")
    tools.produce(topic, "".join(f"{number}\n" for number in range(500)))
    argv = ("--topics-include", topic, "--time", "-2", "--report-interval-ms", "200", "--max-wait-ms", "100")
    checking = subprocess.Popen(
        tool_command("kafka-replica-verification", "--broker-list", tools.bootstrap, *argv),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert checking.stdout is not None
    assert checking.stdout.readline().endswith(": verification process is started\n")
    ends = [line.rpartition(":")[2] for line in tools.offsets(topic)]

    def at_the_end() -> bool:
        assert checking.stdout is not None
        printed = re.search(
            r"max lag is 0 for partition \S+ at offset (\d+) among 2", checking.stdout.readline()
        )
        return printed is not None and printed[1] in ends

    eventually(at_the_end, what="everything to be compared")
    checking.send_signal(signal.SIGINT)
    assert checking.wait(timeout=60) == 130
    checking.stdout.close()


def test_metadata_shell_reads_running_controllers(cluster: Nodes, tools: Tools, topic: str) -> None:
    create(tools, topic, "1:2:3")
    live = ("kafka-metadata-shell", "--controllers", cluster.bootstrap_controllers)
    assert run_tool(*live, "ls", "/").lines == ["image", "local"]
    assert run_tool(*live, "ls", "/brokers").lines == ["1", "2", "3"]
    eventually(lambda: topic in run_tool(*live, "ls", "/topics").lines, what="the topic")
    (line,) = run_tool(*live, "cat", f"/topics/{topic}/0").lines
    assert line.startswith("PartitionRegistration(replicas=[1, 2, 3], directories=[")
    script = f"cd /image/topics/byName/{topic}\npwd\nls\nnope\nexit\n"
    printed = run_tool(*live, stdin=script).lines
    assert printed[2:6] == [f"/image/topics/byName/{topic}", "0", "id", "name"]
    assert printed[6].startswith("invalid choice: 'nope'")


def test_dynamic_broker_configs_apply_to_their_broker_only(cluster: Nodes, tools: Tools) -> None:
    """A broker applies its own configs and no others, whichever node is the active controller."""
    change = AlterableConfig(name="background.threads", config_operation=0, value="12")
    resource = AlterConfigsResource(resource_type=4, resource_name="2", configs=[change])
    with AdminClient(tools.bootstrap) as admin:

        async def ask(node: int) -> tuple[int, str | None]:
            client: AsyncAdminClient = admin.client
            request = IncrementalAlterConfigsRequest(resources=[resource])
            answer = (await client.cluster.ask_node(node, request)).responses[0]
            return answer.error_code, answer.error_message

        assert admin.run(ask(2)) == (ErrorCode.NONE, None)
        assert admin.run(ask(3)) == (
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 3, but received 2",
        )
    eventually(
        lambda: "background.threads=12" in str(tools.good("kafka-configs", "--describe", "--broker", "2"))
    )
    tools.good("kafka-configs", "--alter", "--broker", "2", "--delete-config", "background.threads")


def test_tools_work_while_the_active_controller_fails_over(cluster: Nodes, tools: Tools, topic: str) -> None:
    """The test does not wait: the tools find the new leaders and the new controller."""
    create(tools, topic, "1:2:3,2:3:1,3:1:2")
    tools.produce(
        topic, "".join(f"{number}\tvalue\n" for number in range(90)), "--property", "parse.key=true"
    )
    ends = tools.offsets(topic)
    status = tools.good("kafka-metadata-quorum", "describe", "--status")
    leader = int(status[1].split()[1])
    cluster.kill(leader)
    assert tools.offsets(topic) == ends
    created = tools.good("kafka-topics", "--create", "--topic", f"{topic}-2", "--replication-factor", "2")
    assert f"Created topic {topic}-2." in created
    after = tools.good("kafka-metadata-quorum", "describe", "--status")
    assert int(after[1].split()[1]) != leader
    listed = run_tool(
        "kafka-reassign-partitions", "--bootstrap-controller", cluster.bootstrap_controllers, "--list"
    )
    assert listed.lines == ["No partition reassignments found."]
    cluster.restart(leader)
    eventually(lambda: isr_complete(tools, topic), timeout=60, what="the node to catch up")


def test_tools_report_a_dead_broker_and_elect_preferred_leaders_on_its_return(
    cluster: Nodes, tools: Tools, topic: str, tmp_path: Path
) -> None:
    """This test must be the last one: it kills a broker."""
    create(tools, topic, "2:1,1:3,3:2")
    tools.produce(
        topic, "".join(f"{number}\tvalue\n" for number in range(90)), "--property", "parse.key=true"
    )
    ends = tools.offsets(topic)
    cluster.kill(2)
    eventually(lambda: [each["Leader"] for each in partitions(tools, topic)] == ["1", "1", "3"], timeout=60)

    def reported(which: str) -> list[str]:
        lines = tools.good("kafka-topics", "--describe", "--topic", topic, f"--{which}-partitions")
        return [line.split("\t")[2] for line in lines]

    assert reported("under-replicated") == ["Partition: 0", "Partition: 2"]
    assert reported("unavailable") == []
    assert tools.offsets(topic) == ends
    file = tmp_path / "offsets.json"
    wanted = [{"topic": topic, "partition": index, "offset": 1} for index in range(3)]
    file.write_text(json.dumps({"version": 1, "partitions": wanted}))
    deleted = tools.good("kafka-delete-records", "--offset-json-file", str(file))
    assert [line.partition("\t")[2] for line in deleted[2:]] == ["low_watermark: 1"] * 3
    assert [line.split()[0] for line in tools.good("kafka-cluster", "list-endpoints")[1:]] == ["1", "3"]
    fenced = tools.good("kafka-cluster", "list-endpoints", "--include-fenced-brokers")
    assert [line.split()[4] for line in fenced[1:]] == ["unfenced", "fenced", "unfenced"]
    logs = json.loads(tools.good("kafka-log-dirs", "--describe", "--topic-list", topic)[2])
    assert [broker["broker"] for broker in logs["brokers"]] == [1, 3]
    versions = [line for line in tools.good("kafka-broker-api-versions") if "(id: " in line]
    assert len(versions) == 2
    election = ("--election-type", "preferred", "--topic", topic, "--partition", "0")
    impossible = tools.run("kafka-leader-election", *election)
    assert impossible.code == 1
    assert "PreferredLeaderNotAvailableException" in impossible.out
    assert impossible.err == "1 replica(s) could not be elected\n"
    cluster.restart(2)
    eventually(lambda: isr_complete(tools, topic), timeout=60, what="the broker to catch up")
    elected = tools.good("kafka-leader-election", *election)
    assert elected in (
        [f"Successfully completed leader election (PREFERRED) for partitions {topic}-0"],
        [f"Valid replica already elected for partitions {topic}-0"],
    )
    eventually(lambda: partitions(tools, topic)[0]["Leader"] == "2", what="the preferred leader")
