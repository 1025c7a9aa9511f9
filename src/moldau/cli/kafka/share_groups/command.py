"""kafka-share-groups: list, describe and delete share groups; reset and delete their offsets."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.cli.shared.arguments import ToolParser, UsageError, given
from moldau.cli.shared.connection import add_bootstrap_options, admin_from, bootstrap_servers
from moldau.cli.shared.groups import (
    ANY,
    add_describe_options,
    add_group_options,
    add_time_options,
    print_ids,
    print_states,
)
from moldau.cli.shared.java import java_error
from moldau.cli.shared.tool import ToolError, print_error, run_tool

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.group_types import GroupListing

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
SCENARIOS = ("to-datetime", "to-earliest", "to-latest")
_GROUP_REQUIRED = "Option {} takes one of these options: [all-groups], [group]"


class GroupNotEmpty(ToolError):
    """Offsets of a group with members cannot be reset; unlike other errors, this one sets the exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-share-groups")
    add_bootstrap_options(parser)
    parser.flag("--list", "List share groups.")
    parser.flag("--describe", "Show the share-partition start offsets and the lag of groups.")
    parser.flag("--delete", "Delete groups without members, with their offsets.")
    parser.flag(
        "--reset-offsets", "Reset the offsets of a group without members, for --topic or --all-topics."
    )
    parser.flag("--delete-offsets", "Delete the offsets of a group without members for topics.")
    add_group_options(parser, "share")
    parser.option(
        "--topic",
        "TOPIC",
        "Reset, delete offsets: a topic. Reset: also partitions of it, as topic:0,1,2. May be repeated.",
        action="append",
    )
    parser.flag("--all-topics", "Reset: all topics for which the group has offsets.")
    add_describe_options(
        parser, members="Describe: show members.", offsets="Describe: show offsets and lag. The default."
    )
    parser.flag("--dry-run", "Reset: show the new offsets without setting them. The default.")
    parser.flag("--execute", "Reset: set the new offsets.")
    add_time_options(parser)
    return parser


def _execute(options: argparse.Namespace) -> None:
    _check(options)
    timeout = {"default.api.timeout.ms": str(options.timeout)}
    with admin_from({"bootstrap.servers": bootstrap_servers(options) or "", **timeout}, options) as admin:
        try:
            _act(admin, options)
        except KafkaError as error:
            print_error(f"Executing share group command failed due to {java_error(error)}")
        except GroupNotEmpty:
            raise
        except ToolError as error:
            print_error(f"Executing share group command failed due to {error}")


def _check(options: argparse.Namespace) -> None:
    if sum(given(options, action) for action in ACTIONS) != 1:
        listed = ", ".join(f"--{action}" for action in sorted(ACTIONS))
        raise UsageError(f"Command must include exactly one action: {listed}.")
    if (options.describe or options.delete) and not (options.group or options.all_groups):
        raise UsageError(_GROUP_REQUIRED.format("[describe]" if options.describe else "[delete]"))
    if options.reset_offsets or options.delete_offsets:
        if len(options.group or ()) != 1:
            raise UsageError("Options [reset-offsets] and [delete-offsets] take exactly one [group].")
        if not (options.topic or (options.reset_offsets and options.all_topics)):
            raise UsageError(
                "Option [delete-offsets] takes [topic]; option [reset-offsets] takes [topic] or [all-topics]."
            )
    if options.reset_offsets:
        if sum(given(options, scenario) for scenario in SCENARIOS) != 1:
            listed = ", ".join(f"[{scenario}]" for scenario in SCENARIOS)
            raise UsageError(f"Option [reset-offsets] takes exactly one of: {listed}")
        if options.execute and options.dry_run:
            raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")


