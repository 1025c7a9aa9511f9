"""`kafka-consumer-groups --list`: list consumer groups, filtered by type and state."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moldau.cli.shared.arguments import UsageError

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.group_types import GroupListing

STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
TYPES = ("Classic", "Consumer")
#: Protocol types of consumer groups; it is empty for a group that has offsets only.
PROTOCOLS = ("", "consumer")
#: --state and --type without a value.
ANY = ""


def consumer_groups(
    admin: AdminClient, *, types: Iterable[str] = (), states: Iterable[str] = ()
) -> list[GroupListing]:
    listed = admin.list_groups(types=types, states=states)
    return [group for group in listed if group.protocol_type in PROTOCOLS]


def list_groups(admin: AdminClient, options: argparse.Namespace) -> None:
    types = parse_names(options.type, TYPES, "types")
    states = parse_names(options.state, STATES, "state")
    listed = consumer_groups(admin, types=types, states=states)
    if options.type is None and options.state is None:
        print("".join(f"{group.group_id}\n" for group in listed), end="")
        return
    width = max([15, *(len(group.group_id) for group in listed)]) + 10
    rows = [("GROUP", "TYPE", "STATE")]
    rows += [(group.group_id, group.type or "Unknown", group.state or "Unknown") for group in listed]
    for group_id, kind, state in rows:
        line = f"{group_id:<{width}}"
        line += f" {kind:<20}" if options.type is not None else ""
        print(line + (f" {state:<20}" if options.state is not None else ""))


def parse_names(text: str | None, known: Sequence[str], what: str) -> list[str]:
    """Parse comma-separated names, ignoring case; return none for an empty text."""
    if not text:
        return []
    by_lower = {name.lower(): name for name in known}
    found = [by_lower.get(name.strip().lower()) for name in text.split(",")]
    if None in found:
        raise UsageError(f"Invalid {what} list '{text}'. Valid {what.rstrip('s')}s are: {', '.join(known)}")
    return [name for name in found if name is not None]
