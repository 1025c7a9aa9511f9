"""`moldau`: one command for everything; the tools with Kafka's names are its subcommands too.

Typer is only loaded for the commands a person reads. A Kafka tool goes straight to its own parser, so
`moldau topics --list` starts as quickly as `kafka-topics --list`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

#: Kafka's name of a tool -> module of `moldau.cli`, function, what it does.
TOOLS: dict[str, tuple[str, str, str]] = {
    "kafka-topics": ("kafka.topics.command", "main", "Create, list, describe, alter and delete topics."),
    "kafka-configs": ("kafka.configs.command", "main", "Show and change configurations."),
    "kafka-console-producer": ("kafka.console.producer", "main", "Send lines as records."),
    "kafka-console-consumer": ("kafka.console.consumer", "main", "Print records."),
    "kafka-console-share-consumer": (
        "kafka.console.share_consumer",
        "main",
        "Print records of a share group.",
    ),
    "kafka-get-offsets": ("kafka.get_offsets", "main", "Show offsets of partitions."),
    "kafka-delete-records": ("kafka.delete_records", "main", "Delete records up to an offset."),
    "kafka-dump-log": ("kafka.dump_log.command", "main", "Print and check files of a log."),
    "kafka-log-dirs": ("kafka.log_dirs", "main", "Show what lies in log directories."),
    "kafka-cluster": ("kafka.cluster", "main", "Show the id and the endpoints of a cluster."),
    "kafka-broker-api-versions": ("kafka.broker_api_versions", "main", "Show the API versions of brokers."),
    "kafka-leader-election": ("kafka.leader_election", "main", "Elect leaders of partitions."),
    "kafka-reassign-partitions": (
        "kafka.reassign_partitions.command",
        "main",
        "Move partitions between brokers and disks.",
    ),
    "kafka-replica-verification": (
        "kafka.replica_verification.command",
        "main",
        "Check that replicas hold the same.",
    ),
    "kafka-metadata-quorum": (
        "kafka.metadata_quorum.command",
        "main",
        "Show and change the metadata quorum.",
    ),
    "kafka-metadata-shell": ("kafka.metadata_shell.command", "main", "Browse the metadata like a file tree."),
    "kafka-features": ("kafka.features.command", "main", "Show and change the features of a cluster."),
    "kafka-producer-perf-test": ("kafka.perf.producer", "main", "Measure producing."),
    "kafka-consumer-perf-test": ("kafka.perf.consumer", "main", "Measure consuming."),
    "kafka-consumer-groups": (
        "kafka.consumer_groups.command",
        "main",
        "List, describe, delete and reset consumer groups.",
    ),
    "kafka-share-groups": (
        "kafka.share_groups.command",
        "main",
        "List, describe, delete and reset share groups.",
    ),
    "kafka-groups": ("kafka.groups", "main", "List groups of all kinds."),
    "kafka-transactions": (
        "kafka.transactions.command",
        "main",
        "Look at transactions and end hanging ones.",
    ),
    "kafka-verifiable-producer": (
        "kafka.verifiable.producer",
        "main",
        "Produce numbers, told as JSON.",
    ),
    "kafka-verifiable-consumer": (
        "kafka.verifiable.consumer",
        "main",
        "Consume in a group, told as JSON.",
    ),
    "kafka-e2e-latency": ("kafka.perf.e2e_latency", "main", "Measure the time from producer to consumer."),
    "kafka-storage": ("kafka.storage", "main", "Format and inspect the folders of a node."),
    "kafka-server-start": ("kafka.server.command", "start_main", "Start a node."),
    "kafka-server-stop": ("kafka.server.command", "stop_main", "Stop the nodes of this machine."),
}

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        tool = find_tool(arguments[0]) if arguments else None
        if tool is not None:
            return tool(arguments[1:])
        from moldau.cli.moldau.commands import run

        return run(arguments)
    except KeyboardInterrupt:
        # Ctrl-C while modules are still being imported.
        return _INTERRUPTED


def find_tool(name: str) -> Callable[[Sequence[str]], int] | None:
    """A tool by Kafka's name, also without `kafka-` in front or `.sh` behind."""
    full = name.removesuffix(".sh")
    entry = TOOLS.get(full) or TOOLS.get(f"kafka-{full}")
    if entry is None:
        return None
    module, function, _ = entry
    tool: Callable[[Sequence[str]], int] = getattr(import_module(f"moldau.cli.{module}"), function)
    return tool


if __name__ == "__main__":
    sys.exit(main())
