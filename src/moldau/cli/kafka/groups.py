"""kafka-groups: list the groups of a cluster, of all types."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.cli.shared.arguments import ToolParser, UsageError, refuse_together
from moldau.cli.shared.connection import add_bootstrap_options, bootstrap_servers, open_admin
from moldau.cli.shared.tool import run_tool

if TYPE_CHECKING:
    from moldau.client.admin.group_types import GroupListing

TYPES = ("classic", "consumer", "share", "streams")
MINIMUM_WIDTH = 20


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(
        _parser, _execute, argv, report=lambda text: print(f"Error while executing groups command : {text}")
    )


def _parser() -> ToolParser:
    parser = ToolParser("kafka-groups")
    add_bootstrap_options(parser)
    parser.flag("--list", "List groups.")
    parser.option("--group-type", "TYPE", f"Only groups of this type: {', '.join(TYPES)}.")
    parser.option("--protocol", "PROTOCOL", "Only groups with this protocol type.")
    parser.flag("--consumer", "Only groups of consumers: consumer groups, and classic groups of consumers.")
    parser.flag("--share", "Only share groups.")
    parser.flag("--streams", "Only streams groups.")
    return parser


def _execute(options: argparse.Namespace) -> None:
    bootstrap_servers(options)
    if not options.list:
        raise UsageError("Command must include exactly one action: --list.")
    if options.group_type is not None and options.group_type.lower() not in TYPES:
        raise UsageError("--group-type must be a valid group type.")
    kinds = ("consumer", "share", "streams")
    for kind in kinds:
        others = [other for other in kinds if other != kind]
        refuse_together(options, kind, ["group-type", "protocol", *others])
    with open_admin(options) as admin:
        groups = [group for group in admin.list_groups() if admitted(group, options)]
    rows = [("GROUP", "TYPE", "PROTOCOL")]
    rows += [(group.group_id, group.type, group.protocol_type) for group in groups]
    width = max([MINIMUM_WIDTH, *(len(cell) for row in rows for cell in row)])
    print(" ".join(f"{cell:<{width}}" for cell in rows[0]))
    for row in rows[1:]:
        print("".join(f"{cell:<{width}} " for cell in row))


def admitted(group: GroupListing, options: argparse.Namespace) -> bool:
    """Return whether the filters select the group."""
    kind = group.type.lower()
    if options.group_type is not None and kind != options.group_type.lower():
        return False
    if options.protocol is not None:
        return bool(group.protocol_type == options.protocol)
    if options.consumer:
        return group.protocol_type in ("", "consumer") or kind == "consumer"
    if options.share or options.streams:
        return kind == ("share" if options.share else "streams")
    return True
