"""kafka-replica-verification: check again and again that the replicas of partitions hold the same."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition, Uuid
from moldau.cli.shared.arguments import ToolParser, UsageError
from moldau.cli.shared.patterns import TopicPattern
from moldau.cli.shared.tool import ToolError, run_tool, warn

if TYPE_CHECKING:
    from moldau.cli.kafka.replica_verification.comparison import ReplicaComparison
    from moldau.client.admin.client import AsyncAdminClient
    from moldau.client.admin.replica_fetch import ReadLimits, ReplicaData
    from moldau.client.admin.topic_types import TopicDescription

#: Before a broker that cannot be read is asked again.
_PAUSE_SECONDS = 1.0


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-replica-verification", "Check that all replicas of topics hold the same.")
    parser.option("--broker-list", "HOST:PORT", "REQUIRED: brokers, as HOST1:PORT1,HOST2:PORT2.")
    parser.option("--bootstrap-server", "HOST:PORT", "The same.")
    parser.option("--topics-include", "REGEX", "Only these topics; all if not given.", default=".*")
    parser.hidden("--topic-white-list", dest="topics_include")
    parser.option("--fetch-size", "BYTES", "Bytes of one partition to read at once.", type=int, default=2**20)
    parser.option("--max-wait-ms", "MS", "How long a read waits for new records.", type=int, default=1000)
    parser.option(
        "--time",
        "TIME",
        "Where to begin: a timestamp in milliseconds, -1 for the end (if not given), -2 for the beginning.",
        type=int,
        default=-1,
    )
    parser.option("--report-interval-ms", "MS", "How often to report.", type=int, default=30_000)
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
    async with AsyncAdminClient(options.broker_list or options.bootstrap_server) as admin:
        topics = await _topics(admin, pattern)
        comparison = await _begin(admin, topics, options.time)
        _say("verification process is started")
        try:
            await _run(
                admin,
                comparison,
                {topic.name: topic.id for topic in topics},
                ReadLimits(options.fetch_size, options.max_wait_ms),
                options.report_interval_ms / 1000,
            )
        except Divergence as divergence:
            _say(str(divergence))
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


async def _begin(admin: AsyncAdminClient, topics: Sequence[TopicDescription], when: int) -> ReplicaComparison:
    from moldau.cli.kafka.replica_verification.comparison import ReplicaComparison
    from moldau.client.admin.client import checked

    replicas = {
        TopicPartition(topic.name, each.partition): each.replicas
        for topic in topics
        for each in topic.partitions
    }
    listed = checked(await admin.list_offsets(dict.fromkeys(replicas, when)))
    return ReplicaComparison(replicas, {partition: found.offset for partition, found in listed.items()})


async def _run(
    admin: AsyncAdminClient,
    comparison: ReplicaComparison,
    topic_ids: dict[str, Uuid],
    limits: ReadLimits,
    interval_seconds: float,
) -> None:
    """Until somebody ends it."""
    reported = time.monotonic()
    while True:
        sentences, worst = comparison.compare(await _read(admin, comparison, topic_ids, limits))
        for sentence in sentences:
            _say(sentence)
        if time.monotonic() - reported > interval_seconds:
            _say(
                f"max lag is {worst.lag} for partition {worst.partition} at offset {worst.offset} among "
                f"{len(comparison.replicas)} partitions"
            )
            reported = time.monotonic()


async def _read(
    admin: AsyncAdminClient, comparison: ReplicaComparison, topic_ids: dict[str, Uuid], limits: ReadLimits
) -> dict[TopicPartition, dict[int, ReplicaData]]:
    """One read of every replica; one that cannot be read is missing."""
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
            await asyncio.sleep(_PAUSE_SECONDS)
            continue
        if isinstance(answer, BaseException):
            raise answer
        for partition, data in answer.items():
            if not isinstance(data, KafkaError):
                found[partition][broker] = data
    return found


def _say(sentence: str) -> None:
    now = datetime.now()
    print(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}: {sentence}", flush=True)
