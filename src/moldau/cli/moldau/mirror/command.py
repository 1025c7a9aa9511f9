"""`moldau mirror status|failover|failback`."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.cli.shared.arguments import ToolParser, UsageError
from moldau.cli.shared.connection import load_config
from moldau.cli.shared.tool import run_tool
from moldau.cli.tools import COMMANDS

if TYPE_CHECKING:
    from moldau.pipelines.mirror.config.flow import Flow
    from moldau.pipelines.mirror.config.properties import MirrorConfig
    from moldau.pipelines.mirror.failover.plan import MovePlan
    from moldau.pipelines.mirror.failover.status import FlowStatus

_ATTENTION = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run `moldau mirror` and return the exit code."""
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("moldau mirror", COMMANDS["mirror"].summary, _notes)
    parser.add_argument("action", choices=["status", "failover", "failback"], help="The action.")
    parser.add_argument("file", metavar="MM2.PROPERTIES", help="The file that the mirror runs with.")
    parser.option("--flow", "SOURCE->TARGET", "One flow; all flows by default, one is needed to move groups.")
    parser.flag("--dry-run", "Show what failover or failback would do, and change nothing.")
    parser.flag("--partitions", "Show every partition in the status.")
    parser.flag("--json", "Print JSON.")
    return parser


def _notes() -> str:
    return (
        "failover commits, on the target, where each group of the source was; failback commits, on the\n"
        "source, where each group of the target is. Stop the consumers of the groups first; groups with\n"
        "members keep their offsets, and no offset moves back.\n"
        "Exit code of status: 0, or 2 if partitions need attention."
    )


def _execute(options: argparse.Namespace) -> int:
    from moldau.pipelines.mirror.config.properties import read_config

    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    config = read_config(load_config(options.file))
    if options.action == "status":
        flows = [config.flow(options.flow)] if options.flow else list(config.flows)
        return asyncio.run(_status(options, flows))
    return asyncio.run(_move(options, config, _one_flow(options, config)))


def _one_flow(options: argparse.Namespace, config: MirrorConfig) -> Flow:
    if options.flow:
        return config.flow(options.flow)
    if len(config.flows) > 1:
        raise UsageError(f"Choose a flow with --flow: {', '.join(map(str, config.flows))}")
    return config.flows[0]


async def _status(options: argparse.Namespace, flows: Sequence[Flow]) -> int:
    from moldau.base.clock import SystemClock
    from moldau.pipelines.mirror.failover.status import flow_status

    found = [await flow_status(flow, SystemClock()) for flow in flows]
    if options.json:
        print(json.dumps([status.document() for status in found]))
    else:
        for status in found:
            _print_status(status, every_partition=options.partitions)
    return _ATTENTION if any(status.problems for status in found) else 0


def _print_status(status: FlowStatus, *, every_partition: bool) -> None:
    beat = "none" if status.heartbeat_ms is None else f"{status.heartbeat_ms / 1000:.1f} s ago"
    print(
        f"{status.flow}: {len(status.partitions)} partitions, lag {status.lag} records, "
        f"{status.lag_ms / 1000:.1f} s; last heartbeat {beat}"
    )
    shown = status.partitions if every_partition else status.problems
    rows = [
        (str(each.partition), each.state, each.position, each.log_end, each.lag, _seconds(each.lag_ms))
        for each in shown
    ]
    if rows:
        _print_table(("PARTITION", "STATE", "POSITION", "LOG-END-OFFSET", "LAG", "LAG-SECONDS"), rows)


async def _move(options: argparse.Namespace, config: MirrorConfig, flow: Flow) -> int:
    from moldau.base.clock import SystemClock
    from moldau.pipelines.mirror.failover.moves import failback, failover

    if options.action == "failover":
        plan = await failover(flow, SystemClock(), dry_run=options.dry_run)
    else:
        plan = await failback(config, flow, SystemClock(), dry_run=options.dry_run)
    if options.json:
        print(json.dumps(plan.document()))
    else:
        _print_plan(plan, dry_run=options.dry_run)
    return 0


def _print_plan(plan: MovePlan, *, dry_run: bool) -> None:
    rows = [
        (
            each.group,
            str(each.partition),
            each.action,
            *map(_number, (each.current, each.offset, each.unread)),
            each.repeated,
        )
        for each in plan.moves
    ]
    if rows:
        _print_table(
            ("GROUP", "PARTITION", "ACTION", "CURRENT", "OFFSET", "UNREAD", "REPEATED-AT-MOST"), rows
        )
    else:
        print("No group has offsets of mirrored topics.")
    for each in plan.uncopied:
        print(f"Not copied, and lost if the source is: {each.records} records of {each.partition}")
    for note in plan.notes:
        print(f"Note: {note}")
    commits = sum(len(offsets) for offsets in plan.commits.values())
    print(f"{'Would commit' if dry_run else 'Committed'} {commits} offsets of {len(plan.commits)} groups.")


def _print_table(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    lines = [heading, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _seconds(milliseconds: int | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.1f}"


if __name__ == "__main__":
    sys.exit(main())
