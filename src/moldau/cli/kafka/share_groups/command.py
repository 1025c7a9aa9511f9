"""kafka-share-groups: list and describe share groups, delete them or their offsets, reset offsets."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.kafka.consumer_groups.list import ANY
from moldau.cli.shared.arguments import ToolParser, UsageError, given
from moldau.cli.shared.java import java_error
from moldau.cli.shared.tool import ToolError, add_bootstrap_options, admin_from, bootstrap_servers, run_tool

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.group_types import GroupListing

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
SCENARIOS = ("to-datetime", "to-earliest", "to-latest")
_NAMED = "Option {} takes one of these options: [all-groups], [group]"


class GroupNotEmpty(ToolError):
    """The tool ends with an error: a group with members cannot begin anew."""


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-share-groups", "List, describe, delete or reset share groups.")
    add_bootstrap_options(parser)
    parser.flag("--list", "List the share groups.")
    parser.flag("--describe", "Show where groups are in their partitions, and how much they lag behind.")
    parser.flag("--delete", "Delete groups without members, with their offsets.")
    parser.flag("--reset-offsets", "Let a group without members begin anew, for --topic or --all-topics.")
    parser.flag("--delete-offsets", "Forget where a group without members was in some topics.")
    parser.option("--group", "GROUP", "The group; may be given several times.", action="append")
    parser.flag("--all-groups", "All share groups.")
    parser.option(
        "--topic",
        "TOPIC",
        "A topic whose offsets are reset or deleted, or some of its partitions: topic:0,1,2. May be\n"
        "given several times.",
        action="append",
    )
    parser.flag("--all-topics", "Reset: all topics that the group has been in.")
    parser.option("--timeout", "MS", "How long to try.", type=int, default=30_000)
    parser.flag("--members", "Describe: the members.")
    parser.flag("--offsets", "Describe: the offsets, which is what it does anyway.")
    parser.flag("--verbose", "Describe: more columns.")
    parser.option(
        "--state",
        "STATES",
        "Describe: the state. List: show states, or only groups in these (stable,empty).",
        nargs="?",
        const=ANY,
    )
    parser.flag("--dry-run", "Reset: only show what would be done. The default.")
    parser.flag("--execute", "Reset: do it.")
    parser.option("--to-datetime", "TIME", "Reset: to a time, as YYYY-MM-DDThh:mm:ss.sss (UTC).")
    parser.flag("--to-earliest", "Reset: to the first record there is.")
    parser.flag("--to-latest", "Reset: behind the last record.")
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
        raise UsageError(_NAMED.format("[describe]" if options.describe else "[delete]"))
    if options.reset_offsets or options.delete_offsets:
        if len(options.group or ()) != 1:
            raise UsageError("This takes exactly one [group].")
        if not (options.topic or (options.reset_offsets and options.all_topics)):
            raise UsageError("This takes [topic], or [all-topics] to reset.")
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
        for group in _share_groups(admin):
            print(group.group_id)
        return
    states = [] if options.state is ANY else [each.strip() for each in options.state.split(",")]
    groups = _share_groups(admin, states)
    width = max([15, *(len(group.group_id) for group in groups)])
    for name, state in [("GROUP", "STATE"), *((group.group_id, group.state) for group in groups)]:
        print(f"{name:<{width}} {state}")


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
    from moldau.cli.kafka.consumer_groups.reset import Planner, print_plans
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

    class SharePlanner(Planner):
        def _partitions(self) -> list[TopicPartition]:
            if options.topic:
                return partitions_of(admin, options.topic)
            return list(admin.run(share_group_offsets(cluster, group)))

    for name in ("to_offset", "shift_by", "by_duration", "from_file"):
        setattr(options, name, None)
    options.to_current = False
    plan = SharePlanner(admin, group, options).plan()
    if options.execute and plan:
        admin.run(alter_share_group_offsets_of(cluster, group, plan))
    print_plans({group: plan})


def print_error(sentence: str) -> None:
    print(f"\nError: {sentence}")
