"""Progress of a partition: acknowledgements in order, in parts, and offsets without records."""

from __future__ import annotations

from moldau.pipelines.mirror.copy.progress import PartitionProgress
from moldau.pipelines.mirror.translation.runs import Run


def test_acknowledgements_move_the_copied_offset() -> None:
    progress = PartitionProgress(10)
    progress.queue([(10, 5)], 15)
    progress.queue([(15, 2), (20, 1)], 25)
    assert (progress.position, progress.copied) == (25, 10)
    assert progress.stored(100, 5) == [Run(10, 100, 5)]
    assert progress.copied == 15
    assert progress.stored(105, 3) == [Run(15, 105, 2), Run(20, 107, 1)]
    assert progress.copied == 25


def test_a_split_batch_is_acknowledged_in_parts() -> None:
    progress = PartitionProgress(0)
    progress.queue([(0, 4)], 6)
    assert progress.stored(50, 1) == [Run(0, 50, 1)]
    assert progress.copied == 1
    assert progress.stored(70, 3) == [Run(1, 70, 3)]
    assert progress.copied == 6


def test_offsets_without_records_count_once_what_precedes_them_is_stored() -> None:
    progress = PartitionProgress(0)
    progress.skip(5)
    assert (progress.position, progress.copied) == (5, 5)
    progress.queue([(5, 1)], 6)
    progress.skip(9)
    assert (progress.position, progress.copied) == (9, 5)
    progress.stored(0, 1)
    assert progress.copied == 9


def test_an_unknown_base_offset_moves_progress_but_gives_no_run() -> None:
    progress = PartitionProgress(0)
    progress.queue([(0, 2)], 2)
    assert progress.stored(-1, 2) == []
    assert progress.copied == 2
