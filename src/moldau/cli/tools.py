"""The table of Kafka's tools: where each is implemented and what it does.

`moldau <tool>`, the tools' `--help` and `moldau --help` read it. The entry points in `pyproject.toml` repeat
names and functions, because packaging metadata cannot be computed; tests/unit/cli/test_tools.py keeps both
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple


class Tool(NamedTuple):
    """A tool: its module below `moldau.cli.kafka`, the function that runs it, and what it does."""

    module: str
    summary: str
    function: str = "main"

    @property
    def entry_point(self) -> str:
        """The reference that `[project.scripts]` holds."""
        return f"moldau.cli.kafka.{self.module}:{self.function}"

    def load(self) -> Callable[[Sequence[str]], int]:
        """Import the tool and return the function that takes its arguments and returns the exit code."""
        function: Callable[[Sequence[str]], int] = getattr(
            import_module(f"moldau.cli.kafka.{self.module}"), self.function
        )
        return function


TOOLS: dict[str, Tool] = {
    "kafka-topics": Tool("topics.command", "Create, delete, describe, list and alter topics."),
    "kafka-configs": Tool(
        "configs.command",
        "Describe and alter configurations of topics, brokers, groups, users, clients and IPs.",
    ),
    "kafka-console-producer": Tool("console.producer", "Send each line of standard input as a record."),
    "kafka-console-consumer": Tool("console.consumer", "Print the records of topics."),
    "kafka-console-share-consumer": Tool(
        "console.share_consumer", "Print the records of a topic as a member of a share group."
    ),
    "kafka-get-offsets": Tool("get_offsets", "Print offsets of partitions as topic:partition:offset."),
    "kafka-delete-records": Tool("delete_records", "Delete the records of partitions before given offsets."),
    "kafka-dump-log": Tool(
        "dump_log.command", "Print and verify segments, indexes, snapshots and the metadata log."
    ),
    "kafka-log-dirs": Tool("log_dirs", "Show the size of each replica in the log directories of brokers."),
    "kafka-cluster": Tool(
        "cluster", "Show the cluster id, list the endpoints of a cluster, or unregister a broker."
    ),
    "kafka-broker-api-versions": Tool(
        "broker_api_versions", "Show the API versions that each broker supports."
    ),
    "kafka-leader-election": Tool("leader_election", "Elect preferred or unclean leaders of partitions."),
    "kafka-reassign-partitions": Tool(
        "reassign_partitions.command", "Move replicas of partitions to other brokers or log directories."
    ),
    "kafka-replica-verification": Tool(
        "replica_verification.command", "Verify that all replicas of partitions hold the same batches."
    ),
    "kafka-metadata-quorum": Tool(
        "metadata_quorum.command", "Describe the metadata quorum; add and remove controllers."
    ),
    "kafka-metadata-shell": Tool(
        "metadata_shell.command", "Browse the metadata of a cluster as a tree of files."
    ),
    "kafka-features": Tool("features.command", "Describe, upgrade, downgrade and disable features."),
    "kafka-producer-perf-test": Tool("perf.producer", "Measure the throughput and latency of a producer."),
    "kafka-consumer-perf-test": Tool("perf.consumer", "Measure the throughput of a consumer."),
    "kafka-e2e-latency": Tool("perf.e2e_latency", "Measure the latency from producer to consumer."),
    "kafka-consumer-groups": Tool(
        "consumer_groups.command",
        "List, describe and delete consumer groups; reset or delete offsets.",
    ),
    "kafka-share-groups": Tool(
        "share_groups.command", "List, describe and delete share groups; reset or delete offsets."
    ),
    "kafka-groups": Tool("groups", "List groups of all types."),
    "kafka-transactions": Tool(
        "transactions.command", "List and describe transactions; find and abort hanging ones."
    ),
    "kafka-verifiable-producer": Tool(
        "verifiable.producer", "Produce increasing integers and report each result as a line of JSON."
    ),
    "kafka-verifiable-consumer": Tool(
        "verifiable.consumer", "Consume as a member of a group and report each event as a line of JSON."
    ),
    "kafka-storage": Tool("storage", "Format and inspect the log directories of a node."),
    "kafka-server-start": Tool("server.command", "Start a node from a properties file.", "start_main"),
    "kafka-server-stop": Tool("server.command", "Stop the nodes that run on this machine.", "stop_main"),
}


def find_tool(name: str) -> Callable[[Sequence[str]], int] | None:
    """Return a tool by Kafka's name, with or without the prefix `kafka-` and the suffix `.sh`."""
    full = name.removesuffix(".sh")
    tool = TOOLS.get(full) or TOOLS.get(f"kafka-{full}")
    return None if tool is None else tool.load()
