"""Translation of offsets: exact inside runs, never past a record that is yet to be read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.base.ids import TopicPartition
from moldau.pipelines.mirror.records.offset_sync import OffsetSync
from moldau.pipelines.mirror.translation.runs import MAX_RUNS, PartitionRuns, Run
from moldau.pipelines.mirror.translation.syncs import MAX_FINISHED, SyncTracker

T = TopicPartition("t", 0)


def runs_of(*syncs: tuple[int, int, int]) -> PartitionRuns:
    runs = PartitionRuns()
    for sync in syncs:
        runs.add(OffsetSync(T, *sync))
    return runs


def test_nothing_is_known_before_the_first_record() -> None:
    assert runs_of().downstream(5) is None
    assert runs_of((10, 3, 0)).downstream(9) is None
    assert runs_of((10, 3, 0)).upstream(2) is None


def test_a_sync_of_mirror_maker_translates_one_past_itself() -> None:
    runs = runs_of((10, 3, 0))
    assert [runs.downstream(offset) for offset in (10, 11, 500)] == [3, 4, 4]
    assert [runs.upstream(offset) for offset in (3, 4, 500)] == [10, 11, 11]


def test_offsets_inside_a_run_are_exact() -> None:
    runs = runs_of((109, 9, 9))
    assert [runs.downstream(offset) for offset in (100, 104, 109, 110, 115)] == [0, 4, 9, 10, 10]
    assert [runs.upstream(offset) for offset in (0, 4, 9, 10, 15)] == [100, 104, 109, 110, 110]


def test_a_growing_run_replaces_its_beginning_and_neighbours_join() -> None:
    runs = runs_of((4, 4, 4), (9, 9, 9), (14, 14, 4))
    assert runs.end == (15, 15)
    assert runs.downstream(12) == 12


def test_records_copied_again_move_later_offsets_only() -> None:
    runs = runs_of((99, 99, 99), (119, 149, 29))
    assert runs.downstream(80) == 80
    assert [runs.downstream(offset) for offset in (90, 119, 120)] == [120, 149, 150]


def test_a_target_that_begins_again_forgets_everything() -> None:
    runs = runs_of((99, 99, 99), (150, 0, 0))
    assert runs.downstream(99) is None
    assert runs.downstream(150) == 0


def test_a_source_that_begins_again_forgets_everything() -> None:
    runs = runs_of((99, 99, 99), (3, 103, 3))
    assert [runs.downstream(offset) for offset in (0, 3, 99)] == [100, 103, 104]


def test_the_number_of_runs_is_bounded() -> None:
    runs = runs_of(*((2 * number, number, 0) for number in range(3 * MAX_RUNS)))
    assert len(runs._runs) <= MAX_RUNS
    assert runs.downstream(6 * MAX_RUNS - 2) == 3 * MAX_RUNS - 1


@st.composite
def copies(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Source and target offsets of copied records, with gaps on both sides."""
    upstream = downstream = 0
    copied = []
    for gap_up, gap_down, length in draw(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 6)), max_size=30)
    ):
        upstream, downstream = upstream + gap_up, downstream + gap_down
        for _ in range(length):
            copied.append((upstream, downstream))
            upstream, downstream = upstream + 1, downstream + 1
    return copied


@given(copies(), st.sets(st.integers(0, 100)), st.booleans())
def test_no_unread_record_is_skipped(copied: list[tuple[int, int]], flushes: set[int], headers: bool) -> None:
    tracker, runs = SyncTracker(T), PartitionRuns()
    for number, (upstream, downstream) in enumerate(copied):
        tracker.stored(Run(upstream, downstream, 1))
        if number in flushes:
            for sync in tracker.take():
                runs.add(sync if headers else sync._replace(before=0))
    for sync in tracker.take():
        runs.add(sync if headers else sync._replace(before=0))
    for offset in range(200):
        translated = runs.downstream(offset)
        unread = [downstream for upstream, downstream in copied if upstream >= offset]
        assert translated is None or all(translated <= downstream for downstream in unread)
        if headers and translated is not None and unread and len(copied) < MAX_FINISHED:
            read = [downstream for upstream, downstream in copied if upstream < offset]
            assert all(translated > downstream for downstream in read)
        back = runs.upstream(offset)
        unread_there = [upstream for upstream, downstream in copied if downstream >= offset]
        assert back is None or all(back <= upstream for upstream in unread_there)


def test_syncs_are_written_once_and_at_the_end_of_runs() -> None:
    tracker = SyncTracker(T)
    assert tracker.take() == []
    tracker.stored(Run(10, 0, 5))
    tracker.stored(Run(15, 5, 5))
    assert tracker.take() == [OffsetSync(T, 19, 9, 9)]
    assert tracker.take() == []
    tracker.stored(Run(30, 10, 2))
    tracker.stored(Run(40, 12, 1))
    assert tracker.take() == [OffsetSync(T, 31, 11, 1), OffsetSync(T, 40, 12, 0)]


def test_the_run_of_an_earlier_mirror_continues() -> None:
    tracker = SyncTracker(T)
    tracker.resume(Run(20, 0, 10))
    assert tracker.take() == []
    tracker.stored(Run(30, 10, 5))
    assert tracker.take() == [OffsetSync(T, 34, 14, 14)]


def test_records_that_are_copied_again_begin_a_run() -> None:
    tracker = SyncTracker(T)
    tracker.resume(Run(20, 0, 10))
    tracker.stored(Run(25, 10, 5))
    assert tracker.take() == [OffsetSync(T, 29, 14, 4)]
