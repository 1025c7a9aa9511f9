"""kafka-consumer-groups: list, describe and delete consumer groups; reset and delete their offsets.

As in Apache Kafka, errors of groups are printed to standard output and the exit code is 0; it is 1 if the
command line is invalid or the cluster cannot be reached.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.cli.kafka.consumer_groups.delete import delete_groups, delete_offsets
from moldau.cli.kafka.consumer_groups.listing import consumer_groups, list_groups
from moldau.cli.kafka.consumer_groups.report import describe
from moldau.cli.kafka.consumer_groups.reset import reset
from moldau.cli.shared.arguments import ToolParser, UsageError, given, refuse_together
from moldau.cli.shared.connection import add_bootstrap_options, admin_from, bootstrap_servers
from moldau.cli.shared.groups import (
    ANY,
    add_describe_options,
    add_group_options,
    add_reset_options,
    check_actions_of,
    check_describe,
    check_reset,
)
from moldau.cli.shared.java import java_error
from moldau.cli.shared.tool import ToolError, explain, print_error, run_tool, warn

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
_ACTIONS_OF = {
    "members": ["describe"],
    "verbose": ["describe"],
    "offsets": ["describe"],
    "state": ["describe", "list"],
    "type": ["list"],
}


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-consumer-groups")
    add_bootstrap_options(parser, required=False)
    parser.flag("--list", "List consumer groups.")
    parser.flag("--describe", "Show the committed offsets and the lag of groups.")
    parser.flag("--delete", "Delete groups with their offsets.")
    parser.flag(
        "--reset-offsets", "Reset the offsets of groups without members, for --topic or --all-topics."
    )
    parser.flag(
        "--delete-offsets", "Delete the offsets of a group for topics to which it does not subscribe."
    )
    parser.option("--validate-regex", "REGEX", "Check that REGEX is a valid RE2 expression, as brokers use.")
    add_group_options(parser, "consumer")
    parser.option(
        "--topic",
        "TOPIC",
        "Reset, delete offsets: a topic, or some of its partitions as topic:0,1,2. May be repeated.",
        action="append",
    )
    parser.flag("--all-topics", "Reset: all topics for which the group has committed offsets.")
    add_describe_options(
        parser, members="Describe: show members.", offsets="Describe: show offsets and lag. The default."
    )
    parser.option(
        "--type",
        "TYPES",
        "List: show types; with a value, only groups of these (classic,consumer).",
        nargs="?",
        const=ANY,
    )
    add_reset_options(parser, dry_run="Reset: show the new offsets without committing them. The default.")
    return parser


def _execute(options: argparse.Namespace) -> None:
    _check(options)
    if given(options, "validate-regex"):
        _validate_regex(options.validate_regex)
        return
    timeout = {"default.api.timeout.ms": str(options.timeout)}
    addresses = {"bootstrap.servers": bootstrap_servers(options) or "", **timeout}
    from moldau.client.wire.cluster import BootstrapFailed

    with admin_from(addresses, options) as admin:
        try:
            _act(admin, options)
        except BootstrapFailed:
            raise
        except KafkaError as error:
            text = explain(error).replace(str(error), java_error(error), 1)
            print_error(f"Executing consumer group command failed due to {text}")
        except ToolError as error:
            print_error(f"Executing consumer group command failed due to {error}")


def _act(admin: AdminClient, options: argparse.Namespace) -> None:
    if options.list:
        list_groups(admin, options)
        return
    groups = options.group or [group.group_id for group in consumer_groups(admin)]
    if options.describe:
        describe(admin, groups, options)
    elif options.delete:
        delete_groups(admin, groups)
    elif options.delete_offsets:
        delete_offsets(admin, groups[0], options.topic)
    else:
        reset(admin, groups, options)


def _check(options: argparse.Namespace) -> None:
    check_actions_of(options, _ACTIONS_OF)
    if not given(options, "validate-regex") and bootstrap_servers(options, required=False) is None:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    for action in ("describe", "delete", "reset-offsets"):
        if given(options, action) and not options.group and not options.all_groups:
            raise UsageError(f"Option [{action}] takes one of these options: [group], [all-groups]")
    if options.describe:
        check_describe(options)
    if options.delete and options.topic:
        raise UsageError(
            "The consumer does not support topic-specific offset deletion from a consumer group."
        )
    if options.delete_offsets and not (options.group and options.topic):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if options.reset_offsets:
        _check_reset(options)
    refuse_together(options, "group", ["all-groups", "list"])
    refuse_together(options, "topic", ["list", "describe"])
    if sum(given(options, action) for action in ACTIONS) != 1:
        listed = ", ".join(f"--{action}" for action in ACTIONS)
        raise UsageError(f"Command must include exactly one action: {listed}")


def _check_reset(options: argparse.Namespace) -> None:
    check_reset(options)
    if not options.dry_run and not options.execute:
        warn(
            "WARN: nothing is changed without --execute. Add --dry-run to make that explicit: a later "
            "version will require one of the two."
        )


def _validate_regex(regex: str) -> None:
    from moldau.groups.modern.regex import regex_problem

    problem = regex_problem(regex)
    verdict = "valid" if problem is None else f"invalid: {problem}"
    print(f"The regular expression `{regex}` is {verdict}.")
