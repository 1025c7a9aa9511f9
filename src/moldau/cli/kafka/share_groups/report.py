"""The output of `kafka-share-groups --describe`: offsets with lag, members, or the state of groups."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.ids import TopicPartition
from moldau.cli.kafka.consumer_groups.report import assignment_text
from moldau.client.admin.share_groups import ShareGroupDescription, describe_share_group, share_group_offsets

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient

MISSING = "-"


def describe(admin: AdminClient, groups: Sequence[str], options: argparse.Namespace) -> None:
    cluster = admin.client.cluster
    for name in groups:
        described = admin.run(describe_share_group(cluster, name))
        if options.members:
            _members(described, verbose=options.verbose)
        elif options.state is not None:
            _state(admin, described, verbose=options.verbose)
        else:
            _offsets(admin, name, verbose=options.verbose)


def _offsets(admin: AdminClient, group: str, *, verbose: bool) -> None:
    found = admin.run(share_group_offsets(admin.client.cluster, group))
    if not found:
        print(f"\nShare group '{group}' has no offset information.")
        return
    header = ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET", "LAG"]
    rows = [
        [group, topic, str(partition), _text(each.leader_epoch), _text(each.start_offset), _text(each.lag)]
        for (topic, partition), each in sorted(found.items())
    ]
    widths = [_width(rows, 0), _width(rows, 1), 10, 13, 13, 0]
    if not verbose:
        for line in (header, *rows, widths):
            del line[3]  # type: ignore[attr-defined]
    _print([header, *rows], widths)


def _members(described: ShareGroupDescription, *, verbose: bool) -> None:
    group = described.group
    _warn_if_empty(described)
    if not group.members:
        return
    header = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "MEMBER-EPOCH", "ASSIGNMENT"]
    rows = []
    for member in sorted(group.members, key=lambda each: each.member_id):
        assigned = [
            TopicPartition(topic.topic_name, partition)
            for topic in member.assignment.topic_partitions
            for partition in topic.partitions
        ]
        row = [group.group_id, member.member_id, member.client_host, member.client_id, str(len(assigned))]
        rows.append([*row, str(member.member_epoch), assignment_text(assigned)])
    widths = [*(_width(rows, column) for column in range(4)), 12, 13, 0]
    if not verbose:
        for line in (header, *rows, widths):
            del line[5]  # type: ignore[attr-defined]
    _print([header, *rows], widths)


def _state(admin: AdminClient, described: ShareGroupDescription, *, verbose: bool) -> None:
    group = described.group
    _warn_if_empty(described)
    addresses = {node.id: f"{node.host}:{node.port}" for node in admin.describe_cluster().nodes}
    coordinator = f"{addresses.get(described.coordinator, MISSING)}  ({described.coordinator})"
    header = ["GROUP", "COORDINATOR (ID)", "STATE", "GROUP-EPOCH", "ASSIGNMENT-EPOCH", "#MEMBERS"]
    epochs = [str(group.group_epoch), str(group.assignment_epoch)]
    row = [group.group_id, coordinator, group.group_state, *epochs, str(len(group.members))]
    widths = [_width([row], 0), max(25, len(coordinator)), 15, 12, 17, 0]
    if not verbose:
        for line in (header, row, widths):
            del line[3:5]
    _print([header, row], widths)


def _warn_if_empty(described: ShareGroupDescription) -> None:
    if not described.group.members:
        print(f"\nShare group '{described.group.group_id}' has no active members.", file=sys.stderr)


def _print(lines: Sequence[Sequence[str]], widths: Sequence[int]) -> None:
    for line in lines:
        cells = zip(line, widths, strict=True)
        print("\n" + " ".join(f"{cell:<{width}}" for cell, width in cells), end="")
    print()


def _width(rows: Sequence[Sequence[str]], column: int) -> int:
    return max([15, *(len(row[column]) for row in rows)])


def _text(value: int | None) -> str:
    return MISSING if value is None else str(value)
