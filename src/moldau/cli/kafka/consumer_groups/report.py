"""The output of `kafka-consumer-groups --describe`: offsets with lag, members, or the state of groups."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.kafka.consumer_groups.listing import PROTOCOLS
from moldau.cli.shared.tool import ToolError, print_error, warn

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.group_types import GroupDescription, MemberDescription
    from moldau.client.records import OffsetAndMetadata

K = TypeVar("K")
V = TypeVar("V")

MISSING = "-"
ABSENT = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})


class Owner(NamedTuple):
    member_id: str
    host: str
    client_id: str


NO_OWNER = Owner(MISSING, MISSING, MISSING)


def describe(admin: AdminClient, groups: Sequence[str], options: argparse.Namespace) -> None:
    described = describe_consumer_groups(admin, groups)
    for group_id in sorted(described):
        group = described[group_id]
        if options.members:
            _print_members(group, verbose=options.verbose)
        elif options.state is not None:
            _print_state(admin, group, verbose=options.verbose)
        else:
            _print_offsets(admin, group, verbose=options.verbose)


def describe_consumer_groups(admin: AdminClient, groups: Sequence[str]) -> dict[str, GroupDescription]:
    """Describe groups; raise an error for one that does not exist or is no consumer group."""
    from moldau.client.admin.client import checked

    described = checked(admin.describe_groups(groups))
    for group in described.values():
        if group.protocol_type not in PROTOCOLS:
            raise ToolError(f"GroupId {group.group_id} is not a consumer group ({group.protocol_type}).")
    return described


def _check_state(group: GroupDescription, rows: int) -> bool:
    """Print a note about the state of the group; return whether there are rows to print."""
    if group.state == "Dead":
        print_error(f"Consumer group '{group.group_id}' does not exist.")
        return False
    if group.state == "Empty":
        warn(f"\nConsumer group '{group.group_id}' has no active members.")
    elif group.state in REBALANCING:
        warn(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.")
    return rows > 0


def _print_offsets(admin: AdminClient, group: GroupDescription, *, verbose: bool) -> None:
    rows = _offset_rows(admin, group)
    if not _check_state(group, len(rows)):
        return
    header = ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    table = [[*header, "CONSUMER-ID", "HOST", "CLIENT-ID"], *rows]
    widths = [_width(table, 0), _width(table, 1), 10, 15, 15, 15, 15, _width(table, 7), _width(table, 8), 0]
    for row in table:
        cells = list(zip(row, widths, strict=True))
        if not verbose:
            del cells[3]
        print("\n" + " ".join(f"{cell:<{width}}" for cell, width in cells), end="")
    print()


def _width(table: Sequence[Sequence[str]], column: int, minimum: int = 15) -> int:
    return max([minimum, *(len(row[column]) for row in table)])


def _offset_rows(admin: AdminClient, group: GroupDescription) -> list[list[str]]:
    from moldau.client.admin.client import checked

    committed = checked(admin.list_group_offsets(group.group_id))
    members = [member for member in group.members if member.assignment]
    members.sort(key=lambda member: -len(member.assignment))
    owners: list[tuple[Owner, list[TopicPartition]]] = [
        (Owner(member.member_id, member.host, member.client_id), member.assignment) for member in members
    ]
    assigned = {partition for member in members for partition in member.assignment}
    owners.append((NO_OWNER, [partition for partition in committed if partition not in assigned]))
    ends = _log_end_offsets(admin, assigned | set(committed))
    return [
        _offset_row(group.group_id, partition, committed.get(partition), ends.get(partition), owner)
        for owner, partitions in owners
        for partition in sorted(partitions)
    ]


def _log_end_offsets(admin: AdminClient, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the log end offsets of the partitions that exist and have a leader."""
    from moldau.client.admin.offsets import OffsetSpec

    wanted = set(partitions)
    described = admin.describe_topics({partition.topic for partition in wanted}) if wanted else {}
    with_leader = {
        TopicPartition(topic.name, partition.partition)
        for topic in _present(described).values()
        for partition in topic.partitions
        if partition.leader >= 0
    }
    found = _present(admin.list_offsets(dict.fromkeys(with_leader & wanted, int(OffsetSpec.LATEST))))
    return {partition: listed.offset for partition, listed in found.items()}


