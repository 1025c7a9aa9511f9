"""Moldau's tools and Apache Kafka's Java tools, run with the same command lines against the same broker.

Output and exit codes must be equal after names, ids and times are replaced. Intended differences: help and
usage (Moldau's are shorter), stack traces (Moldau prints none), and improved messages. If a command fails,
the first sentence of Moldau's tool must be part of the output of the Java tool.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster, java_command
from tests.harness.apache.nodes import ApacheNodes
from tests.harness.tools import ToolRun, run_tool

JAVA_TOOLS = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
}
LOGGING = """\
rootLogger.level = ERROR
rootLogger.appenderRef.err.ref = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %m%n
"""
Node = Cluster | ApacheCluster | ApacheNodes


class Both(NamedTuple):
    ours: ToolRun
    java: ToolRun


class Tools:
    """Runs a command line with both tools; `{topic}` stands for a separate topic of each tool."""

    def __init__(self, node: Node, libs: Path, folder: Path) -> None:
        self.node = node
        self._libs = libs
        self._logging = folder / "log4j2.properties"
        self._logging.write_text(LOGGING)

    def run(
        self, name: str, *argv: str, topic: str = "shared", stdin: str = "", bootstrap: bool = True
    ) -> Both:
        address = ["--bootstrap-server", self.node.bootstrap_servers] if bootstrap else []
        if name == "kafka-cluster":
            argv, address = (argv[0], *address, *argv[1:]), []
        command = [*address, *argv]
        ours = [word.format(topic=f"{topic}-ours") if "{topic}" in word else word for word in command]
        java = [word.format(topic=f"{topic}-java") if "{topic}" in word else word for word in command]
        return Both(
            self._alike(run_tool(name, *ours, stdin=stdin)), self._alike(self._java(name, java, stdin))
        )

    def _java(self, name: str, argv: list[str], stdin: str) -> ToolRun:
        command = java_command(self._libs, JAVA_TOOLS[name], *argv)
        command.insert(1, f"-Dlog4j2.configurationFile={self._logging}")
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, check=False)
        return ToolRun(done.returncode, done.stdout, done.stderr)

    def _alike(self, run: ToolRun) -> ToolRun:
        return ToolRun(run.code, alike(run.out), alike(run.err))

    def same(
        self, name: str, *argv: str, topic: str = "shared", stdin: str = "", bootstrap: bool = True
    ) -> str:
        """Require that both succeed with the same output, and return it."""
        both = self.run(name, *argv, topic=topic, stdin=stdin, bootstrap=bootstrap)
        assert (both.ours.code, both.java.code) == (0, 0), both
        assert both.ours.out == both.java.out
        return both.ours.out

    def create(self, topic: str, partitions: int = 1) -> None:
        create = ("--create", "--topic", "{topic}", "--partitions", str(partitions))
        self.same("kafka-topics", *create, topic=topic)

    def same_lines(self, name: str, *argv: str, topic: str = "shared") -> list[str]:
        """Require that both succeed with the same lines in any order, and return them."""
        both = self.run(name, *argv, topic=topic)
        assert (both.ours.code, both.java.code) == (0, 0), both
        assert sorted(both.ours.lines) == sorted(both.java.lines)
        return both.ours.lines

    def same_error(self, name: str, *argv: str, topic: str = "shared") -> str:
        """Require that both exit with 0 and print the same error to standard output, and return it."""
        both = self.run(name, *argv, topic=topic)
        assert (both.ours.code, both.java.code) == (0, 0), both
        errors = [[line for line in run.lines if line.startswith("Error: ")] for run in both]
        assert len(errors[0]) == 1
        assert errors[0] == errors[1]
        return errors[0][0]

    def same_failure(self, name: str, *argv: str, topic: str = "shared", bootstrap: bool = True) -> None:
        """Require that both fail, and that the output of the Java tool contains our first sentence."""
        both = self.run(name, *argv, topic=topic, bootstrap=bootstrap)
        assert both.ours.code == both.java.code != 0, both
        sentence = (both.ours.out + both.ours.err).strip().splitlines()[0]
        assert sentence in both.java.out + both.java.err


def alike(text: str) -> str:
    text = re.sub(r"-(ours|java)\b", "-x", text)
    text = re.sub(r"TopicId: \S+", "TopicId: ID", text)
    # The metadata log grows while the other tool starts.
    text = re.sub(r"Epoch: \d+$", "Epoch: N", text, flags=re.MULTILINE)
    text = re.sub(r"((?:HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs): +)-?\d+", r"\1N", text)
    return re.sub(r"(CreateTime|LogAppendTime):\d+", r"\1:TIME", text)
