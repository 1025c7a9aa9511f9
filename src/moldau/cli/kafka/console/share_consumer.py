"""kafka-console-share-consumer: print the records of a topic as a member of a share group."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from moldau.cli.kafka.console.consumer import add_formatter_options, formatter_notes, formatter_of, group_of
from moldau.cli.kafka.console.session import check_reachable
from moldau.cli.shared.arguments import ToolParser, UsageError, key_values
from moldau.cli.shared.tool import add_bootstrap_options, bootstrap_servers, load_config, run_tool, warn

DEFAULT_NAME = "console-share-consumer"


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-console-share-consumer",
        "Print the records of a topic as a member of a share group.",
        formatter_notes,
    )
    add_bootstrap_options(parser)
    parser.option("--topic", "TOPIC", "REQUIRED: the topic to read.")
    parser.option("--group", "GROUP", f"The share group ({DEFAULT_NAME} unless given).")
    parser.option("--max-messages", "COUNT", "End after so many records.", type=int)
    parser.option("--timeout-ms", "MS", "End when no record came for so long.", type=int)
    parser.flag("--release", "Give each record back to the group after printing it.")
    parser.flag("--reject", "Reject each record after printing it: nobody gets it again.")
    parser.flag("--reject-message-on-error", "Reject a record that cannot be printed, and go on.")
    add_formatter_options(parser)
    parser.option("--command-property", "K=V", "A setting of the consumer.", action="append", default=[])
    parser.hidden("--consumer-property", action="append", dest="command_property")
    parser.hidden("--consumer-config", dest="command_config")
    parser.flag("--enable-systest-events", "Say when the tool has ended, for system tests.")
    return parser


def _execute(options: argparse.Namespace) -> None:
    # What speaks the protocol is loaded only when it is needed: help should be there at once.
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
    properties = load_config(options.command_config) | key_values(options.command_property)
    group = group_of(options, properties) or DEFAULT_NAME
    return {"client.id": DEFAULT_NAME, **properties, "bootstrap.servers": server, "group.id": group}