def _present(results: Mapping[K, V | KafkaError]) -> dict[K, V]:
    """Return the results without errors about absent partitions; raise any other error."""
    present: dict[K, V] = {}
    for key, result in results.items():
        if not isinstance(result, KafkaError):
            present[key] = result
        elif result.code not in ABSENT:
            raise result
    return present


def _offset_row(
    group: str,
    partition: TopicPartition,
    committed: OffsetAndMetadata | None,
    end: int | None,
    owner: Owner,
) -> list[str]:
    lag = None if committed is None or end is None else end - committed.offset
    numbers = (
        None if committed is None else committed.leader_epoch,
        None if committed is None else committed.offset,
        end,
        lag,
    )
    return [group, partition.topic, str(partition.partition), *map(_text, numbers), *owner]


def _text(value: int | None) -> str:
    return MISSING if value is None else str(value)


def _print_members(group: GroupDescription, *, verbose: bool) -> None:
    _check_state(group, len(group.members))
    with_instance = any(member.instance_id for member in group.members)
    migrating = len({member.classic for member in group.members if member.classic is not None}) > 1
    table = [["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]]
    details = [["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED"]]
    for member in group.members:
        count = str(len(member.assignment))
        table.append(
            [
                group.group_id,
                member.member_id,
                member.instance_id or "",
                member.host,
                member.client_id,
                count,
            ]
        )
        details.append(_member_details(group, member))
    widths = [
        _width(table, 0),
        _width(table, 1),
        _width(table, 2, 17),
        _width(table, 3),
        _width(table, 4),
        15,
    ]
    detail_widths = [15, _width(details, 1, 20), 15, _width(details, 3, 20), 0]
    print()
    for row, detail in zip(table, details, strict=True):
        cells = list(zip(row, widths, strict=True))
        if not with_instance:
            del cells[2]
        line = "".join(f"{cell:<{width}} " for cell, width in cells)
        if verbose:
            shown = list(zip(detail, detail_widths, strict=True))
            line += " ".join(f"{cell:<{width}}" for cell, width in (shown if migrating else shown[:-1]))
        print(line)


def _member_details(group: GroupDescription, member: MemberDescription) -> list[str]:
    upgraded = MISSING if member.classic is None else str(not member.classic).lower()
    return [
        _text(member.member_epoch),
        assignment_text(member.assignment),
        _text(group.target_assignment_epoch),
        assignment_text(member.target_assignment or ()),
        upgraded,
    ]


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """Format an assignment as `topic:0,1;other:2`."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    texts = [f"{topic}:{','.join(map(str, sorted(ids)))}" for topic, ids in topics.items()]
    return ";".join(sorted(texts)) or MISSING


def _print_state(admin: AdminClient, group: GroupDescription, *, verbose: bool) -> None:
    if not _check_state(group, 1):
        return
    addresses: Mapping[int, str] = {
        node.id: f"{node.host}:{node.port}" for node in admin.describe_cluster(include_fenced=True).nodes
    }
    coordinator = f"{addresses.get(group.coordinator, MISSING)}  ({group.coordinator})"
    header = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    row = [group.group_id, coordinator, group.assignor or MISSING, group.state]
    widths = [_width([row], 0), _width([row], 1, 25), 20, 20]
    if verbose:
        header += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row += [_text(group.group_epoch), _text(group.target_assignment_epoch)]
        widths += [15, 25]
    for line in ([*header, "#MEMBERS"], [*row, str(len(group.members))]):
        cells = zip(line, [*widths, 0], strict=True)
        print("\n" + " ".join(f"{cell:<{width}}" for cell, width in cells), end="")
    print()
