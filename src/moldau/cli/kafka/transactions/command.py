"""kafka-transactions: list and describe transactions and their producers; find and abort hanging ones."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from moldau.base.ids import TopicPartition
from moldau.cli.kafka.transactions.hanging import find_hanging
from moldau.cli.shared.arguments import ToolParser
from moldau.cli.shared.connection import add_bootstrap_options, bootstrap_servers, open_admin
from moldau.cli.shared.java import print_columns
from moldau.cli.shared.tool import ToolError, attempt, run_tool

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-transactions")
    add_bootstrap_options(parser)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=ToolParser
    )
    _add_queries(commands)
    _add_aborts(commands)
    return parser


def _add_queries(commands: argparse._SubParsersAction[ToolParser]) -> None:
    listing = _command(commands, "list", "List transactional ids and the state of their transactions.")
    listing.option(
        "--duration-filter", "MS", "Only transactions that have run longer than this many ms.", type=int
    )
    listing.option(
        "--transactional-id-pattern", "REGEX", "Only transactional ids that match this RE2 expression."
    )
    describing = _command(commands, "describe", "Describe the state of a transactional id.")
    describing.option("--transactional-id", "ID", "The transactional id.", required=True)
    producers = _command(commands, "describe-producers", "Describe the active producers of a partition.")
    producers.option(
        "--broker-id", "ID", "Describe the replica on this broker instead of the leader.", type=int
    )
    _add_partition(producers, required=True)
    finding = _command(commands, "find-hanging", "Find hanging transactions.")
    finding.option("--broker-id", "ID", "Search the partitions of this broker.", type=int)
    finding.option(
        "--max-transaction-timeout",
        "MINUTES",
        "The highest transaction timeout in use, in minutes; younger transactions are not hanging "
        "(15 by default).",
        type=int,
        default=15,
    )
    _add_partition(finding, required=False)


def _add_aborts(commands: argparse._SubParsersAction[ToolParser]) -> None:
    aborting = _command(commands, "abort", "Abort a hanging transaction on a partition.")
    _add_partition(aborting, required=True)
    aborting.option("--start-offset", "OFFSET", "The start offset of the transaction.", type=int)
    aborting.option("--producer-id", "ID", "For brokers before 3.0: the producer id.", type=int)
    aborting.option("--producer-epoch", "EPOCH", "For brokers before 3.0: the producer epoch.", type=int)
    aborting.option(
        "--coordinator-epoch", "EPOCH", "For brokers before 3.0: the coordinator epoch.", type=int
    )
    forcing = _command(
        commands,
        "forceTerminateTransaction",
        "Abort the ongoing transaction of a transactional id and fence its producer.",
    )
    forcing.option("--transactionalId", "ID", "The transactional id.", required=True)


def _command(commands: argparse._SubParsersAction[ToolParser], name: str, text: str) -> ToolParser:
    return commands.add_parser(name, description=text, help=text)


def _add_partition(parser: ToolParser, *, required: bool) -> None:
    parser.option("--topic", "TOPIC", "The topic.", required=required)
    parser.option("--partition", "ID", "The partition.", type=int, required=required)


def _execute(options: argparse.Namespace) -> None:
    bootstrap_servers(options)
    with open_admin(options) as admin:
        _COMMANDS[options.command](admin, options)


def _list(admin: AdminClient, options: argparse.Namespace) -> None:
    duration = -1 if options.duration_filter is None else options.duration_filter
    listed = attempt(
        "Failed to list transactions",
        lambda: admin.list_transactions(longer_than_ms=duration, pattern=options.transactional_id_pattern),
    )
    print_columns(
        ("TransactionalId", "Coordinator", "ProducerId", "TransactionState"),
        [
            (each.transactional_id, str(each.coordinator), str(each.producer_id), each.state)
            for each in listed
        ],
    )


def _describe(admin: AdminClient, options: argparse.Namespace) -> None:
    from moldau.client.admin.client import checked

    name = options.transactional_id
    found = attempt(
        f"Failed to describe transaction state of transactional-id `{name}`",
        lambda: checked(admin.describe_transactions([name]))[name],
    )
    began = found.start_ms if found.start_ms >= 0 else None
    now_ms = time.time_ns() // 1_000_000
    row = {
        "CoordinatorId": found.coordinator,
        "TransactionalId": name,
        "ProducerId": found.producer_id,
        "ProducerEpoch": found.producer_epoch,
        "TransactionState": found.state,
        "TransactionTimeoutMs": found.timeout_ms,
        "CurrentTransactionStartTimeMs": began,
        "TransactionDurationMs": None if began is None else now_ms - began,
        "TopicPartitions": ",".join(map(str, found.partitions)),
    }
    print_columns(list(row), [[str(value) for value in row.values()]])


def _describe_producers(admin: AdminClient, options: argparse.Namespace) -> None:
    from moldau.client.admin.client import checked

    partition, broker = TopicPartition(options.topic, options.partition), options.broker_id
    where = "leader" if broker is None else f"broker {broker}"
    producers = attempt(
        f"Failed to describe producers for partition {partition} on {where}",
        lambda: checked(admin.describe_producers([partition], broker=broker))[partition],
    )
    header = (
        "ProducerId",
        "ProducerEpoch",
        "LatestCoordinatorEpoch",
        "LastSequence",
        "LastTimestamp",
        "CurrentTransactionStartOffset",
    )
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp,
            None if each.transaction_start_offset < 0 else each.transaction_start_offset,
        )
        for each in producers
    ]
    print_columns(header, [[str(cell) for cell in row] for row in rows])


def _abort(admin: AdminClient, options: argparse.Namespace) -> None:
    partition = TopicPartition(options.topic, options.partition)
    if options.start_offset is None and options.producer_id is None:
        raise ToolError(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or "
            "above) or with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    if options.start_offset is not None:
        producer = _transaction_at(admin, partition, options.start_offset)
    else:
        for name in ("producer_epoch", "coordinator_epoch"):
            if getattr(options, name) is None:
                raise ToolError(f"Missing required argument --{name.replace('_', '-')}")
        producer = (options.producer_id, options.producer_epoch, options.coordinator_epoch)
    producer_id, epoch, coordinator_epoch = producer
    # A producer whose first transaction hangs has no coordinator epoch yet; 0 is lower than every valid one.
    attempt(
        f"Failed to abort transaction on {partition} of producer {producer_id}",
        lambda: admin.abort_transaction(partition, producer_id, epoch, max(coordinator_epoch, 0)),
    )


def _transaction_at(admin: AdminClient, partition: TopicPartition, offset: int) -> tuple[int, int, int]:
    from moldau.client.admin.client import checked

    producers = attempt(
        f"Failed to validate producer state for partition {partition}",
        lambda: checked(admin.describe_producers([partition]))[partition],
    )
    for producer in producers:
        if producer.transaction_start_offset == offset:
            return producer.producer_id, producer.producer_epoch, producer.coordinator_epoch
    raise ToolError(
        f"Could not find any open transactions starting at offset {offset} on partition {partition}"
    )


def _force(admin: AdminClient, options: argparse.Namespace) -> None:
    from moldau.client.admin.client import checked

    name = options.transactionalId
    attempt(
        f"Failed to force terminate transactionalId `{name}`",
        lambda: checked(admin.fence_producers([name])),
    )


_COMMANDS: dict[str, Callable[[AdminClient, argparse.Namespace], None]] = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "find-hanging": find_hanging,
    "abort": _abort,
    "forceTerminateTransaction": _force,
}
