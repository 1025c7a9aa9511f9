"""kafka-verifiable-consumer: a member of a group that prints assignments, records and commits as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.console.reading import poll_batch
from moldau.cli.shared.arguments import ToolParser, UsageError, require
from moldau.cli.shared.connection import add_bootstrap_options, bootstrap_servers, load_client_config
from moldau.cli.shared.json_io import print_event
from moldau.cli.shared.librdkafka import ReportOnce, check_reachable, describe_error, open_consumer
from moldau.cli.shared.tool import interrupted_by_sigterm, run_tool

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

PROTOCOLS = ("classic", "consumer")
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"
POLL_SECONDS = 0.2
BATCH = 500


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-verifiable-consumer")
    add_bootstrap_options(parser)
    parser.option("--topic", "TOPIC", "REQUIRED: the topic to consume.")
    parser.option("--group-id", "GROUP", "REQUIRED: the group to join.")
    parser.option(
        "--group-protocol", "PROTOCOL", "classic or consumer (classic by default).", default="classic"
    )
    parser.option("--group-remote-assignor", "NAME", "The server-side assignor of the consumer protocol.")
    parser.option("--group-instance-id", "ID", "Join as a static member with this group.instance.id.")
    parser.option(
        "--max-messages", "COUNT", "Exit after this many records; -1 for no limit.", type=int, default=-1
    )
    parser.option("--session-timeout", "MS", "The session timeout in ms, in the classic protocol.", type=int)
    parser.flag("--verbose", "Print each record.")
    parser.flag("--enable-autocommit", "Commit offsets automatically.")
    parser.option(
        "--reset-policy",
        "POLICY",
        "auto.offset.reset: earliest, latest or none (earliest by default).",
        default="earliest",
    )
    parser.option(
        "--assignment-strategy",
        "CLASS",
        "The assignor of the classic protocol (RangeAssignor by default).",
        default=RANGE,
    )
    parser.option("--consumer.config", "FILE", "DEPRECATED: use --command-config.")
    return parser


def _execute(options: argparse.Namespace) -> None:
    require(options, "topic", "group-id")
    properties = _properties(options)
    check_reachable(properties, options.topic)
    report = ReportOnce()
    Run(options, open_consumer(properties, error_cb=report)).consume()


def _properties(options: argparse.Namespace) -> dict[str, str]:
    older = getattr(options, "consumer.config")
    if older is not None and options.command_config is not None:
        raise UsageError("Options --consumer.config and --command-config are mutually exclusive.")
    if older is not None:
        print("Option --consumer.config is deprecated. Use --command-config instead.")
    properties = load_client_config(older or options.command_config)
    protocol = options.group_protocol.lower()
    if protocol not in PROTOCOLS:
        raise UsageError(f"--group-protocol: {options.group_protocol} is not one of {', '.join(PROTOCOLS)}")
    properties["group.protocol"] = protocol
    if protocol == "classic":
        properties["partition.assignment.strategy"] = options.assignment_strategy
    for name, value in (
        ("group.remote.assignor", options.group_remote_assignor if protocol == "consumer" else None),
        ("session.timeout.ms", options.session_timeout),
        ("group.instance.id", options.group_instance_id),
        ("group.id", options.group_id),
        ("bootstrap.servers", bootstrap_servers(options)),
        ("enable.auto.commit", str(options.enable_autocommit).lower()),
        ("auto.offset.reset", "error" if options.reset_policy == "none" else options.reset_policy),
    ):
        if value is not None:
            properties[name] = str(value)
    return properties


class Run:
    """Consumes until --max-messages or a signal."""

    def __init__(self, options: argparse.Namespace, consumer: Consumer) -> None:
        self._options = options
        self._consumer = consumer
        self._left = options.max_messages

    def consume(self) -> None:
        print_event("startup_complete")
        interrupted = False
        self._consumer.subscribe(
            [self._options.topic],
            on_assign=lambda _, partitions: _print_partitions("partitions_assigned", partitions),
            on_revoke=lambda _, partitions: _print_partitions("partitions_revoked", partitions),
        )
        try:
            with interrupted_by_sigterm():
                while self._left != 0:
                    self._read()
        except KeyboardInterrupt:
            interrupted = True
            print_event("shutdown_requested")
            raise
        finally:
            self._consumer.close()
            print_event("shutdown_complete")
            if not interrupted:
                print_event("shutdown_requested")

    def _read(self) -> None:
        limit = BATCH if self._left < 0 else min(BATCH, self._left)
        messages = poll_batch(self._consumer, POLL_SECONDS, limit)
        if not messages:
            return
        by_partition: dict[tuple[str, int], list[Message]] = {}
        for message in messages:
            partition = (message.topic() or "", message.partition() or 0)
            by_partition.setdefault(partition, []).append(message)
        if self._options.verbose:
            for records in by_partition.values():
                for record in records:
                    _print_record(record)
        summaries = [_summary(*partition, records) for partition, records in by_partition.items()]
        print_event("records_consumed", count=len(messages), partitions=summaries)
        if self._left > 0:
            self._left -= len(messages)
        if not self._options.enable_autocommit:
            self._commit(
                {partition: (records[-1].offset() or 0) + 1 for partition, records in by_partition.items()}
            )

    def _commit(self, offsets: dict[tuple[str, int], int]) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        listed = [
            {"topic": topic, "partition": index, "offset": offset}
            for (topic, index), offset in offsets.items()
        ]
        wanted = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]
        try:
            for done in self._consumer.commit(offsets=wanted, asynchronous=False) or ():
                if done.error is not None:
                    raise KafkaException(done.error)
        except KafkaException as error:
            reason = describe_error(error.args[0])
            print_event("offsets_committed", offsets=listed, error=reason, success=False)
        else:
            print_event("offsets_committed", offsets=listed, success=True)


def _print_partitions(name: str, partitions: Sequence[Any]) -> None:
    print_event(name, partitions=[{"topic": each.topic, "partition": each.partition} for each in partitions])


def _print_record(message: Any) -> None:
    place = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
    print_event("record_data", key=_text(message.key()), value=_text(message.value()), **place)


def _summary(topic: str, partition: int, records: Sequence[Any]) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition,
        "count": len(records),
        "minOffset": records[0].offset(),
        "maxOffset": records[-1].offset(),
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
