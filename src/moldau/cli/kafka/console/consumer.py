"""kafka-console-consumer: print the records of topics."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.console.formatters import ConsoleRecord, Formatter, find_formatter
from moldau.cli.kafka.console.reading import ReadPlan, StoredOffsets, read
from moldau.cli.shared.arguments import ToolParser, UsageError, given, key_values, require_one
from moldau.cli.shared.connection import (
    add_bootstrap_options,
    bootstrap_servers,
    load_client_config,
    load_config,
)
from moldau.cli.shared.librdkafka import ReportOnce, check_reachable, open_consumer
from moldau.cli.shared.tool import ToolError, interrupted_by_sigterm, run_tool, warn
from moldau.client.librdkafka.headers import headers_of

if TYPE_CHECKING:
    from confluent_kafka import Message


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-console-consumer", notes=formatter_notes)
    add_bootstrap_options(parser)
    parser.option("--topic", "TOPIC", "The topic to consume.")
    parser.option("--include", "REGEX", "A regular expression for the topics to consume.")
    parser.hidden("--whitelist", dest="include")
    parser.option(
        "--partition",
        "ID",
        "Consume only this partition, from its log end offset unless --offset is given.",
        type=int,
    )
    parser.option(
        "--offset", "OFFSET", "The offset to start from in --partition: a number, earliest or latest."
    )
    parser.flag("--from-beginning", "Without a committed offset, start from the earliest record.")
    parser.option("--max-messages", "COUNT", "Exit after this many records.", type=int)
    parser.option("--timeout-ms", "MS", "Exit if no record arrives within this many milliseconds.", type=int)
    parser.option("--group", "GROUP", "Consume as a member of this consumer group.")
    add_formatter_options(parser)
    parser.option(
        "--command-property", "K=V", "A consumer setting. May be repeated.", action="append", default=[]
    )
    parser.hidden("--consumer-property", action="append", dest="command_property")
    parser.hidden("--consumer.config", dest="command_config")
    parser.option(
        "--isolation-level",
        "LEVEL",
        "read_committed skips records of open and aborted transactions; read_uncommitted (the default) "
        "returns all records.",
    )
    parser.flag("--skip-message-on-error", "Skip records that cannot be formatted instead of exiting.")
    parser.hidden("--enable-systest-events", action="store_true")
    parser.hidden("--new-consumer", action="store_true")
    return parser


def add_formatter_options(parser: ToolParser) -> None:
    """Add the options that `formatter_of` reads."""
    parser.option(
        "--formatter",
        "CLASS",
        "The formatter of records (DefaultMessageFormatter by default).",
        default="DefaultMessageFormatter",
    )
    parser.option(
        "--formatter-property",
        "K=V",
        "A formatter property (see below). May be repeated.",
        action="append",
        default=[],
    )
    parser.option(
        "--property",
        "K=V",
        "DEPRECATED: use --formatter-property.",
        action="append",
        dest="formatter_property",
    )
    parser.option("--formatter-config", "FILE", "Properties file with formatter properties.")
    parser.option("--key-deserializer", "CLASS", "The deserializer of keys.")
    parser.option("--value-deserializer", "CLASS", "The deserializer of values.")


def formatter_notes() -> str:
    return (
        "formatter properties:\n"
        "  print.timestamp, print.key, print.offset, print.delivery, print.epoch,\n"
        "    print.partition, print.headers, print.value = true|false\n"
        "  key.separator, line.separator, headers.separator, null.literal = TEXT\n"
        "  key.deserializer, value.deserializer, headers.deserializer = CLASS, for example\n"
        "    org.apache.kafka.common.serialization.LongDeserializer"
    )


def _execute(options: argparse.Namespace) -> None:
    plan = _plan(options)
    formatter = formatter_of(options)
    check_reachable(plan.properties, plan.topic)
    report = ReportOnce()
    consumer = open_consumer(plan.properties, error_cb=report)
    printed = _Printer(formatter, skip_errors=options.skip_message_on_error)
    try:
        with interrupted_by_sigterm():
            records = read(consumer, plan, report, options.timeout_ms)
            limit = -1 if options.max_messages is None else options.max_messages
            printed.run(records, limit, StoredOffsets(consumer, plan))
    finally:
        consumer.close()
        warn(f"Processed a total of {printed.count} messages")


def _plan(options: argparse.Namespace) -> ReadPlan:
    require_one(options, "topic", "include")
    if options.partition is not None:
        if options.topic is None:
            raise UsageError("The topic is required when partition is specified.")
        if options.from_beginning and options.offset is not None:
            raise UsageError("Options from-beginning and offset cannot be specified together.")
    elif options.offset is not None:
        raise UsageError("The partition is required when offset is specified.")
    properties = load_client_config(options.command_config) | key_values(options.command_property)
    properties["bootstrap.servers"] = bootstrap_servers(options) or ""
    group = _group(options, properties)
    reset = _auto_offset_reset(options, properties)
    properties.setdefault("client.id", "console-consumer")
    properties["auto.offset.reset"] = reset
    # A setting of librdkafka: do not pause for a second when its queue is full.
    properties.setdefault("fetch.queue.backoff.ms", "20")
    if options.isolation_level is not None:
        properties["isolation.level"] = options.isolation_level
    if group is None:
        # No consumer will join this group again, so its offsets are not committed unless requested.
        properties["group.id"] = f"console-consumer-{random.randrange(100_000)}"
        properties.setdefault("enable.auto.commit", "false")
        group = properties["group.id"] if options.partition is None else None
    # A setting of librdkafka: commit the offsets of printed records, not of fetched ones.
    properties["enable.auto.offset.store"] = "false"
    offset = _offset(options.offset or reset)
    return ReadPlan(options.topic, options.include, options.partition, offset, group, properties)


def _group(options: argparse.Namespace, properties: dict[str, str]) -> str | None:
    group = group_of(options, properties)
    if group is None:
        return None
    if options.partition is not None:
        raise UsageError("Options group and partition cannot be specified together.")
    properties["group.id"] = group
    return group


def group_of(options: argparse.Namespace, properties: dict[str, str]) -> str | None:
    """Return the group id, which options, properties and config file may name but must agree on."""
    names = {name for name in (options.group, properties.get("group.id")) if name}
    if len(names) > 1:
        listed = ", ".join(f"'{name}'" for name in sorted(names))
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via '--command-property', "
            f"or via '--command-config') do not match. Detected group ids: {listed}"
        )
    return names.pop() if names else None


def _auto_offset_reset(options: argparse.Namespace, properties: dict[str, str]) -> str:
    reset = properties.get("auto.offset.reset")
    if reset is None:
        return "earliest" if options.from_beginning else "latest"
    if options.from_beginning and reset != "earliest":
        raise UsageError(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', "
            "please remove one option"
        )
    return reset


def _offset(text: str) -> int | str:
    if text.lower() in ("earliest", "latest"):
        return text.lower()
    if not text.isdecimal():
        raise UsageError(
            f"The provided offset value '{text}' is incorrect. "
            "Valid values are 'earliest', 'latest', or a non-negative long."
        )
    return int(text)


def formatter_of(options: argparse.Namespace) -> Formatter:
    properties = load_config(options.formatter_config)
    for name in ("key", "value"):
        if given(options, f"{name}-deserializer"):
            properties[f"{name}.deserializer"] = getattr(options, f"{name}_deserializer")
    return find_formatter(options.formatter, properties | key_values(options.formatter_property))


class _Printer:
    def __init__(self, formatter: Formatter, *, skip_errors: bool) -> None:
        self.count = 0
        self._format = formatter.format
        self._skip_errors = skip_errors

    def run(
        self,
        batches: Iterator[Sequence[Message]],
        limit: int,
        printed: Callable[[Sequence[Message]], None],
    ) -> None:
        """Print at most `limit` records (-1 for no limit) and report printed ones to `printed`."""
        output = sys.stdout.buffer
        if limit == 0:
            return
        for batch in batches:
            wanted = batch if limit < 0 else batch[: limit - self.count]
            for number, message in enumerate(wanted):
                self.count += 1
                try:
                    output.write(self._format(_record(message)))
                except ToolError as error:
                    if not self._skip_errors:
                        printed(wanted[:number])
                        raise
                    warn(f"Error processing message, skipping this message: {error}")
            output.flush()
            printed(wanted)
            if self.count == limit:
                return


def _record(message: Any) -> ConsoleRecord:
    kind, timestamp = message.timestamp()
    return ConsoleRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        (None, "CreateTime", "LogAppendTime")[kind],
        timestamp,
        message.key(),
        message.value(),
        headers_of(message),
    )
