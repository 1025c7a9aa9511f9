"""kafka-streams-groups: list, describe and delete streams groups; reset and delete their offsets."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.cli.shared.arguments import ToolParser, UsageError, given, refuse_together
from moldau.cli.shared.connection import add_bootstrap_options, admin_from, bootstrap_servers
from moldau.cli.shared.groups import (
    add_describe_options,
    add_group_options,
    add_reset_options,
    check_actions_of,
    check_describe,
    check_reset,
    parse_names,
    print_ids,
    print_states,
)
from moldau.cli.shared.java import java_error
from moldau.cli.shared.tool import ToolError, print_error, run_tool

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.group_types import GroupListing

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
STATES = ("Empty", "NotReady", "Stable", "Assigning", "Reconciling", "Dead")
_SCOPE = "[all-groups], [group]"
_ACTIONS_OF = {
    "members": ["describe"],
    "offsets": ["describe"],
    "verbose": ["describe"],
    "state": ["describe", "list"],
}


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-streams-groups")
    add_bootstrap_options(parser)
    parser.flag("--list", "List streams groups.")
    parser.flag("--describe", "Show the lag of groups, their members, or their state.")
    parser.flag("--delete", "Delete groups without members, with their offsets.")
    parser.flag("--reset-offsets", "Reset the offsets of groups without members, for input topics.")
    parser.flag("--delete-offsets", "Delete the offsets of a group for input topics.")
    add_group_options(parser, "streams")
    parser.option(
        "--input-topic",
        "TOPIC",
        "Reset, delete offsets: an input topic, or partitions of it, as topic:0,1,2. May be repeated.",
        action="append",
    )
    parser.flag("--all-input-topics", "Reset, delete offsets: all input topics of the topology.")
    add_describe_options(
        parser,
        members="Describe: show members and their tasks.",
        offsets="Describe: show the lag. The default.",
    )
    add_reset_options(parser, dry_run="Reset: show the new offsets without committing them.")
    parser.option(
        "--delete-internal-topic",
        "TOPIC",
        "Reset with --execute: delete this internal topic of the group. May be repeated.",
        action="append",
    )
    parser.flag(
        "--delete-all-internal-topics", "Delete, reset with --execute: delete all internal topics of groups."
    )
    return parser


def _execute(options: argparse.Namespace) -> int:
    _check(options)
    timeout = {"default.api.timeout.ms": str(options.timeout)}
    with admin_from({"bootstrap.servers": bootstrap_servers(options) or "", **timeout}, options) as admin:
        try:
            _act(admin, options)
        except KafkaError as error:
            print_error(f"Executing streams group command failed due to {java_error(error)}")
            return 1
        except ToolError as error:
            print_error(f"Executing streams group command failed due to {error}")
            return 1
    return 0


# Invalid arguments.


def _check(options: argparse.Namespace) -> None:
    check_actions_of(options, _ACTIONS_OF)
    for action in ("describe", "delete", "reset-offsets"):
        if given(options, action) and not (options.group or options.all_groups):
            raise UsageError(f"Option [{action}] takes one of these options: {_SCOPE}")
    if options.describe:
        check_describe(options)
    if options.delete and (options.input_topic or options.all_input_topics):
        raise UsageError(
            "Kafka Streams does not support topic-specific offset deletion from a streams group."
        )
    if options.delete_offsets:
        _check_delete_offsets(options)
    if options.reset_offsets:
        _check_reset(options)
    elif options.dry_run or options.execute:
        raise UsageError("Only Option [reset-offsets] accepts [execute] or [dry-run]")
    _check_internal_topics(options)
    refuse_together(options, "group", ["all-groups", "list"])
    refuse_together(options, "input-topic", ["list", "describe", "delete"])
    if sum(given(options, action) for action in ACTIONS) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, or "
            "--delete-offsets."
        )


def _check_delete_offsets(options: argparse.Namespace) -> None:
    if not options.group or not (options.input_topic or options.all_input_topics):
        raise UsageError(
            "Option [delete-offsets] takes the [group] and one of these options: [all-input-topics], "
            "[input-topic]"
        )
    if len(options.group) > 1:
        raise UsageError(
            f"Option [delete-offsets] supports only one [group] at a time, but found: {options.group}"
        )


def _check_reset(options: argparse.Namespace) -> None:
    check_reset(options)
    if not options.dry_run and not options.execute:
        raise UsageError("Option [reset-offsets] takes the option: [execute] or [dry-run]")


def _check_internal_topics(options: argparse.Namespace) -> None:
    executes = options.reset_offsets and options.execute
    if options.delete_all_internal_topics and not (options.delete or options.reset_offsets):
        raise UsageError(
            "Option [delete-all-internal-topics] takes one of these options: [delete], [reset-offsets]"
        )
    if options.delete_all_internal_topics and options.reset_offsets and not executes:
        raise UsageError("Option [delete-all-internal-topics] takes [execute] when [reset-offsets] is used.")
    if options.delete_internal_topic and not options.delete_all_internal_topics and not executes:
        raise UsageError("Option [delete-internal-topic] takes [reset-offsets] when [execute] is used.")


# Actions.


def _act(admin: AdminClient, options: argparse.Namespace) -> None:
    if options.list:
        _list(admin, options)
        return
    groups = options.group or [group.group_id for group in _streams_groups(admin)]
    groups = list(dict.fromkeys(groups))
    if options.describe:
        from moldau.cli.kafka.streams_groups.report import describe

        describe(admin, groups, options)
    elif options.delete:
        from moldau.cli.kafka.streams_groups.deletion import delete_groups

        listed = {group.group_id: group.state for group in _streams_groups(admin)}
        delete_groups(admin, groups, listed, with_topics=options.delete_all_internal_topics)
    elif options.delete_offsets:
        from moldau.cli.kafka.streams_groups.deletion import delete_offsets

        delete_offsets(admin, groups[0], options.input_topic)
    else:
        from moldau.cli.kafka.streams_groups.reset import reset

        reset(admin, groups, options)


def _streams_groups(admin: AdminClient, states: Sequence[str] = ()) -> list[GroupListing]:
    return [group for group in admin.list_groups(types=["streams"], states=states) if group.type == "Streams"]


def _list(admin: AdminClient, options: argparse.Namespace) -> None:
    if options.state is None:
        print_ids(_streams_groups(admin))
        return
    print_states(_streams_groups(admin, parse_names(options.state, STATES, "state")))
