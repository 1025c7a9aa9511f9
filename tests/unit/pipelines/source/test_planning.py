"""How batches are limited and split into tasks, the same ones at a replay."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from moldau.base.ids import TopicPartition
from moldau.pipelines.source.offsets import Positions, SourceOffset, from_json
from moldau.pipelines.source.planning import Range, clipped, limited, ranges, splits

A0, A1, A2 = (TopicPartition("a", number) for number in range(3))

partitions = st.builds(TopicPartition, st.sampled_from(["a", "b.c", "d_e"]), st.integers(0, 3))
offsets = st.integers(0, 10**12)
#: Small sizes: with one record to a task each of them is a task.
spans = st.dictionaries(partitions, st.tuples(offsets, st.integers(0, 2000)), max_size=8)
counts = st.none() | st.integers(1, 40)


def split(whole: list[Range], least: int | None = None, most: int | None = None) -> list[tuple[int, int]]:
    end = SourceOffset({each.partition: each.end for each in whole}, splits=splits(whole, least, most))
    start = {each.partition: each.start for each in whole}
    return [(each.start, each.end) for each in ranges(start, end)]


def test_partition_is_one_task_by_default() -> None:
    assert split([Range(A0, 0, 10), Range(A1, 5, 5), Range(A2, 1, 2)]) == [(0, 10), (1, 2)]


def test_min_partitions_splits_ranges() -> None:
    assert split([Range(A0, 0, 100)], least=4) == [(0, 25), (25, 50), (50, 75), (75, 100)]
    assert split([Range(A0, 0, 5)], least=3) == [(0, 1), (1, 3), (3, 5)]
    assert split([Range(A0, 0, 2)], least=5) == [(0, 1), (1, 2)]


def test_small_ranges_are_not_split() -> None:
    """As in Spark's offset range calculator, the large ranges share the remaining tasks."""
    whole = [Range(A0, 0, 1), Range(A1, 0, 5), Range(A2, 0, 1000)]
    assert split(whole, least=5) == [(0, 1), (0, 5), (0, 333), (333, 666), (666, 1000)]


def test_max_records_per_partition_limits_tasks() -> None:
    assert split([Range(A0, 0, 25)], most=10) == [(0, 8), (8, 16), (16, 25)]
    assert split([Range(A0, 0, 25), Range(A1, 0, 3)], least=2, most=10) == [(0, 8), (8, 16), (16, 25), (0, 3)]


@given(spans, counts, counts)
def test_tasks_cover_every_offset_once(
    wanted: dict[TopicPartition, tuple[int, int]], least: int | None, most: int | None
) -> None:
    start: Positions = {each: begin for each, (begin, _) in wanted.items()}
    end: Positions = {each: begin + size for each, (begin, size) in wanted.items()}
    split = splits([Range(each, start[each], end[each]) for each in sorted(end)], least, most)
    written = json.loads(json.dumps(SourceOffset(end, splits=split).to_json()))
    tasks = ranges(start, from_json(written))
    reached = dict(start)
    for partition, begin, stop in tasks:
        assert begin == reached[partition] < stop
        reached[partition] = stop
    assert reached == end
    assert [each.partition for each in tasks] == sorted(each.partition for each in tasks)
    assert most is None or all(each.size <= most for each in tasks)


@given(spans, st.integers(1, 10**6))
def test_limit_is_distributed_over_partitions(
    wanted: dict[TopicPartition, tuple[int, int]], limit: int
) -> None:
    start: Positions = {each: begin for each, (begin, _) in wanted.items()}
    end: Positions = {each: begin + size for each, (begin, size) in wanted.items()}
    until = limited(start, end, limit)
    taken = {each: until[each] - start[each] for each in end}
    assert all(0 <= taken[each] <= end[each] - start[each] for each in end)
    # Every partition with lag makes progress, so a small limit may be exceeded by one per partition.
    assert all(taken[each] > 0 for each in end if end[each] > start[each])
    assert sum(taken.values()) <= max(limit, 0) + len(end)


def test_limit_is_proportional_to_lag() -> None:
    assert limited({A0: 0, A1: 100}, {A0: 900, A1: 200, A2: 0}, 100) == {A0: 90, A1: 110, A2: 0}
    assert limited({A0: 0, A1: 0}, {A0: 10**15, A1: 1}, 10) == {A0: 9, A1: 1}


def test_new_partitions_start_at_0() -> None:
    assert ranges({A0: 5}, SourceOffset({A0: 7, A1: 3})) == [Range(A0, 5, 7), Range(A1, 0, 3)]


def test_deleted_or_truncated_partitions_have_no_task() -> None:
    assert ranges({A0: 5, A1: 9}, SourceOffset({A0: 3})) == []


def test_recreated_topic_starts_at_0() -> None:
    end = SourceOffset({A0: 3}, recreated=frozenset({"a"}))
    assert ranges({A0: 500}, from_json(end.to_json())) == [Range(A0, 0, 3)]


def test_first_batch_starts_at_its_stored_offsets() -> None:
    end = from_json(SourceOffset({A0: 7}, first={A0: 5}).to_json())
    assert ranges({A0: 100}, end) == [Range(A0, 5, 7)]


def test_range_without_remaining_records_stays_as_empty_task() -> None:
    planned = [Range(A0, 0, 4), Range(A0, 4, 8), Range(A1, 2, 5), Range(A2, 1, 3)]
    assert clipped(planned, {A0: 6, A1: 0}) == [
        Range(A0, 4, 4),
        Range(A0, 6, 8),
        Range(A1, 2, 5),
        Range(A2, 3, 3),
    ]
