"""kafka-console-consumer: print the records of topics."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.console.formatters import ConsoleRecord, Formatter, find_formatter
from moldau.cli.kafka.console.reading import Handled, ReadPlan, read
from moldau.cli.kafka.console.session import ReportOnce, check_reachable, ends_on_sigterm
from moldau.cli.shared.arguments import ToolParser, UsageError, given, key_values, require_one
from moldau.cli.shared.librdkafka import open_consumer
from moldau.cli.shared.tool import (
    ToolError,
    add_bootstrap_options,
    bootstrap_servers,
    load_config,
    run_tool,
    warn,
)

if TYPE_CHECKING:
    from confluent_kafka import Message


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-console-consumer", "Print the records of topics.", formatter_notes)
    add_bootstrap_options(parser)
    parser.option("--topic", "TOPIC", "The topic to read.")
    parser.option("--include", "REGEX", "The topics to read, as regular expression.")
    parser.hidden("--whitelist", dest="include")
    parser.option(
        "--partition", "ID", "Only this partition, from its end unless --offset is given.", type=int
    )
    parser.option("--offset", "OFFSET", "Where to begin in that partition: a number, earliest or latest.")
    parser.flag("--from-beginning", "Begin with the first record there is, not with those to come.")
    parser.option("--max-messages", "COUNT", "End after so many records.", type=int)
    parser.option("--timeout-ms", "MS", "End when no record came for so long.", type=int)
    parser.option("--group", "GROUP", "Be a member of this consumer group.")
    add_formatter_options(parser)
    parser.option("--command-property", "K=V", "A setting of the consumer.", action="append", default=[])
    parser.hidden("--consumer-property", action="append", dest="command_property")
    parser.hidden("--consumer.config", dest="command_config")
    parser.option(
        "--isolation-level",
        "LEVEL",
        "read_committed leaves out what transactions did not commit; read_uncommitted shows all.",
    )
    parser.flag("--skip-message-on-error", "Go on when a record cannot be printed.")
    parser.hidden("--enable-systest-events", action="store_true")
    parser.hidden("--new-consumer", action="store_true")
    return parser


def add_formatter_options(parser: ToolParser) -> None:
    """How records are printed; `formatter_of` reads it."""
    parser.option("--formatter", "CLASS", "How to print a record.", default="DefaultMessageFormatter")
    parser.option(
        "--formatter-property", "K=V", "A property of the formatter (see below).", action="append", default=[]
    )
    parser.option(
        "--property", "K=V", "The same, by its older name.", action="append", dest="formatter_property"
    )
    parser.option("--formatter-config", "FILE", "Properties file for the formatter.")
    parser.option("--key-deserializer", "CLASS", "How to read keys.")
    parser.option("--value-deserializer", "CLASS", "How to read values.")


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
        with ends_on_sigterm():
            records = read(consumer, plan, report, options.timeout_ms)
            limit = -1 if options.max_messages is None else options.max_messages
            printed.run(records, limit, Handled(consumer, plan))
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
    properties = load_config(options.command_config) | key_values(options.command_property)
    properties["bootstrap.servers"] = bootstrap_servers(options) or ""
    group = _group(options, properties)
    reset = _auto_offset_reset(options, properties)
    properties.setdefault("client.id", "console-consumer")
    properties["auto.offset.reset"] = reset
    # librdkafka's own name: do not pause a second when we print more slowly than it fetches.
    properties.setdefault("fetch.queue.backoff.ms", "20")
    if options.isolation_level is not None:
        properties["isolation.level"] = options.isolation_level
    if group is None:
        # Nobody will come back to this group, so its offsets are not kept unless somebody asks for it.
        properties["group.id"] = f"console-consumer-{random.randrange(100_000)}"
        properties.setdefault("enable.auto.commit", "false")
        group = properties["group.id"] if options.partition is None else None
    # librdkafka's own name: what counts as read is what was printed, not what was fetched.
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
    """The one group that is named, wherever that is."""
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
        handled: Callable[[Sequence[Message]], None],
    ) -> None:
        """Print until the batches end or `limit` records are out (-1: no limit), and tell what is out."""
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
                        handled(wanted[:number])
                        raise
                    warn(f"Error processing message, skipping this message: {error}")
            output.flush()
            handled(wanted)
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
        message.headers() or (),
    )
