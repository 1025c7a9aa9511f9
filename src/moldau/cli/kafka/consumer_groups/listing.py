"""`kafka-consumer-groups --list`: list consumer groups, filtered by type and state."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.cli.shared.groups import parse_names

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
