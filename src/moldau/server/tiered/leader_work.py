"""What the leader of a tiered partition does: copy closed segments, apply retention, clean up.

Each step is announced in the metadata topic before it is done, and confirmed there afterwards. So after a
crash the next leader finds what was left, and a segment counts as copied only when its copy is complete. A
leader that has lost its role notices before the next step; what it copied meanwhile is deleted again, unless
its record was in time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid, random_uuid
from moldau.base.json_log import event
from moldau.server.services import NodeServices
from moldau.server.tiered.metadata import RemoteLogMetadata
from moldau.server.tiered.partitions import TieredPartition
from moldau.server.tiered.quota import RemoteQuota
from moldau.server.tiered.segment_source import LocalSegment
from moldau.server.tiered.settings import TieredSettings
from moldau.server.tiered.store import CustomMetadataTooLarge, StoreCalls
from moldau.storage.log.log import Log
from moldau.tiered.state.copying import (
    Candidate,
    candidates,
    highest_remote_offset,
    only_local_bytes,
    planned_copy,
)
from moldau.tiered.state.lineage import remote_log_start
from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.retention import Limits, LocalLog, expired, interrupted
from moldau.tiered.state.segments import RemoteSegment, SegmentState, metadata_record, total_size
from moldau.tiered.stores.interface import RemoteStoreError

logger = logging.getLogger(__name__)

#: A copy or deletion that another leader began may take this many task intervals before it is cleaned up.
_GRACE_INTERVALS = 2
_LEAST_GRACE_MS = 10_000


class LeaderWork:
    def __init__(
        self,
        services: NodeServices,
        metadata: RemoteLogMetadata,
        store: StoreCalls,
        settings: TieredSettings,
    ) -> None:
        self._services = services
        self._metadata = metadata
        self._store = store
        self._settings = settings
        self._copying: set[Uuid] = set()
        self.copy_quota = RemoteQuota(
            services.clock,
            settings.copy_windows(),
            lambda: settings.integer("remote.log.manager.copy.max.bytes.per.second"),
        )

    async def run(self, tiered: TieredPartition) -> None:
        """Do what is due for a partition that this broker leads."""
        epoch, log = tiered.partition.leader_epoch, tiered.partition.usable_log()
        if tiered.led_epoch != epoch:
            await self._begin(tiered, log, epoch)
        remote = self._remote(tiered)
        log.highest_remote_offset = highest_remote_offset(log, remote)
        try:
            if log.config.copies_to_remote and tiered.refused_epoch != epoch:
                await self._copy_all(tiered, log, epoch)
        finally:
            _show_copy_lag(tiered, log, remote)
        if tiered.leads_in(epoch) and tiered.partition.log is log:
            await self._expire(tiered, log, epoch)
        tiered.show(remote)

    def _remote(self, tiered: TieredPartition) -> RemoteLog:
        remote = self._metadata.log(tiered.id)
        if remote is None:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"the remote log of {tiered.id} is not loaded")
        return remote

    async def _begin(self, tiered: TieredPartition, log: Log, epoch: int) -> None:
        """Learn what earlier leaders have copied, and where the log starts."""
        remote = await self._metadata.synchronize(tiered.id)
        if not tiered.leads_in(epoch):
            return
        start = remote_log_start(
            remote, log.leader_epochs.entries, log.log_start_offset, log.local_log_start_offset
        )
        self._raise_log_start(tiered, log, start)
        tiered.led_epoch = epoch

    def _raise_log_start(self, tiered: TieredPartition, log: Log, offset: int) -> None:
        offset = min(offset, log.high_watermark)
        if offset > log.log_start_offset:
            log.delete_records_before(offset)
            # Answer waiting fetches of followers at once, with the new log start offset.
            tiered.partition.progress.log_end.notify(0)

    # Copying.

    async def _copy_all(self, tiered: TieredPartition, log: Log, epoch: int) -> None:
        for candidate in candidates(log, self._remote(tiered)):
            if not tiered.leads_in(epoch) or tiered.partition.log is not log:
                return
            await self.copy_quota.wait()
            async with self._store.copiers:
                if not tiered.leads_in(epoch) or candidate.segment not in log.segments.items:
                    return
                await self._copy(tiered, log, candidate, epoch)

    async def _copy(self, tiered: TieredPartition, log: Log, candidate: Candidate, epoch: int) -> None:
        services = self._services
        segment = await services.pool.run(
            planned_copy,
            log,
            candidate,
            tiered.id,
            random_uuid(services.randomness),
            broker_id=services.id,
            now_ms=services.clock.time_ms(),
        )
        if segment is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH, f"{tiered.id} has no leader epochs at {candidate.next_offset}"
            )
        self.copy_quota.record(segment.size)
        self._copying.add(segment.id)
        try:
            await self._metadata.publish(tiered.id, metadata_record(segment))
            await self._store_and_confirm(tiered, log, candidate, segment, epoch)
        finally:
            self._copying.discard(segment.id)

    async def _store_and_confirm(
        self, tiered: TieredPartition, log: Log, candidate: Candidate, segment: RemoteSegment, epoch: int
    ) -> None:
        try:
            custom = await self._store.copy(segment, LocalSegment(log, candidate, segment))
            if not tiered.leads_in(epoch):
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"another broker leads {tiered.id} now")
        except CustomMetadataTooLarge as error:
            # Another attempt would end like this one. As in Apache Kafka, the deletion gets the metadata.
            tiered.refused_epoch = epoch
            await self._give_up(error.segment)
            raise
        except (KafkaError, RemoteStoreError):
            await self._give_up(segment)
            raise
        await self._metadata.move(segment, SegmentState.COPY_SEGMENT_FINISHED, custom)
        remote = self._remote(tiered)
        known = remote.get(segment.id)
        if known is None or known.state is not SegmentState.COPY_SEGMENT_FINISHED:
            # Another leader took the copy for abandoned, and may have deleted it before it was complete.
            await self._store.delete(segment)
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"another leader has given up {segment}")
        log.highest_remote_offset = highest_remote_offset(log, remote)
        logger.info(
            "%s is in the remote tier", segment, extra=event("tiered.segment_copied", segment=str(segment))
        )

    async def _give_up(self, segment: RemoteSegment) -> None:
        """Delete an incomplete copy; if that fails, the cleanup of a later run does it."""
        try:
            await self.delete(segment)
        except (KafkaError, RemoteStoreError) as error:
            logger.info(
                "the incomplete copy of %s is deleted later: %s",
                segment,
                error,
                extra=event("tiered.delete_failed", segment=str(segment)),
            )

    # Deleting.

    async def _expire(self, tiered: TieredPartition, log: Log, epoch: int) -> None:
        remote, config, clock = self._remote(tiered), log.config, self._services.clock
        local = LocalLog(
            log.leader_epochs.entries, log.log_start_offset, log.log_end_offset, only_local_bytes(log)
        )
        limits = Limits(config.retention_ms, config.retention_bytes)
        if not config.delete:
            limits = Limits(-1, -1)
        expiry = expired(remote, local, limits, clock.time_ms())
        if expiry.log_start_offset is not None:
            self._raise_log_start(tiered, log, expiry.log_start_offset)
        left = interrupted(remote, in_progress=self._copying, now_ms=clock.time_ms(), grace_ms=self.grace_ms)
        await self._delete_all(tiered, [*expiry.segments, *left], epoch)

    @property
    def grace_ms(self) -> int:
        interval_ms = self._settings.integer("remote.log.manager.task.interval.ms")
        return max(_LEAST_GRACE_MS, _GRACE_INTERVALS * interval_ms)

    async def _delete_all(
        self, tiered: TieredPartition, segments: Sequence[RemoteSegment], epoch: int
    ) -> None:
        for number, segment in enumerate(segments):
            tiered.delete_lag_segments = len(segments) - number
            tiered.delete_lag_bytes = total_size(segments[number:])
            if not tiered.leads_in(epoch):
                return
            await self.delete(segment)
        tiered.delete_lag_segments = tiered.delete_lag_bytes = 0

    async def delete(self, segment: RemoteSegment) -> None:
        """Delete a segment from the remote store."""
        async with self._store.deleters:
            if segment.state is not SegmentState.DELETE_SEGMENT_STARTED:
                await self._metadata.move(segment, SegmentState.DELETE_SEGMENT_STARTED)
            await self._store.delete(segment)
            await self._metadata.move(segment, SegmentState.DELETE_SEGMENT_FINISHED)
        logger.info(
            "%s is deleted from the remote tier",
            segment,
            extra=event("tiered.segment_deleted", segment=str(segment)),
        )


def _show_copy_lag(tiered: TieredPartition, log: Log, remote: RemoteLog) -> None:
    waiting = candidates(log, remote)
    tiered.copy_lag_segments = len(waiting)
    tiered.copy_lag_bytes = sum(candidate.segment.size for candidate in waiting)
