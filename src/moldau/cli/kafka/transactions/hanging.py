"""`kafka-transactions find-hanging`: open transactions on partitions that no coordinator will complete.

A partition reports its producers with open transactions (DescribeProducers). A transaction is hanging if it
is older than the highest transaction timeout and its coordinator does not list the partition as part of it
(DescribeTransactions): the partition will never receive a marker.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.shared.java import print_columns
from moldau.cli.shared.tool import ToolError, attempt

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.transactions import ProducerDescription

T = TypeVar("T")

#: Topics and partitions per request, so that requests are bounded.
BATCH = 500
HEADER = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)


class OpenTransaction(NamedTuple):
    partition: TopicPartition
    producer: ProducerDescription


def find_hanging(admin: AdminClient, options: argparse.Namespace) -> None:
    if options.topic is None and options.broker_id is None:
        raise ToolError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the "
            "search"
        )
    if options.partition is not None and options.topic is None:
        raise ToolError("The --partition argument requires --topic to be provided")
    partitions = _partitions(admin, options)
    old = list(_older(admin, partitions, options.broker_id, options.max_transaction_timeout * 60_000))
    hanging = _hanging(admin, old) if old else []
    now_ms = time.time_ns() // 1_000_000
    rows = [
        (
            *partition,
            producer.producer_id,
            producer.producer_epoch,
            producer.coordinator_epoch,
            producer.transaction_start_offset,
            producer.last_timestamp,
            (now_ms - producer.last_timestamp) // 60_000,
        )
        for partition, producer in hanging
    ]
    print_columns(HEADER, [[str(cell) for cell in row] for row in rows])


def _partitions(admin: AdminClient, options: argparse.Namespace) -> list[TopicPartition]:
    from moldau.client.admin.client import checked

    if options.partition is not None:
        return [TopicPartition(options.topic, options.partition)]
    topics = [options.topic] if options.topic is not None else list(admin.list_topics())
    found: list[TopicPartition] = []
    for names in _pieces(topics):
        asked = partial(admin.describe_topics, names)
        described = checked(attempt(f"Failed to describe {len(names)} topics", asked))
        found += [
            TopicPartition(topic.name, partition.partition)
            for topic in described.values()
            for partition in topic.partitions
            if options.broker_id is None or options.broker_id in partition.replicas
        ]
    return found


def _older(
    admin: AdminClient, partitions: Sequence[TopicPartition], broker: int | None, age_ms: int
) -> Iterator[OpenTransaction]:
    from moldau.client.admin.client import checked

    for piece in _pieces(partitions):
        asked = partial(admin.describe_producers, piece, broker=broker)
        producers = checked(attempt(f"Failed to describe producers for {len(piece)} partitions", asked))
        now_ms = time.time_ns() // 1_000_000
        for partition, active in producers.items():
            for producer in active:
                if producer.transaction_start_offset >= 0 and now_ms - producer.last_timestamp > age_ms:
                    yield OpenTransaction(partition, producer)


def _hanging(admin: AdminClient, old: Sequence[OpenTransaction]) -> list[OpenTransaction]:
    ids = {each.producer.producer_id for each in old}
    listed = attempt(
        f"Failed to list transactions for {len(ids)} producers",
        lambda: admin.list_transactions(producer_ids=ids),
    )
    names = {each.producer_id: each.transactional_id for each in listed if each.producer_id in ids}
    ongoing = _ongoing(admin, names.values())
    return [
        each
        for each in old
        if each.partition not in ongoing.get(names.get(each.producer.producer_id, ""), frozenset())
    ]


def _ongoing(admin: AdminClient, names: Iterable[str]) -> dict[str, frozenset[TopicPartition]]:
    """Return the partitions of each transaction that will still receive a marker from the coordinator."""
    found: dict[str, frozenset[TopicPartition]] = {}
    for name, result in admin.describe_transactions(list(names)).items():
        if not isinstance(result, KafkaError):
            found[name] = frozenset(result.partitions)
        elif result.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise ToolError(f"Failed to describe transaction `{name}`: {result.message or result}")
    return found


def _pieces(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for begin in range(0, len(items), BATCH):
        yield items[begin : begin + BATCH]
