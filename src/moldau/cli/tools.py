"""The table of Kafka's tools: where each is implemented and what it does.

`moldau <tool>`, the tools' `--help` and `moldau --help` read it. The entry points in `pyproject.toml` repeat
names and functions, because packaging metadata cannot be computed; tests/unit/cli/test_tools.py keeps both
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

RECORDS = "Kafka's tools: topics and records"
GROUPS = "Kafka's tools: groups and transactions"
CLUSTER = "Kafka's tools: cluster"
NODES = "Kafka's tools: nodes and their files"
TESTS = "Kafka's tools: measuring and testing"
SERVICES = "Services: schema registry and REST proxy"
MIRRORING = "Mirroring between clusters"
CONNECT = "Connect"
MONITORING = "Monitoring"


class Tool(NamedTuple):
    """A tool: its module in `moldau.cli`, what it does, its heading in the help, and its function."""

    module: str
    summary: str
    heading: str
    function: str = "main"
    #: The package of the module: `kafka`, or `moldau` for what Apache Kafka does not have.
    package: str = "kafka"

    @property
    def entry_point(self) -> str:
        """The reference that `[project.scripts]` holds."""
        return f"moldau.cli.{self.package}.{self.module}:{self.function}"

    def load(self) -> Callable[[Sequence[str]], int]:
        """Import the tool and return the function that takes its arguments and returns the exit code."""
        function: Callable[[Sequence[str]], int] = getattr(
            import_module(f"moldau.cli.{self.package}.{self.module}"), self.function
        )
        return function


TOOLS: dict[str, Tool] = {
    "kafka-topics": Tool("topics.command", "Create, delete, describe, list and alter topics.", RECORDS),
    "kafka-configs": Tool(
        "configs.command",
        "Describe and alter configurations of topics, brokers, groups, users, clients and IPs.",
        RECORDS,
    ),
    "kafka-console-producer": Tool(
        "console.producer", "Send each line of standard input as a record.", RECORDS
    ),
    "kafka-console-consumer": Tool("console.consumer", "Print the records of topics.", RECORDS),
    "kafka-console-share-consumer": Tool(
        "console.share_consumer", "Print the records of a topic as a member of a share group.", RECORDS
    ),
    "kafka-get-offsets": Tool(
        "get_offsets", "Print offsets of partitions as topic:partition:offset.", RECORDS
    ),
    "kafka-delete-records": Tool(
        "delete_records", "Delete the records of partitions before given offsets.", RECORDS
    ),
    "kafka-consumer-groups": Tool(
        "consumer_groups.command",
        "List, describe and delete consumer groups; reset or delete offsets.",
        GROUPS,
    ),
    "kafka-share-groups": Tool(
        "share_groups.command", "List, describe and delete share groups; reset or delete offsets.", GROUPS
    ),
    "kafka-streams-groups": Tool(
        "streams_groups.command",
        "List, describe and delete streams groups; reset or delete offsets.",
        GROUPS,
    ),
    "kafka-groups": Tool("groups", "List groups of all types.", GROUPS),
    "kafka-transactions": Tool(
        "transactions.command", "List and describe transactions; find and abort hanging ones.", GROUPS
    ),
    "kafka-cluster": Tool(
        "cluster", "Show the cluster id, list the endpoints of a cluster, or unregister a broker.", CLUSTER
    ),
    "kafka-broker-api-versions": Tool(
        "broker_api_versions", "Show the API versions that each broker supports.", CLUSTER
    ),
    "kafka-client-metrics": Tool(
        "client_metrics", "Choose which metrics clients push to the brokers.", CLUSTER
    ),
    "kafka-delegation-tokens": Tool(
        "delegation_tokens", "Create, renew, expire and describe delegation tokens.", CLUSTER
    ),
    "kafka-features": Tool("features.command", "Describe, upgrade, downgrade and disable features.", CLUSTER),
    "kafka-metadata-quorum": Tool(
        "metadata_quorum.command", "Describe the metadata quorum; add and remove controllers.", CLUSTER
    ),
    "kafka-metadata-shell": Tool(
        "metadata_shell.command", "Browse the metadata of a cluster as a tree of files.", CLUSTER
    ),
    "kafka-acls": Tool("acls.command", "Add, remove and list ACLs.", CLUSTER),
    "kafka-leader-election": Tool(
        "leader_election", "Elect preferred or unclean leaders of partitions.", CLUSTER
    ),
    "kafka-reassign-partitions": Tool(
        "reassign_partitions.command",
        "Move replicas of partitions to other brokers or log directories.",
        CLUSTER,
    ),
    "kafka-replica-verification": Tool(
        "replica_verification.command",
        "Verify that all replicas of partitions hold the same batches.",
        CLUSTER,
    ),
    "kafka-storage": Tool("storage", "Format and inspect the log directories of a node.", NODES),
    "kafka-server-start": Tool("server.command", "Start a node from a properties file.", NODES, "start_main"),
    "kafka-server-stop": Tool(
        "server.command", "Stop the nodes that run on this machine.", NODES, "stop_main"
    ),
    "kafka-log-dirs": Tool(
        "log_dirs", "Show the size of each replica in the log directories of brokers.", NODES
    ),
    "kafka-dump-log": Tool(
        "dump_log.command", "Print and verify segments, indexes, snapshots and the metadata log.", NODES
    ),
    "kafka-producer-perf-test": Tool(
        "perf.producer", "Measure the throughput and latency of a producer.", TESTS
    ),
    "kafka-consumer-perf-test": Tool("perf.consumer", "Measure the throughput of a consumer.", TESTS),
    "kafka-e2e-latency": Tool("perf.e2e_latency", "Measure the latency from producer to consumer.", TESTS),
    "kafka-verifiable-producer": Tool(
        "verifiable.producer", "Produce increasing integers and report each result as a line of JSON.", TESTS
    ),
    "kafka-verifiable-consumer": Tool(
        "verifiable.consumer",
        "Consume as a member of a group and report each event as a line of JSON.",
        TESTS,
    ),
    "connect-standalone": Tool(
        "connect.command",
        "Run a Connect worker alone, with connectors from files.",
        CONNECT,
        "standalone_main",
    ),
    "connect-distributed": Tool(
        "connect.command",
        "Run a Connect worker of a group from a properties file.",
        CONNECT,
        "distributed_main",
    ),
    "connect-mirror-maker": Tool(
        "mirror.maker", "Mirror topics and groups between clusters.", MIRRORING, "main", "moldau"
    ),
    "kafka-mirror-maker": Tool(
        "mirror.maker", "Mirror topics and groups between clusters.", MIRRORING, "kafka_main", "moldau"
    ),
    "schema-registry-start": Tool(
        "services.registry",
        "Start a schema registry from a properties file.",
        SERVICES,
        "start_main",
        "moldau",
    ),
    "kafka-rest-start": Tool(
        "services.rest", "Start a REST proxy from a properties file.", SERVICES, "start_main", "moldau"
    ),
}
#: Commands of `moldau` that start without Typer, as tools do.
COMMANDS: dict[str, Tool] = {
    "mirror": Tool(
        "mirror.command",
        "Show the status of mirrors; move consumer groups to the other cluster and back.",
        MIRRORING,
        "main",
        "moldau",
    ),
    "connect": Tool("connect.command", "Run a Connect worker.", CONNECT),
    "registry": Tool("services.registry", "Run a schema registry.", SERVICES, "main", "moldau"),
    "rest": Tool("services.rest", "Run a REST proxy.", SERVICES, "main", "moldau"),
    "console": Tool("services.console", "Run the web console.", MONITORING, "main", "moldau"),
    "lag": Tool(
        "lag.command",
        "Show the lag of consumer groups and judge it by its trend.",
        MONITORING,
        "main",
        "moldau",
    ),
}


def find_tool(name: str) -> Callable[[Sequence[str]], int] | None:
    """Return a tool by Kafka's name, with or without `kafka-` and `.sh`; or a command by its name."""
    full = name.removesuffix(".sh")
    tool = TOOLS.get(full) or TOOLS.get(f"kafka-{full}") or COMMANDS.get(name)
    return None if tool is None else tool.load()
