"""The log cleaner of a node: chooses logs, runs jobs, swaps in their results, writes the cleaner checkpoint.

It runs on the event loop. `clean_due` is called regularly (`log.cleaner.backoff.ms`); it cleans until no log
is dirty enough, with `log.cleaner.threads` jobs at a time. Code that changes the closed segments of a log
(truncation, deletion, a move) first calls `pause`, which aborts a running job and prevents others until
`resume`.

The cleaner checkpoint of a log moves only after the last group of a job has been swapped in. After an aborted
job the next one starts from the same offset; that is safe, because compacting a compacted log changes
nothing. A log whose records cannot be read is marked as uncleanable and reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum, auto
from functools import partial

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.base.pool import Pool
from moldau.protocol.records import CorruptBatch
from moldau.storage.cleaner.choice import Dirtiness, dirtiest, examine
from moldau.storage.cleaner.job import (
    CleanedGroup,
    CleanerDied,
    CleanerRunner,
    CleanerSettings,
    CleaningAborted,
    CleanJob,
    CleanResult,
    LastRecord,
)
from moldau.storage.directories.directories import LogDirectories
from moldau.storage.disk.disk import Disk, storage_failure
from moldau.storage.log.log import Log
from moldau.storage.segment.files import CLEANED

logger = logging.getLogger(__name__)


class _Outcome(Enum):
    COMPACTED = auto()
    #: This log was not compacted; others may be.
    SKIPPED = auto()
    #: No other job should begin right away.
    STOP = auto()


class LogCleaner:
    """`logs` is the log manager's table; `on_failure` receives the errors of disks."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        pool: Pool,
        runner: CleanerRunner,
        settings: CleanerSettings,
        logs: Mapping[TopicPartition, Log],
        directories: LogDirectories,
        on_failure: Callable[[KafkaError], None],
    ) -> None:
        self.settings = settings
        self._disk = disk
        self._clock = clock
        self._pool = pool
        self._runner = runner
        self._logs = logs
        self._directories = directories
        self._on_failure = on_failure
        self._running: dict[TopicPartition, asyncio.Event] = {}
        self._paused: Counter[TopicPartition] = Counter()
        self._closed = False
        self.uncleanable: set[TopicPartition] = set()
        self.last_result: CleanResult | None = None
        self.dirtiest_ratio = 0.0
        self._looked_at = clock.monotonic()

    async def clean_due(self) -> int:
        """Clean all logs that are dirty enough, the dirtiest first; return how many were compacted."""
        if not self.settings.enable or self.settings.threads < 1:
            return 0
        self.uncleanable.intersection_update(self._logs)
        compacted = await asyncio.gather(*(self._work() for _ in range(self.settings.threads)))
        await self._runner.rest()
        return sum(compacted)

    @property
    def seconds_since_run(self) -> float:
        """How long ago the logs were examined, at first since the start."""
        return self._clock.monotonic() - self._looked_at

    def is_busy(self, topic_partition: TopicPartition) -> bool:
        """Whether a job is running for the log, or its cleaning is paused."""
        return topic_partition in self._running or topic_partition in self._paused

    async def pause(self, topic_partition: TopicPartition) -> None:
        """Abort the job of a log, if there is one, and start no other until `resume`. Calls may nest."""
        self._paused[topic_partition] += 1
        running = self._running.get(topic_partition)
        if running is not None:
            self._runner.abort(topic_partition)
            await running.wait()

    def resume(self, topic_partition: TopicPartition) -> None:
        self._paused[topic_partition] -= 1
        if self._paused[topic_partition] <= 0:
            del self._paused[topic_partition]

    def abort(self, topic_partition: TopicPartition) -> None:
        """Abort the job of a log, if there is one, without waiting for its end."""
        if topic_partition in self._running:
            self._runner.abort(topic_partition)

    async def close(self) -> None:
        """Abort all jobs and start no others."""
        self._closed = True
        for topic_partition, running in list(self._running.items()):
            self._runner.abort(topic_partition)
            await running.wait()
        await self._runner.rest()

    async def _work(self) -> int:
        compacted = 0
        while not self._closed:
            candidate = await self._choose()
            if candidate is None:
                break
            outcome = await self._clean(candidate)
            if outcome is _Outcome.COMPACTED:
                compacted += 1
            elif outcome is _Outcome.STOP:
                break
        return compacted

    async def _choose(self) -> Dirtiness | None:
        now_ms, self._looked_at = self._clock.time_ms(), self._clock.monotonic()
        free = [
            (log, self._directories.of(log).cleaner_offsets.get(topic_partition))
            for topic_partition, log in self._logs.items()
            if log.config.compact and self._is_free(topic_partition)
        ]
        if not free:
            return None
        examined, errors = await self._pool.run(_examine_all, free, now_ms)
        for error in errors:
            self._on_failure(error)
        # The table may have changed meanwhile; from here to marking the choice there is no await.
        examined = [
            candidate
            for candidate in examined
            if self._logs.get(candidate.log.topic_partition) is candidate.log
            and self._is_free(candidate.log.topic_partition)
        ]
        for candidate in examined:
            if candidate.checkpoint_invalid:
                offsets = self._directories.of(candidate.log).cleaner_offsets
                offsets[candidate.log.topic_partition] = candidate.first_dirty_offset
        self.dirtiest_ratio = max((candidate.ratio for candidate in examined), default=0.0)
        chosen = dirtiest(examined)
        if chosen is not None:
            self._running[chosen.log.topic_partition] = asyncio.Event()
        return chosen

    async def _clean(self, candidate: Dirtiness) -> _Outcome:
        log = candidate.log
        topic_partition = log.topic_partition
        try:
            job = await self._job(candidate)
            if self._closed or topic_partition in self._paused:
                raise CleaningAborted(str(topic_partition))
            result = await self._runner.run(job, partial(self._swap, log))
            await self._note(log, job, result)
            return _Outcome.COMPACTED
        except (CleaningAborted, CleanerDied, CorruptBatch, OSError, KafkaError) as error:
            return await self._give_up(log, error)
        finally:
            self._running.pop(topic_partition).set()

    async def _give_up(self, log: Log, error: Exception) -> _Outcome:
        """Clean up after a failed job and decide how to continue."""
        topic_partition = log.topic_partition
        try:
            await self._pool.run(_discard_unfinished, self._disk, log.directory)
        except OSError as another:
            logger.warning("Cannot remove the unfinished segments of %s: %s", topic_partition, another)
        if isinstance(error, CleaningAborted):
            return _Outcome.SKIPPED
        if isinstance(error, CorruptBatch):
            logger.error("%s is damaged and will not be compacted: %s", topic_partition, error)
            self.uncleanable.add(topic_partition)
            return _Outcome.SKIPPED
        if isinstance(error, CleanerDied | FileNotFoundError):
            # A missing file: the log was changed without pausing its cleaning.
            logger.warning("The compaction of %s will be retried: %s", topic_partition, error)
        elif isinstance(error, OSError):
            self._on_failure(storage_failure(error, log.directory))
        elif isinstance(error, KafkaError):
            self._on_failure(error)
        return _Outcome.STOP

    async def _job(self, candidate: Dirtiness) -> CleanJob:
        log, upper_bound = candidate.log, candidate.first_uncleanable_offset
        segments = tuple(item.base_offset for item in log.segments.items if item.base_offset < upper_bound)
        last_records = tuple(
            (producer_id, LastRecord(offset, epoch))
            for producer_id, (offset, epoch) in log.producer_state.last_records().items()
            if offset is None or offset < upper_bound
        )
        threads = max(1, self.settings.threads)
        return CleanJob(
            topic_partition=log.topic_partition,
            directory=log.directory,
            config=log.config,
            segments=segments,
            first_dirty_offset=candidate.first_dirty_offset,
            first_uncleanable_offset=upper_bound,
            now_ms=self._clock.time_ms(),
            aborted=tuple(await self._pool.run(log.reader.aborted_transactions, segments[0], upper_bound)),
            last_records=last_records,
            dedupe_buffer_size=self.settings.dedupe_buffer_size // threads,
            load_factor=self.settings.io_buffer_load_factor,
            io_max_bytes_per_second=self.settings.io_max_bytes_per_second / threads,
        )

    async def _swap(self, log: Log, group: CleanedGroup) -> None:
        replaced = [segment for segment in log.segments.items if segment.base_offset in group.replaced]
        log.segments.replace([group.base_offset], replaced)
        await self._pool.run(self._disk.sync_dir, log.directory)

    async def _note(self, log: Log, job: CleanJob, result: CleanResult) -> None:
        self.last_result = result
        directory = self._directories.of(log)
        directory.cleaner_offsets[log.topic_partition] = result.next_dirty_offset
        await directory.write_cleaner_offsets()
        logger.info(
            "Compacted %s, dirty offsets %d to %d: %d bytes in %d records became %d in %d",
            log.topic_partition, job.first_dirty_offset, result.next_dirty_offset - 1,
            result.bytes_read, result.records_read, result.bytes_written, result.records_written,
        )  # fmt: skip
        if result.keyless_records:
            logger.warning(
                "%s: removed %d records without a key", log.topic_partition, result.keyless_records
            )

    def _is_free(self, topic_partition: TopicPartition) -> bool:
        return not self.is_busy(topic_partition) and topic_partition not in self.uncleanable


def _examine_all(logs: list[tuple[Log, int | None]], now_ms: int) -> tuple[list[Dirtiness], list[KafkaError]]:
    examined: list[Dirtiness] = []
    errors: list[KafkaError] = []
    for log, checkpoint in logs:
        try:
            examined.append(examine(log, checkpoint, now_ms))
        except FileNotFoundError:
            # The loop has just deleted a segment that was being examined.
            continue
        except OSError as error:
            errors.append(storage_failure(error, log.directory))
    return examined, errors


def _discard_unfinished(disk: Disk, directory: str) -> None:
    """Remove the files of an aborted job from a log's folder; no other job may be running."""
    for name in disk.listdir(directory):
        if name.endswith(CLEANED):
            disk.remove(f"{directory}/{name}")
