"""The choice of the log to clean: its cleanable range and its dirty ratio."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from moldau.base.ids import TopicPartition
from moldau.storage.cleaner.choice import Dirtiness, dirtiest, examine
from moldau.storage.log.config import LogConfig

NOW = 1_700_000_000_000
PARTITION = TopicPartition("t", 0)


@dataclass
class FakeSegment:
    base_offset: int
    size: int = 100
    largest: int = NOW - 1000
    first: int | None = NOW - 2000

    def largest_timestamp(self) -> int:
        return self.largest

    def first_batch_timestamp(self) -> int | None:
        return self.first


@dataclass
class FakeSegments:
    items: list[FakeSegment]


@dataclass
class FakeLog:
    segments: FakeSegments
    last_stable_offset: int = 10**6
    log_start_offset: int = 0
    log_end_offset: int = 10**6
    config: LogConfig = field(default_factory=lambda: LogConfig(cleanup_policy=frozenset({"compact"})))
    topic_partition: TopicPartition = PARTITION


def log(*bases: int, **changes: Any) -> FakeLog:
    return FakeLog(FakeSegments([FakeSegment(base) for base in bases]), **changes)


def look(fake: FakeLog, checkpoint: int | None = None) -> Dirtiness:
    return examine(fake, checkpoint, NOW)  # type: ignore[arg-type]


def config(**changes: Any) -> LogConfig:
    return LogConfig(cleanup_policy=frozenset({"compact"}), **changes)


def test_everything_but_the_active_segment_is_cleanable_at_first() -> None:
    found = look(log(0, 10, 20))
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (0, 20)
    assert (found.clean_bytes, found.cleanable_bytes, found.ratio) == (0, 200, 1.0)
    assert found.worth_cleaning


def test_log_with_only_an_active_segment_is_not_cleanable() -> None:
    found = look(log(0))
    assert found.cleanable_bytes == 0
    assert not found.worth_cleaning


def test_dirty_part_begins_at_the_checkpoint() -> None:
    found = look(log(0, 10, 20, 30, 40), checkpoint=30)
    assert (found.clean_bytes, found.cleanable_bytes) == (300, 100)
    assert not found.worth_cleaning
    assert look(log(0, 10, 20), checkpoint=20).cleanable_bytes == 0


def test_segment_with_the_checkpoint_counts_as_clean_and_dirty() -> None:
    found = look(log(0, 10, 20), checkpoint=15)
    assert (found.clean_bytes, found.cleanable_bytes) == (200, 100)
    assert found.first_dirty_offset == 15


def test_offsets_after_the_last_stable_offset_are_not_cleanable() -> None:
    found = look(log(0, 10, 20, 30, last_stable_offset=25))
    assert (found.first_uncleanable_offset, found.cleanable_bytes) == (20, 200)
    assert look(log(0, 10, last_stable_offset=5)).cleanable_bytes == 0


def test_segments_younger_than_min_compaction_lag_ms_are_not_cleanable() -> None:
    fake = log(0, 10, 20, 30, config=config(min_compaction_lag_ms=5000))
    for segment, age in zip(fake.segments.items, (9000, 4000, 9000, 0), strict=True):
        segment.largest = NOW - age
    assert look(fake).first_uncleanable_offset == 10


def test_segments_older_than_max_compaction_lag_ms_are_overdue() -> None:
    fake = log(0, 10, 20, 30, 40, config=config(max_compaction_lag_ms=1500, min_cleanable_dirty_ratio=0.9))
    found = look(fake, checkpoint=30)
    assert found.overdue_ms == 500
    assert found.worth_cleaning
    fake.segments.items[3].first = NOW - 1000
    assert not look(fake, checkpoint=30).worth_cleaning
    fake.segments.items[3].first = -1
    assert not look(fake, checkpoint=30).worth_cleaning


def test_overdue_log_without_cleanable_segments_is_skipped() -> None:
    fake = log(0, 10, config=config(max_compaction_lag_ms=1), last_stable_offset=0)
    found = look(fake)
    assert found.overdue_ms > 0
    assert not found.worth_cleaning


@pytest.mark.parametrize("checkpoint", [3, 2 * 10**6])
def test_invalid_cleaner_checkpoint_is_ignored(checkpoint: int) -> None:
    found = look(log(5, 10, 20, log_start_offset=7), checkpoint=checkpoint)
    assert found.checkpoint_invalid
    assert found.first_dirty_offset == 7


def test_dirty_ratio_must_exceed_min_cleanable_dirty_ratio() -> None:
    half = log(0, 10, 20, config=config(min_cleanable_dirty_ratio=0.5))
    assert not look(half, checkpoint=10).worth_cleaning
    half.config = config(min_cleanable_dirty_ratio=0.49)
    assert look(half, checkpoint=10).worth_cleaning
    nothing = log(0, 10, config=config(min_cleanable_dirty_ratio=0.0))
    assert not look(nothing, checkpoint=10).worth_cleaning


def test_log_with_the_highest_dirty_ratio_is_chosen() -> None:
    a = look(log(0, 10, 20, 30), checkpoint=10)
    b = look(log(0, 10, 20, 30), checkpoint=0)
    c = look(log(0, 10, 20, 30), checkpoint=30)
    assert dirtiest([a, b, c]) is b
    assert dirtiest([c]) is None
    assert dirtiest([]) is None
