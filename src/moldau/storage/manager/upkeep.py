"""Periodic maintenance of all logs; the node calls each coroutine at the interval of its config.

| coroutine | interval |
|---|---|
| `flush_due` | log.flush.scheduler.interval.ms, at most a few seconds: closed segments wait for a flush |
| `retention` | log.retention.check.interval.ms |
| `remove_deleted_files` | about a second; files wait for file.delete.delay.ms before |
| `expire_producers` | producer.id.expiration.check.interval.ms |
| `check` | as often as the operator wants logs to be checked for damage |

An error in one log does not keep the others from being maintained; failing disks are reported. The coroutines
pause regularly, so that thousands of logs do not delay requests.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.loop_slice import LoopSlice
from moldau.base.pool import Pool
from moldau.storage.cleaner.manager import LogCleaner
from moldau.storage.log.log import Log
from moldau.storage.manager.deletion import LogDeletion
from moldau.storage.manager.failures import DirectoryFailures
from moldau.storage.manager.table import LogTable


class LogUpkeep:
    def __init__(
        self,
        clock: Clock,
        pool: Pool,
        table: LogTable,
        cleaner: LogCleaner,
        deletion: LogDeletion,
        failures: DirectoryFailures,
    ) -> None:
        self._clock = clock
        self._pool = pool
        self._table = table
        self._cleaner = cleaner
        self._deletion = deletion
        self._failures = failures

    async def flush_if_due(self, log: Log) -> None:
        """Flush a log that has reached `flush.messages`."""
        if log.flusher.is_due():
            await self._pool.run(log.flusher.flush)

    async def flush_due(self) -> None:
        """Flush the logs that have reached `flush.ms`, and those with closed segments not yet flushed."""
        now_ms = self._clock.time_ms()
        for log in self._table.all():
            if self._table.holds(log) and log.flusher.is_due(now_ms):
                await self._guarded(log, log.flusher.flush)

    async def retention(self) -> int:
        """Apply the retention configs and the log start offsets; return how many segments were deleted.

        A log that is being cleaned is left for the next call.
        """
        now_ms, deleted, loop_slice = self._clock.time_ms(), 0, LoopSlice(self._clock)
        for log in self._table.all():
            if not self._table.holds(log) or self._cleaner.is_busy(log.topic_partition):
                continue
            if log.may_lose_epochs:
                await self._guarded(log, log.save_leader_epochs)
                if not self._table.holds(log):
                    continue
            try:
                deleted += len(log.delete_old_segments(now_ms))
            except KafkaError as error:
                self._failures.report(error)
            await loop_slice.pause()
        return deleted

    async def remove_deleted_files(self) -> None:
        """Remove directories and segment files whose delay has passed."""
        await self._deletion.remove_due()
        for log, error in await self._pool.run(_remove_deleted_files, self._table.all()):
            self._report(log, error)

    async def expire_producers(self, expiration_ms: int) -> None:
        """Forget producers that were idle for `producer.id.expiration.ms`."""
        now_ms = self._clock.time_ms()
        for log in self._table.all():
            log.producer_state.expiration_ms = expiration_ms
            log.producer_state.remove_expired(now_ms)

    async def check(self) -> int:
        """Verify every batch of all closed segments, one log after the other; return how many are damaged."""
        damaged = 0
        for log in self._table.all():
            if self._table.holds(log):
                damaged += await self._guarded(log, log.reader.check) or 0
        return damaged

    async def _guarded(self, log: Log, work: Callable[[], int]) -> int | None:
        """Return the result of work in the pool, or None after reporting an error of the disk."""
        try:
            return await self._pool.run(work)
        except KafkaError as error:
            self._report(log, error)
            return None

    def _report(self, log: Log, error: KafkaError) -> None:
        """Report an error unless the log was deleted meanwhile, which explains missing files."""
        if self._table.holds(log):
            self._failures.report(error)


def _remove_deleted_files(logs: list[Log]) -> list[tuple[Log, KafkaError]]:
    errors: list[tuple[Log, KafkaError]] = []
    for log in logs:
        try:
            log.segments.remove_deleted_files()
        except KafkaError as error:
            errors.append((log, error))
    return errors
