"""Which offset syncs to write while records are copied.

The end of the current run is written at every flush if it has moved, the end of a finished run at the next
one. Between two flushes the number of finished runs is bounded; the oldest are dropped, which makes the
translation of old offsets less exact, never wrong.
"""

from __future__ import annotations

from collections import deque

from moldau.base.ids import TopicPartition
from moldau.pipelines.mirror.records.offset_sync import OffsetSync
from moldau.pipelines.mirror.translation.runs import Run

MAX_FINISHED = 64


class SyncTracker:
    """The syncs of one source partition."""

    def __init__(self, partition: TopicPartition) -> None:
        self._partition = partition
        self._run: Run | None = None
        self._written = True
        self._finished: deque[OffsetSync] = deque(maxlen=MAX_FINISHED)

    def resume(self, last: Run | None) -> None:
        """Continue the last run of an earlier mirror, if the next record is stored directly after it.

        Its syncs may have been compacted, so that only the next one translates the offsets of its records.
        """
        self._run = last

    def stored(self, new: Run) -> None:
        """Add a run of records that the target has acknowledged."""
        run = self._run
        if run is not None and (run.upstream + run.length, run.downstream + run.length) == new[:2]:
            self._run = run._replace(length=run.length + new.length)
        else:
            if run is not None and not self._written:
                self._finished.append(self._end_of(run))
            self._run = new
        self._written = False

    def take(self) -> list[OffsetSync]:
        """Return the syncs to write now, in order."""
        taken = list(self._finished)
        self._finished.clear()
        if self._run is not None and not self._written:
            taken.append(self._end_of(self._run))
            self._written = True
        return taken

    def _end_of(self, run: Run) -> OffsetSync:
        before = run.length - 1
        return OffsetSync(self._partition, run.upstream + before, run.downstream + before, before)
