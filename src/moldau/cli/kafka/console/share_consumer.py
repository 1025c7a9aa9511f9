"""kafka-console-share-consumer: print the records of a topic as a member of a share group."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from moldau.cli.kafka.console.consumer import add_formatter_options, formatter_notes, formatter_of, group_of
from moldau.cli.shared.arguments import ToolParser, UsageError, key_values
from moldau.cli.shared.connection import add_bootstrap_options, bootstrap_servers, load_client_config
from moldau.cli.shared.librdkafka import check_reachable
from moldau.cli.shared.tool import run_tool, warn

DEFAULT_NAME = "console-share-consumer"


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-console-share-consumer", notes=formatter_notes)
    add_bootstrap_options(parser)
    parser.option("--topic", "TOPIC", "REQUIRED: the topic to consume.")
    parser.option("--group", "GROUP", f"The share group to join ({DEFAULT_NAME} by default).")
    parser.option("--max-messages", "COUNT", "Exit after this many records.", type=int)
    parser.option("--timeout-ms", "MS", "Exit if no record arrives within this many milliseconds.", type=int)
    parser.flag("--release", "Release each record after printing it, so that it is delivered again.")
    parser.flag("--reject", "Reject each record after printing it, so that it is not delivered again.")
    parser.flag("--reject-message-on-error", "Reject records that cannot be formatted instead of exiting.")
    add_formatter_options(parser)
    parser.option(
        "--command-property", "K=V", "A consumer setting. May be repeated.", action="append", default=[]
    )
    parser.hidden("--consumer-property", action="append", dest="command_property")
    parser.hidden("--consumer-config", dest="command_config")
    parser.flag("--enable-systest-events", "Print shutdown_complete at the end, for system tests.")
    return parser


def _execute(options: argparse.Namespace) -> None:
    # The client is imported only now, so that --help is fast.
    from moldau.cli.kafka.console.share_reading import Printer, print_records

    properties = _properties(options)
    printer = Printer(options, formatter_of(options))
    check_reachable(properties, options.topic)
    try:
        print_records(properties, options.topic, printer)
    finally:
        warn(f"Processed a total of {printer.count} messages")
        if options.enable_systest_events:
            sys.stdout.write("shutdown_complete\n")


def _properties(options: argparse.Namespace) -> dict[str, str]:
    if options.topic is None:
        raise UsageError("--topic is a required argument")
    server = bootstrap_servers(options) or ""
    if options.reject and options.release:
        raise UsageError("At most one of --reject and --release may be specified.")
    properties = load_client_config(options.command_config) | key_values(options.command_property)
    group = group_of(options, properties) or DEFAULT_NAME
    return {"client.id": DEFAULT_NAME, **properties, "bootstrap.servers": server, "group.id": group}
