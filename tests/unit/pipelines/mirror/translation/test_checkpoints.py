"""Checkpoints never move back, and commits never reach past the end of a partition."""

from __future__ import annotations

from moldau.base.ids import TopicPartition
from moldau.client.records import OffsetAndMetadata
from moldau.pipelines.mirror.records.checkpoint import Checkpoint
from moldau.pipelines.mirror.records.offset_sync import OffsetSync
from moldau.pipelines.mirror.translation.checkpoints import (
    Checkpoints,
    is_idle,
    offsets_to_commit,
    translated,
)
from moldau.pipelines.mirror.translation.runs import OffsetRuns

SOURCE, REMOTE = TopicPartition("t", 0), TopicPartition("us.t", 0)


def checkpoint(upstream: int, downstream: int) -> Checkpoint:
    return Checkpoint("g", REMOTE, upstream, downstream)


def test_only_news_is_written() -> None:
    known = Checkpoints()
    assert known.update([checkpoint(10, 5)]) == [checkpoint(10, 5)]
    assert known.update([checkpoint(10, 5)]) == []
    assert known.update([checkpoint(12, 4)]) == []
    assert known.update([checkpoint(12, 7)]) == [checkpoint(12, 7)]
    assert known.of("g")[REMOTE].downstream_offset == 7


def test_a_reset_group_takes_its_checkpoint_back() -> None:
    known = Checkpoints()
    known.update([checkpoint(10, 5)])
    assert known.update([checkpoint(3, 1)]) == [checkpoint(3, 1)]
    assert known.update([checkpoint(3, 1)]) == []


def test_only_mirrored_partitions_with_syncs_are_translated() -> None:
    runs = OffsetRuns()
    runs.add(OffsetSync(SOURCE, 20, 10, 10))
    committed = {
        SOURCE: OffsetAndMetadata(15, "note"),
        TopicPartition("t", 1): OffsetAndMetadata(15),
        TopicPartition("other", 0): OffsetAndMetadata(15),
    }
    assert translated("g", committed, {"t": "us.t"}, runs) == [Checkpoint("g", REMOTE, 15, 5, "note")]


def test_commits_move_forward_only_and_not_past_the_end() -> None:
    checkpoints = {REMOTE: checkpoint(10, 5)}
    wanted = {REMOTE: OffsetAndMetadata(5, "")}
    assert offsets_to_commit(checkpoints, {}, {REMOTE: 5}) == wanted
    assert offsets_to_commit(checkpoints, {REMOTE: OffsetAndMetadata(4)}, {REMOTE: 5}) == wanted
    assert offsets_to_commit(checkpoints, {REMOTE: OffsetAndMetadata(5)}, {REMOTE: 5}) == {}
    assert offsets_to_commit(checkpoints, {REMOTE: OffsetAndMetadata(6)}, {REMOTE: 9}) == {}
    assert offsets_to_commit(checkpoints, {}, {REMOTE: 4}) == {}
    assert offsets_to_commit(checkpoints, {}, {}) == {}


def test_only_groups_without_members_are_idle() -> None:
    assert is_idle("Empty")
    assert is_idle("Dead")
    assert not is_idle("Stable")
    assert not is_idle("PreparingRebalance")
