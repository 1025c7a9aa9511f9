"""kafka-streams-groups: list, describe and delete streams groups; reset and delete their offsets."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.cli.kafka.consumer_groups.listing import ANY, parse_names
from moldau.cli.kafka.consumer_groups.reset import SCENARIOS
from moldau.cli.shared.arguments import ToolParser, UsageError, given, refuse_together
from moldau.cli.shared.connection import add_bootstrap_options, admin_from, bootstrap_servers
from moldau.cli.shared.java import java_error
from moldau.cli.shared.tool import ToolError, print_error, run_tool

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.group_types import GroupListing

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
STATES = ("Empty", "NotReady", "Stable", "Assigning", "Reconciling", "Dead")
_SCOPE = "[all-groups], [group]"


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
    parser.option("--group", "GROUP", "The group. May be repeated.", action="append")
    parser.flag("--all-groups", "Apply to all streams groups.")
    parser.option(
        "--input-topic",
        "TOPIC",
        "Reset, delete offsets: an input topic, or partitions of it, as topic:0,1,2. May be repeated.",
        action="append",
    )
    parser.flag("--all-input-topics", "Reset, delete offsets: all input topics of the topology.")
    parser.option(
        "--timeout",
        "MS",
        "Give up on a call after this many milliseconds (30000 by default).",
        type=int,
        default=30_000,
    )
    parser.flag("--members", "Describe: show members and their tasks.")
    parser.flag("--offsets", "Describe: show the lag. The default.")
    parser.flag("--verbose", "Describe: show more columns.")
    parser.option(
        "--state",
        "STATES",
        "Describe: show the state. List: show states; with a value, only groups in these (stable,empty).",
        nargs="?",
        const=ANY,
    )
    _add_reset_options(parser)
    return parser


def _add_reset_options(parser: ToolParser) -> None:
    parser.flag("--dry-run", "Reset: show the new offsets without committing them.")
    parser.flag("--execute", "Reset: commit the new offsets.")
    parser.flag("--export", "Reset: print the new offsets as CSV for --from-file.")
    parser.option("--to-offset", "OFFSET", "Reset: to this offset.", type=int)
    parser.option(
        "--shift-by", "COUNT", "Reset: forward by this many records, or backward if negative.", type=int
    )
    parser.option(
        "--to-datetime",
        "TIME",
        "Reset: to the first record at or after this time, as YYYY-MM-DDThh:mm:ss.sss (UTC).",
    )
    parser.option("--by-duration", "DURATION", "Reset: to the time this long ago, as PnDTnHnMnS (ISO 8601).")
    parser.flag("--to-earliest", "Reset: to the log start offset.")
    parser.flag("--to-latest", "Reset: to the log end offset.")
    parser.flag("--to-current", "Reset: to the committed offset, or to the log end offset without one.")
    parser.option("--from-file", "FILE", "Reset: to the offsets of this CSV file.")
    parser.option(
        "--delete-internal-topic",
        "TOPIC",
        "Reset with --execute: delete this internal topic of the group. May be repeated.",
        action="append",
    )
    parser.flag(
        "--delete-all-internal-topics", "Delete, reset with --execute: delete all internal topics of groups."
    )


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
    for name, actions in (
        ("members", ["describe"]),
        ("offsets", ["describe"]),
        ("verbose", ["describe"]),
        ("state", ["describe", "list"]),
    ):
        if given(options, name) and not any(given(options, action) for action in actions):
            raise UsageError(f"Option(s) [{name}] are unavailable given other options on the command line")
    for action in ("describe", "delete", "reset-offsets"):
        if given(options, action) and not (options.group or options.all_groups):
            raise UsageError(f"Option [{action}] takes one of these options: {_SCOPE}")
    if options.describe:
        _check_describe(options)
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


def _check_describe(options: argparse.Namespace) -> None:
    parts = ("members", "offsets", "state")
    if sum(given(options, part) for part in parts) > 1:
        listed = ", ".join(f"[{part}]" for part in parts)
        raise UsageError(f"Option [describe] takes at most one of these options: {listed}")
    if options.state:
        raise UsageError("Option [describe] does not take a value for [state]")


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
    if options.dry_run and options.execute:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not options.dry_run and not options.execute:
        raise UsageError("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    for scenario in SCENARIOS:
        refuse_together(options, scenario, [other for other in SCENARIOS if other != scenario])


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
        for group in _streams_groups(admin):
            print(group.group_id)
        return
    groups = _streams_groups(admin, parse_names(options.state, STATES, "state"))
    width = max([15, *(len(group.group_id) for group in groups)])
    for name, state in [("GROUP", "STATE"), *((group.group_id, group.state) for group in groups)]:
        print(f"{name:<{width}} {state}")
