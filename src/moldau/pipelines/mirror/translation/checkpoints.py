"""Decisions about checkpoints and committed offsets. Pure.

Checkpoints of a partition never move back, unless the group itself was reset to an earlier offset on the
source. Committed offsets of the target never move back at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.base.ids import TopicPartition
from moldau.client.records import OffsetAndMetadata
from moldau.pipelines.mirror.records.checkpoint import Checkpoint
from moldau.pipelines.mirror.translation.runs import OffsetRuns

#: States of a group without members; a group that does not exist is Dead.
_IDLE = frozenset({"Empty", "Dead"})


class Checkpoints:
    """The latest checkpoint of each group and target partition."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, Checkpoint]] = {}

    def load(self, checkpoint: Checkpoint) -> None:
        self._groups.setdefault(checkpoint.group, {})[checkpoint.partition] = checkpoint

    def update(self, candidates: Iterable[Checkpoint]) -> list[Checkpoint]:
        """Take new checkpoints; return those to write."""
        taken = [each for each in candidates if self._is_news(each)]
        for each in taken:
            self.load(each)
        return taken

    def of(self, group: str) -> dict[TopicPartition, Checkpoint]:
        return self._groups.get(group, {})

    @property
    def groups(self) -> list[str]:
        return sorted(self._groups)

    def _is_news(self, new: Checkpoint) -> bool:
        last = self.of(new.group).get(new.partition)
        if last is None or new.downstream_offset > last.downstream_offset:
            return True
        return new.upstream_offset < last.upstream_offset and new.downstream_offset != last.downstream_offset


def translated(
    group: str,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    remote: Mapping[str, str],
    runs: OffsetRuns,
) -> list[Checkpoint]:
    """Translate committed offsets of mirrored topics; `remote` has their names on the target."""
    found = []
    for partition, offset in committed.items():
        if partition.topic not in remote:
            continue
        downstream = runs.downstream(partition, offset.offset)
        if downstream is not None:
            target = TopicPartition(remote[partition.topic], partition.partition)
            found.append(Checkpoint(group, target, offset.offset, downstream, offset.metadata))
    return found


def offsets_to_commit(
    checkpoints: Mapping[TopicPartition, Checkpoint],
    current: Mapping[TopicPartition, OffsetAndMetadata],
    log_ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets that move an idle group forward, none of them after the end of its partition."""
    wanted = {}
    for partition, checkpoint in checkpoints.items():
        offset = checkpoint.downstream_offset
        behind = partition not in current or current[partition].offset < offset
        if behind and offset <= log_ends.get(partition, -1):
            wanted[partition] = OffsetAndMetadata(offset, checkpoint.metadata)
    return wanted


def is_idle(state: str) -> bool:
    return state in _IDLE
