"""Runs of copied records, and the translation of offsets by them, in both directions.

A run is a sequence of records that were copied without a gap on either side, so the distance between their
offsets is constant. Offsets inside a run are translated exactly. An offset after a run, and before the next,
is translated to the offset after the run: no record that is yet to be read is skipped, some may be repeated.

Invariants:

- Runs are ordered by both offsets and do not overlap.
- A later sync replaces what it contradicts: after a rewind of the source (records copied again) or of the
  target (the topic was created again) only runs before both offsets of the sync remain.
- Removing a run never makes a translation skip a record, so the number of runs is bounded.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from moldau.base.ids import TopicPartition
from moldau.pipelines.mirror.records.offset_sync import OffsetSync

MAX_RUNS = 4096


class Run(NamedTuple):
    """`length` records from these offsets on."""

    upstream: int
    downstream: int
    length: int


class PartitionRuns:
    """The runs of one partition."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    @property
    def end(self) -> tuple[int, int] | None:
        """The offsets after the last known record, on the source and on the target."""
        last = self.last
        return None if last is None else (last.upstream + last.length, last.downstream + last.length)

    @property
    def last(self) -> Run | None:
        return self._runs[-1] if self._runs else None

    def add(self, sync: OffsetSync) -> None:
        new = Run(sync.upstream - sync.before, sync.downstream - sync.before, sync.before + 1)
        runs = self._runs
        while runs and (kept := _before(runs[-1], new)) != runs[-1]:
            runs.pop()
            if kept is not None:
                runs.append(kept)
                break
        if runs and _adjacent(runs[-1], new):
            last = runs.pop()
            new = Run(last.upstream, last.downstream, last.length + new.length)
        runs.append(new)
        if len(runs) > MAX_RUNS:
            half = MAX_RUNS // 2
            self._runs = runs[:half:2] + runs[half:]

    def downstream(self, upstream: int) -> int | None:
        """Translate an offset of the source; None if it is before the first known record."""
        index = bisect_right(self._runs, upstream, key=lambda run: run.upstream) - 1
        if index < 0:
            return None
        run = self._runs[index]
        return run.downstream + min(upstream - run.upstream, run.length)

    def upstream(self, downstream: int) -> int | None:
        """Translate an offset of the target; None if it is before the first known record."""
        index = bisect_right(self._runs, downstream, key=lambda run: run.downstream) - 1
        if index < 0:
            return None
        run = self._runs[index]
        return run.upstream + min(downstream - run.downstream, run.length)


class OffsetRuns:
    """The runs of all partitions of a flow, by source partition."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, PartitionRuns] = {}

    def add(self, sync: OffsetSync) -> None:
        self._partitions.setdefault(sync.partition, PartitionRuns()).add(sync)

    def of(self, partition: TopicPartition) -> PartitionRuns | None:
        return self._partitions.get(partition)

    def downstream(self, partition: TopicPartition, upstream: int) -> int | None:
        runs = self._partitions.get(partition)
        return None if runs is None else runs.downstream(upstream)

    def upstream(self, partition: TopicPartition, downstream: int) -> int | None:
        runs = self._partitions.get(partition)
        return None if runs is None else runs.upstream(downstream)


def _before(run: Run, new: Run) -> Run | None:
    """Return the part of a run before both offsets of a new run."""
    length = min(run.length, new.upstream - run.upstream, new.downstream - run.downstream)
    return run._replace(length=length) if length > 0 else None


def _adjacent(run: Run, new: Run) -> bool:
    after = (run.upstream + run.length, run.downstream + run.length)
    return after == (new.upstream, new.downstream)
