"""kafka-log-dirs: show the replicas in the log directories of brokers.

The sizes are those on the disks, as Apache Kafka prints them. Replicas of tiered topics have three more
fields with the offsets at which the tiers begin and end, according to the leader.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.shared.arguments import ToolParser, require
from moldau.cli.shared.connection import add_bootstrap_options, open_admin
from moldau.cli.shared.tiers import TierOffsets, tier_offsets, tiered_topics
from moldau.cli.shared.tool import ToolError, run_tool

if TYPE_CHECKING:
    from moldau.base.ids import TopicPartition
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.nodes import LogDirDescription


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-log-dirs")
    add_bootstrap_options(parser, old_broker_list=False)
    parser.flag("--describe", "REQUIRED: describe the log directories.")
    parser.option(
        "--topic-list", "TOPICS", "Only these topics, as topic1,topic2; all by default.", default=""
    )
    parser.option("--broker-list", "IDS", "Only these brokers, as 0,1,2; all by default.", default="")
    return parser


def _execute(options: argparse.Namespace) -> None:
    require(options, "describe")
    topics = {topic for topic in options.topic_list.split(",") if topic}
    asked = _parse_ids(options.broker_list)
    with open_admin(options, client_id="log-dirs-tool") as admin:
        known = [node.id for node in admin.describe_cluster().nodes]
        unknown = [broker for broker in asked if broker not in known]
        if unknown:
            raise ToolError(
                f"ERROR: The given brokers do not exist from --broker-list: {_joined(unknown)}. "
                f"Current existent brokers: {_joined(known)}"
            )
        print("Querying brokers for log directories information")
        found = admin.describe_log_dirs(asked or known)
        print(f"Received log directory information from brokers {_joined(asked or known)}")
        tiers = _tiers(admin, found, topics)
        print(json.dumps(_as_json(found, topics, tiers), separators=(",", ":"), ensure_ascii=False))


def _parse_ids(text: str) -> list[int]:
    try:
        return [int(item) for item in text.split(",") if item]
    except ValueError:
        raise ToolError(f"--broker-list must be a list of broker ids such as 0,1,2, not {text!r}") from None


def _joined(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _tiers(
    admin: AdminClient, found: dict[int, dict[str, LogDirDescription]], topics: Collection[str]
) -> dict[TopicPartition, TierOffsets]:
    """Return the offsets of the tiers of those replicas whose topics are tiered."""
    partitions = {
        partition
        for directories in found.values()
        for directory in directories.values()
        for partition in directory.replicas
        if not topics or partition.topic in topics
    }
    tiered = tiered_topics(admin, sorted({partition.topic for partition in partitions}))
    return tier_offsets(admin, sorted(partition for partition in partitions if partition.topic in tiered))


def _as_json(
    found: dict[int, dict[str, LogDirDescription]],
    topics: Collection[str],
    tiers: dict[TopicPartition, TierOffsets],
) -> dict[str, Any]:
    return {
        "brokers": [
            {
                "broker": broker,
                "logDirs": [
                    _directory(path, directory, topics, tiers) for path, directory in directories.items()
                ],
            }
            for broker, directories in found.items()
        ],
        "version": 1,
    }


def _directory(
    path: str,
    directory: LogDirDescription,
    topics: Collection[str],
    tiers: dict[TopicPartition, TierOffsets],
) -> dict[str, Any]:
    return {
        "partitions": [
            {
                "partition": str(partition),
                "size": replica.size,
                "offsetLag": replica.offset_lag,
                "isFuture": replica.future,
                **_tier_fields(tiers.get(partition)),
            }
            for partition, replica in directory.replicas.items()
            if not topics or partition.topic in topics
        ],
        "error": directory.error.code.name if directory.error is not None else None,
        "logDir": path,
    }


def _tier_fields(tiers: TierOffsets | None) -> dict[str, int]:
    if tiers is None:
        return {}
    return {
        "earliestOffset": tiers.earliest,
        "earliestLocalOffset": tiers.earliest_local,
        "latestTieredOffset": tiers.latest_tiered,
    }
