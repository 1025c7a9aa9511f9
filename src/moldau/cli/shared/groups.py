"""Common parts of the tools for consumer, share and streams groups."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.cli.shared.arguments import ToolParser, UsageError, given, refuse_together

if TYPE_CHECKING:
    from moldau.client.admin.group_types import GroupListing

#: --state and --type without a value.
ANY = ""
SCENARIOS = (
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
)
_PARTS = ("members", "offsets", "state")


def add_group_options(parser: ToolParser, kind: str) -> None:
    """Add the options that choose groups of a kind, for example `share`."""
    parser.option("--group", "GROUP", "The group. May be repeated.", action="append")
    parser.flag("--all-groups", f"Apply to all {kind} groups.")
    parser.option(
        "--timeout",
        "MS",
        "Give up on a call after this many milliseconds (30000 by default).",
        type=int,
        default=30_000,
    )


def add_describe_options(parser: ToolParser, *, members: str, offsets: str) -> None:
    parser.flag("--members", members)
    parser.flag("--offsets", offsets)
    parser.flag("--verbose", "Describe: show more columns.")
    parser.option(
        "--state",
        "STATES",
        "Describe: show the state. List: show states; with a value, only groups in these (stable,empty).",
        nargs="?",
        const=ANY,
    )


def add_reset_options(parser: ToolParser, *, dry_run: str) -> None:
    """Add the options of a reset by any scenario. `dry_run` is the help of --dry-run."""
    parser.flag("--dry-run", dry_run)
    parser.flag("--execute", "Reset: commit the new offsets.")
    parser.flag("--export", "Reset: print the new offsets as CSV for --from-file.")
    parser.option("--to-offset", "OFFSET", "Reset: to this offset.", type=int)
    parser.option(
        "--shift-by", "COUNT", "Reset: forward by this many records, or backward if negative.", type=int
    )
    parser.option("--by-duration", "DURATION", "Reset: to the time this long ago, as PnDTnHnMnS (ISO 8601).")
    add_time_options(parser)
    parser.flag("--to-current", "Reset: to the committed offset, or to the log end offset without one.")
    parser.option("--from-file", "FILE", "Reset: to the offsets of this CSV file.")


def add_time_options(parser: ToolParser) -> None:
    """Add the scenarios of a reset that need no committed offset; share groups have no others."""
    parser.option(
        "--to-datetime",
        "TIME",
        "Reset: to the first record at or after this time, as YYYY-MM-DDThh:mm:ss.sss (UTC).",
    )
    parser.flag("--to-earliest", "Reset: to the log start offset.")
    parser.flag("--to-latest", "Reset: to the log end offset.")


def check_actions_of(options: argparse.Namespace, allowed: Mapping[str, Collection[str]]) -> None:
    """Refuse options without one of the actions that they belong to."""
    for name, actions in allowed.items():
        if given(options, name) and not any(given(options, action) for action in actions):
            raise UsageError(f"Option(s) [{name}] are unavailable given other options on the command line")


def check_describe(options: argparse.Namespace) -> None:
    if sum(given(options, part) for part in _PARTS) > 1:
        listed = ", ".join(f"[{part}]" for part in _PARTS)
        raise UsageError(f"Option [describe] takes at most one of these options: {listed}")
    if options.state:
        raise UsageError("Option [describe] does not take a value for [state]")


def check_reset(options: argparse.Namespace) -> None:
    if options.dry_run and options.execute:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    for scenario in SCENARIOS:
        refuse_together(options, scenario, [other for other in SCENARIOS if other != scenario])


def parse_names(text: str | None, known: Sequence[str], what: str) -> list[str]:
    """Parse comma-separated names, ignoring case; return none for an empty text."""
    if not text:
        return []
    by_lower = {name.lower(): name for name in known}
    found = [by_lower.get(name.strip().lower()) for name in text.split(",")]
    if None in found:
        raise UsageError(f"Invalid {what} list '{text}'. Valid {what.rstrip('s')}s are: {', '.join(known)}")
    return [name for name in found if name is not None]


def print_ids(groups: Iterable[GroupListing]) -> None:
    for group in groups:
        print(group.group_id)


def print_states(groups: Sequence[GroupListing]) -> None:
    width = max([15, *(len(group.group_id) for group in groups)])
    for name, state in [("GROUP", "STATE"), *((group.group_id, group.state) for group in groups)]:
        print(f"{name:<{width}} {state}")
