"""Deleting the remote segments of a partition that this broker leads: expired ones, and interrupted copies.

Expiration does not wait for copies: a store that accepts no more segments is emptied by retention, and a
backlog of copies delays neither retention nor DeleteRecords.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from moldau.base.clock import Clock
from moldau.base.ids import Uuid
from moldau.server.tiered.deletion import RemoteDeletion
from moldau.server.tiered.leader_state import LeaderState, raise_log_start
from moldau.server.tiered.partitions import TieredPartition
from moldau.server.tiered.settings import TieredSettings
from moldau.storage.log.log import Log
from moldau.tiered.state.copying import only_local_bytes
from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.retention import Limits, LocalLog, expired, interrupted
from moldau.tiered.state.segments import RemoteSegment, total_size

#: A copy or deletion that another leader began may take this many task intervals before it is cleaned up.
_GRACE_INTERVALS = 2
_MIN_GRACE_MS = 10_000


class ExpirationTask:
    """`copying` are the segments that this broker is copying."""

    def __init__(
        self,
        clock: Clock,
        settings: TieredSettings,
        state: LeaderState,
        deletion: RemoteDeletion,
        copying: AbstractSet[Uuid],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._state = state
        self._deletion = deletion
        self._copying = copying

    async def run(self, tiered: TieredPartition) -> None:
        """Delete what is due."""
        epoch, log = tiered.partition.leader_epoch, tiered.partition.usable_log()
        remote = await self._state.load(tiered, log, epoch)
        try:
            if tiered.leads_in(epoch) and tiered.partition.log is log:
                await self._expire(tiered, log, remote, epoch)
        finally:
            tiered.show(remote)

    async def _expire(self, tiered: TieredPartition, log: Log, remote: RemoteLog, epoch: int) -> None:
        config, now_ms = log.config, self._clock.time_ms()
        local = LocalLog(
            log.leader_epochs.entries,
            log.log_start_offset,
            log.log_end_offset,
            log.high_watermark,
            only_local_bytes(log),
        )
        limits = Limits(config.retention_ms, config.retention_bytes)
        if not config.delete:
            limits = Limits(-1, -1)
        expiry = expired(remote, local, limits, now_ms)
        if expiry.log_start_offset is not None:
            raise_log_start(tiered, log, expiry.log_start_offset)
        left = interrupted(remote, in_progress=self._copying, now_ms=now_ms, grace_ms=self.grace_ms)
        await self._delete_all(tiered, [*expiry.segments, *left], epoch)

    @property
    def grace_ms(self) -> int:
        interval_ms = self._settings.integer("remote.log.manager.task.interval.ms")
        return max(_MIN_GRACE_MS, _GRACE_INTERVALS * interval_ms)

    async def _delete_all(
        self, tiered: TieredPartition, segments: Sequence[RemoteSegment], epoch: int
    ) -> None:
        """Delete segments, also if some cannot be deleted; then raise the first error."""
        errors: list[Exception] = []
        count, size = len(segments), total_size(segments)
        for segment in segments:
            tiered.delete_lag_segments, tiered.delete_lag_bytes = count, size
            error = await self._deletion.attempt(segment)
            if error is None:
                count, size = count - 1, size - segment.size
            else:
                errors.append(error)
            if not tiered.leads_in(epoch):
                count = size = 0
                break
        tiered.delete_lag_segments, tiered.delete_lag_bytes = count, size
        if errors:
            raise errors[0]
