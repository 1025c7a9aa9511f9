"""kafka-replica-verification: verify continuously that the replicas of partitions hold the same batches."""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition, Uuid
from moldau.cli.shared.arguments import ToolParser, TopicPattern, UsageError
from moldau.cli.shared.connection import COMMAND_CONFIG, load_client_config
from moldau.cli.shared.tool import ToolError, run_tool, warn

if TYPE_CHECKING:
    from moldau.cli.kafka.replica_verification.comparison import ReplicaComparison
    from moldau.client.admin.client import AsyncAdminClient
    from moldau.client.admin.replica_fetch import ReadLimits, ReplicaData
    from moldau.client.admin.topic_types import TopicDescription

#: Delay before the next request to a broker whose replicas could not be read.
_RETRY_SECONDS = 1.0


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-replica-verification")
    parser.option(
        "--broker-list", "HOST:PORT", "REQUIRED: broker(s) to connect to first, as HOST1:PORT1,HOST2:PORT2."
    )
    parser.option("--bootstrap-server", "HOST:PORT", "The same as --broker-list.")
    parser.option("--command-config", "FILE", COMMAND_CONFIG)
    parser.option(
        "--topics-include", "REGEX", "A regular expression for topics; all topics by default.", default=".*"
    )
    parser.hidden("--topic-white-list", dest="topics_include")
    parser.option(
        "--fetch-size",
        "BYTES",
        "Fetch at most this many bytes per partition and request (1048576 by default).",
        type=int,
        default=2**20,
    )
    parser.option(
        "--max-wait-ms",
        "MS",
        "Wait at most this many ms for new records in a fetch (1000 by default).",
        type=int,
        default=1000,
    )
    parser.option(
        "--time",
        "TIME",
        "Start from the first offset at or after this timestamp in ms, from the log end offset with -1 "
        "(the default), or from the log start offset with -2.",
        type=int,
        default=-1,
    )
    parser.option(
        "--report-interval-ms",
        "MS",
        "Report the largest lag every this many ms (30000 by default).",
        type=int,
        default=30_000,
    )
    return parser


def _execute(options: argparse.Namespace) -> None:
    if not (options.broker_list or options.bootstrap_server):
        raise UsageError('Missing required argument "[broker-list]"')
    asyncio.run(_verify(options))


async def _verify(options: argparse.Namespace) -> None:
    from moldau.cli.kafka.replica_verification.comparison import Divergence
    from moldau.client.admin.client import AsyncAdminClient
    from moldau.client.admin.replica_fetch import ReadLimits

    warn("This tool is deprecated and may be removed in a future major release.")
    pattern = TopicPattern(options.topics_include)
    properties = load_client_config(options.command_config)
    properties["bootstrap.servers"] = options.broker_list or options.bootstrap_server
    async with AsyncAdminClient(properties) as admin:
        topics = await _topics(admin, pattern)
        comparison = await _start(admin, topics, options.time)
        _print("verification process is started")
        try:
            await _run(
                admin,
                comparison,
                {topic.name: topic.id for topic in topics},
                ReadLimits(options.fetch_size, options.max_wait_ms),
                options.report_interval_ms / 1000,
            )
        except Divergence as divergence:
            _print(str(divergence))
            raise ToolError("The replicas have different batches.") from divergence


async def _topics(admin: AsyncAdminClient, pattern: TopicPattern) -> list[TopicDescription]:
    from moldau.client.admin.client import checked

    names = [name for name in await admin.list_topics() if pattern.allows(name)]
    if not names:
        raise ToolError(
            "No topics found. [topics-include] if specified, is either filtering out all topics or there is "
            "no topic."
        )
    return list(checked(await admin.describe_topics(names)).values())


async def _start(admin: AsyncAdminClient, topics: Sequence[TopicDescription], time: int) -> ReplicaComparison:
    from moldau.cli.kafka.replica_verification.comparison import ReplicaComparison
    from moldau.client.admin.client import checked

    replicas = {
        TopicPartition(topic.name, each.partition): each.replicas
        for topic in topics
        for each in topic.partitions
    }
    listed = checked(await admin.list_offsets(dict.fromkeys(replicas, time)))
    return ReplicaComparison(replicas, {partition: found.offset for partition, found in listed.items()})


async def _run(
    admin: AsyncAdminClient,
    comparison: ReplicaComparison,
    topic_ids: dict[str, Uuid],
    limits: ReadLimits,
    interval_seconds: float,
) -> None:
    """Fetch and compare replicas until the process is interrupted."""
    reported = monotonic()
    while True:
        mismatches, max_lag = comparison.compare(await _read(admin, comparison, topic_ids, limits))
        for mismatch in mismatches:
            _print(mismatch)
        if monotonic() - reported > interval_seconds:
            _print(
                f"max lag is {max_lag.lag} for partition {max_lag.partition} at offset {max_lag.offset} "
                f"among {len(comparison.replicas)} partitions"
            )
            reported = monotonic()


async def _read(
    admin: AsyncAdminClient, comparison: ReplicaComparison, topic_ids: dict[str, Uuid], limits: ReadLimits
) -> dict[TopicPartition, dict[int, ReplicaData]]:
    """Fetch every replica once; the result lacks those that cannot be fetched."""
    from moldau.client.admin.replica_fetch import read_replica

    wanted: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
    for partition, brokers in comparison.replicas.items():
        for broker in brokers:
            wanted[broker][partition] = comparison.offsets[partition]
    answers = await asyncio.gather(
        *(read_replica(admin.cluster, broker, each, topic_ids, limits) for broker, each in wanted.items()),
        return_exceptions=True,
    )
    found: dict[TopicPartition, dict[int, ReplicaData]] = defaultdict(dict)
    for broker, answer in zip(wanted, answers, strict=True):
        if isinstance(answer, KafkaError):
            await asyncio.sleep(_RETRY_SECONDS)
            continue
        if isinstance(answer, BaseException):
            raise answer
        for partition, data in answer.items():
            if not isinstance(data, KafkaError):
                found[partition][broker] = data
    return found


def _print(message: str) -> None:
    now = datetime.now()
    print(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}: {message}", flush=True)
