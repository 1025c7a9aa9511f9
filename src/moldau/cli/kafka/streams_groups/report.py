"""The output of `kafka-streams-groups --describe`: the lag of groups, their members, or their state."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from moldau.base.ids import TopicPartition
from moldau.cli.shared.tool import print_error
from moldau.client.admin.client import checked
from moldau.client.admin.offsets import OffsetSpec
from moldau.client.admin.streams_groups import StreamsGroupDescription, describe_streams_group
from moldau.protocol.messages.streams_group_describe import Assignment, TaskIds

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient

MISSING = "-"
_MINIMUM = 15


class Position(NamedTuple):
    """The committed offset of a partition, None without one, and its lag."""

    offset: int | None
    leader_epoch: int | None
    end: int
    lag: int


def describe(admin: AdminClient, groups: Sequence[str], options: argparse.Namespace) -> None:
    for name in groups:
        described = admin.run(describe_streams_group(admin.client.cluster, name))
        if options.members:
            _members(described, verbose=options.verbose)
        elif options.state is not None:
            _state(admin, described, verbose=options.verbose)
        else:
            _offsets(admin, described, verbose=options.verbose)


# Members.


def _members(described: StreamsGroupDescription, *, verbose: bool) -> None:
    group = described.group
    if not group.members:
        return
    members = sorted(group.members, key=lambda each: each.member_id)
    group_width = max(_MINIMUM, len(group.group_id))
    member_width = max([_MINIMUM, *(len(each.member_id) for each in members)])
    process_width = max([_MINIMUM, *(len(each.process_id) for each in members)])
    client_width = max([_MINIMUM, *(len(each.client_id) for each in members)])
    if not verbose:
        widths = (group_width, member_width, process_width, client_width)
        _print(("GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"), widths)
        for each in members:
            row = (group.group_id, each.member_id, each.process_id, each.client_id, _tasks(each.assignment))
            _print(row, widths)
        return

    def line(name: str, target: object, topology: object, *rest: str) -> None:
        # The columns TOPOLOGY-EPOCH and MEMBER have no space between them, as in Kafka's tool.
        start = f"{name:<{group_width}} {target:<25} {topology:<15}"
        print(start + _line(rest, (member_width, 15, 15, process_width, client_width)))

    line(
        *("GROUP", "TARGET-ASSIGNMENT-EPOCH", "TOPOLOGY-EPOCH", "MEMBER", "MEMBER-PROTOCOL"),
        *("MEMBER-EPOCH", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"),
    )
    topology_epoch = 0 if group.topology is None else group.topology.epoch
    for each in members:
        line(
            *(group.group_id, group.assignment_epoch, topology_epoch, each.member_id),
            *("classic" if each.is_classic else "streams", str(each.member_epoch), each.process_id),
            *(each.client_id, _tasks(each.assignment) + _tasks(each.target_assignment, "TARGET-")),
        )


def _tasks(assignment: Assignment, prefix: str = "") -> str:
    return (
        _of_role(f"{prefix}ACTIVE", assignment.active_tasks)
        + _of_role(f"{prefix}STANDBY", assignment.standby_tasks)
        + _of_role(f"{prefix}WARMUP", assignment.warmup_tasks)
    )


def _of_role(role: str, tasks: Sequence[TaskIds]) -> str:
    if not tasks:
        return ""
    return f"{role}: " + "".join(
        f"{each.subtopology_id}:[{','.join(map(str, each.partitions))}]; " for each in tasks
    )


# The state.


def _state(admin: AdminClient, described: StreamsGroupDescription, *, verbose: bool) -> None:
    group = described.group
    _warn_if_empty(described)
    addresses = {node.id: f"{node.host}:{node.port}" for node in admin.describe_cluster().nodes}
    coordinator = f"{addresses.get(described.coordinator, MISSING)} ({described.coordinator})"
    epochs = (str(group.group_epoch), str(group.assignment_epoch)) if verbose else ()
    titles = ("GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH") if verbose else ()
    widths = (
        max(_MINIMUM, len(group.group_id)),
        max(25, len(coordinator)),
        25,
        *((15, 25) if verbose else ()),
    )
    _print(("GROUP", "COORDINATOR (ID)", "STATE", *titles, "#MEMBERS"), widths)
    _print((group.group_id, coordinator, group.group_state, *epochs, str(len(group.members))), widths)


def _warn_if_empty(described: StreamsGroupDescription) -> None:
    if described.group.group_state == "Empty":
        print_error(f"Streams group '{described.group.group_id}' has no active members.")


# Offsets.


def _offsets(admin: AdminClient, described: StreamsGroupDescription, *, verbose: bool) -> None:
    group_id = described.group.group_id
    if not described.group.members:
        return
    positions = _positions(admin, described)
    topic_width = max([_MINIMUM, *(len(partition.topic) for partition in positions)])
    start = (max(_MINIMUM, len(group_id)), topic_width, 10)
    if not verbose:
        _print(("GROUP", "TOPIC", "PARTITION", "OFFSET-LAG"), start)
        for (topic, index), found in sorted(positions.items()):
            _print((group_id, topic, str(index), str(found.lag)), start)
        return
    widths = (*start, 15, 15, 15, 15)
    titles = ("CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG")
    _print(("GROUP", "TOPIC", "PARTITION", *titles), widths)
    for (topic, index), found in sorted(positions.items()):
        values = (_text(found.offset), _text(found.leader_epoch), str(found.end), str(found.lag))
        _print((group_id, topic, str(index), *values), widths)


def _positions(admin: AdminClient, described: StreamsGroupDescription) -> dict[TopicPartition, Position]:
    """Return the positions in the partitions that active tasks read; without a commit, all records lag."""
    partitions = sorted(described.active_partitions)
    starts = checked(admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST)))
    ends = checked(admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST)))
    committed = checked(admin.list_group_offsets(described.group.group_id))
    found = {}
    for each in partitions:
        end, at = ends[each].offset, committed.get(each)
        if at is None:
            found[each] = Position(None, None, end, end - starts[each].offset)
        else:
            found[each] = Position(at.offset, at.leader_epoch, end, end - at.offset)
    return found


def _text(value: int | None) -> str:
    return MISSING if value is None or value < 0 else str(value)


def _print(cells: Sequence[str], widths: Sequence[int]) -> None:
    print(_line(cells, widths))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return cells in columns; the last one may have no width."""
    padded = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=False)]
    return " ".join([*padded, *cells[len(widths) :]])
