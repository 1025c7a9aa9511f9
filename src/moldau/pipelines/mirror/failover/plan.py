"""What a failover or failback does to each group: pure decisions, shown by a dry run. Pure.

A group moves only forward. A group with members on the cluster it moves to keeps its offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from moldau.base.ids import TopicPartition
from moldau.client.records import OffsetAndMetadata
from moldau.pipelines.mirror.translation.checkpoints import is_idle

COMMIT, KEEP, ACTIVE, UNKNOWN = "commit", "keep", "active", "unknown"


@dataclass(frozen=True, slots=True)
class Translation:
    """An offset of a group on the cluster it leaves, and the same place on the cluster it moves to.

    `offset` is None if the place is not known there. `repeated` is the largest number of records that the
    group reads again.
    """

    group: str
    left: TopicPartition
    left_offset: int
    partition: TopicPartition
    offset: int | None
    repeated: int = 0
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class GroupMove:
    """`action` is commit, keep (the group is there already), active (it has members) or unknown."""

    group: str
    partition: TopicPartition
    action: str
    offset: int | None
    current: int | None
    unread: int | None
    repeated: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class UncopiedRecords:
    """Records of a source partition that are not on the target; None if the source is not reachable."""

    partition: TopicPartition
    records: int | None


@dataclass(frozen=True, slots=True)
class MovePlan:
    moves: tuple[GroupMove, ...]
    uncopied: tuple[UncopiedRecords, ...]
    notes: tuple[str, ...] = ()

    @property
    def commits(self) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        wanted: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        for move in self.moves:
            if move.action == COMMIT and move.offset is not None:
                offset = OffsetAndMetadata(move.offset, move.metadata)
                wanted.setdefault(move.group, {})[move.partition] = offset
        return wanted

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        return {
            "moves": [asdict(move) | {"partition": str(move.partition)} for move in self.moves],
            "uncopied": [
                {"partition": str(each.partition), "records": each.records} for each in self.uncopied
            ],
            "notes": list(self.notes),
        }


def planned_moves(
    translations: Iterable[Translation],
    states: Mapping[str, str],
    current: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]],
    log_ends: Mapping[TopicPartition, int],
) -> tuple[GroupMove, ...]:
    """Decide about every translated offset; `states`, `current` and `log_ends` are of the other cluster."""
    return tuple(
        _move(each, states.get(each.group, "Dead"), current.get(each.group, {}), log_ends)
        for each in sorted(translations, key=lambda each: (each.group, each.partition))
    )


def _move(
    each: Translation,
    state: str,
    current: Mapping[TopicPartition, OffsetAndMetadata],
    log_ends: Mapping[TopicPartition, int],
) -> GroupMove:
    committed = current.get(each.partition)
    there = None if committed is None else committed.offset
    end = log_ends.get(each.partition)
    offset = each.offset
    if offset is None or end is None or offset > end:
        action, resulting = UNKNOWN, there
    elif not is_idle(state):
        action, resulting = ACTIVE, there
    elif there is not None and there >= offset:
        action, resulting = KEEP, there
    else:
        action, resulting = COMMIT, offset
    unread = None if end is None or resulting is None else end - resulting
    repeated = each.repeated if action == COMMIT else 0
    return GroupMove(each.group, each.partition, action, offset, there, unread, repeated, each.metadata)