def _act(admin: AdminClient, options: argparse.Namespace) -> None:
    if options.list:
        _list(admin, options)
        return
    groups = options.group or [group.group_id for group in _share_groups(admin)]
    if options.describe:
        from moldau.cli.kafka.share_groups.report import describe

        describe(admin, sorted(dict.fromkeys(groups)), options)
    elif options.delete:
        _delete(admin, groups)
    elif options.delete_offsets:
        _delete_offsets(admin, groups[0], options.topic)
    else:
        _reset(admin, groups[0], options)


def _share_groups(admin: AdminClient, states: Sequence[str] = ()) -> list[GroupListing]:
    return [group for group in admin.list_groups(types=["share"], states=states) if group.type == "Share"]


def _list(admin: AdminClient, options: argparse.Namespace) -> None:
    if options.state is None:
        print_ids(_share_groups(admin))
        return
    states = [] if options.state == ANY else [each.strip() for each in options.state.split(",")]
    print_states(_share_groups(admin, states))


def _delete(admin: AdminClient, groups: Sequence[str]) -> None:
    known = {group.group_id: group.state for group in _share_groups(admin)}
    failed: dict[str, str] = {}
    for group in dict.fromkeys(groups):
        if group not in known:
            failed[group] = f"java.lang.IllegalArgumentException: Group '{group}' is not a share group."
        elif known[group] != "Empty":
            error = "org.apache.kafka.common.errors.GroupNotEmptyException"
            failed[group] = f"{error}: Share group '{group}' is not EMPTY."
    wanted = [group for group in dict.fromkeys(groups) if group not in failed]
    deleted = []
    for group, refusal in (admin.delete_groups(wanted) if wanted else {}).items():
        if refusal is None:
            deleted.append(group)
        else:
            failed[group] = java_error(refusal)
    names = ", ".join(f"'{group}'" for group in deleted)
    if not failed:
        print(f"Deletion of requested share groups ({names}) was successful.")
        return
    print_error("Deletion of some share groups failed:")
    for group, reason in failed.items():
        print(f"* Group '{group}' could not be deleted due to: {reason}")
    if deleted:
        print(f"\nThese share groups were deleted successfully: {names}")


def _delete_offsets(admin: AdminClient, group: str, topics: Sequence[str]) -> None:
    from moldau.client.admin.share_groups import delete_share_group_offsets_of

    names = sorted(dict.fromkeys(topics))
    results: dict[str, KafkaError | None]
    try:
        results = admin.run(delete_share_group_offsets_of(admin.client.cluster, group, names))
    except KafkaError as error:
        print_error(error.message or error.code.name)
        results = dict.fromkeys(names, error)
    width = max([15, *map(len, names)])
    print(f"\n{'TOPIC':<{width}} STATUS", end="")
    for name in names:
        refusal = results.get(name)
        status = "Successful" if refusal is None else f"Error: {refusal.message or refusal.code.name}"
        print(f"\n{name:<{width}} {status}", end="")
    print()


def _reset(admin: AdminClient, group: str, options: argparse.Namespace) -> None:
    from moldau.cli.kafka.consumer_groups.reset import Planner, Scenario, print_plans
    from moldau.cli.kafka.consumer_groups.scope import partitions_of
    from moldau.client.admin.share_groups import (
        alter_share_group_offsets_of,
        describe_share_group,
        share_group_offsets,
    )

    cluster = admin.client.cluster
    try:
        if admin.run(describe_share_group(cluster, group)).group.group_state not in ("Empty", "Dead"):
            raise GroupNotEmpty(f"Share group '{group}' is not empty.")
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise

    if options.topic:
        partitions = partitions_of(admin, options.topic)
    else:
        partitions = list(admin.run(share_group_offsets(cluster, group)))
    scenario = Scenario(
        to_datetime=options.to_datetime, to_earliest=options.to_earliest, to_latest=options.to_latest
    )
    plan = Planner(admin, group, scenario).plan(partitions)
    if options.execute and plan:
        admin.run(alter_share_group_offsets_of(cluster, group, plan))
    print_plans({group: plan})
