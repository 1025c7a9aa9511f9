"""Copying the closed segments of a partition that this broker leads, oldest first.

A copy is announced in the metadata topic before it begins, and confirmed there when the store has everything.
So after a crash the next leader finds what was left, and a segment counts as copied only when its copy is
complete. A leader that has lost its role notices before the next step; what it copied meanwhile is deleted
again, unless its record was in time.
"""

from __future__ import annotations

import logging

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid, random_uuid
from moldau.base.json_log import event
from moldau.server.services import NodeServices
from moldau.server.tiered.deletion import RemoteDeletion
from moldau.server.tiered.leader_state import LeaderState
from moldau.server.tiered.metadata import RemoteLogMetadata
from moldau.server.tiered.partitions import TieredPartition
from moldau.server.tiered.quota import RemoteQuota
from moldau.server.tiered.segment_source import LocalSegment
from moldau.server.tiered.settings import TieredSettings
from moldau.server.tiered.store import CustomMetadataTooLarge, StoreCalls
from moldau.storage.log.log import Log
from moldau.tiered.state.copying import Candidate, candidates, highest_remote_offset, planned_copy
from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.segments import RemoteSegment, SegmentState, metadata_record
from moldau.tiered.stores.interface import RemoteStoreError

logger = logging.getLogger(__name__)


class CopyTask:
    """`in_progress` are the segments that this broker is copying."""

    def __init__(
        self,
        services: NodeServices,
        metadata: RemoteLogMetadata,
        store: StoreCalls,
        settings: TieredSettings,
        state: LeaderState,
        deletion: RemoteDeletion,
    ) -> None:
        self._services = services
        self._metadata = metadata
        self._store = store
        self._state = state
        self._deletion = deletion
        self.in_progress: set[Uuid] = set()
        self.quota = RemoteQuota(
            services.clock,
            settings.copy_windows(),
            lambda: settings.integer("remote.log.manager.copy.max.bytes.per.second"),
        )

    async def run(self, tiered: TieredPartition) -> None:
        """Copy what is due."""
        epoch, log = tiered.partition.leader_epoch, tiered.partition.usable_log()
        remote = await self._state.load(tiered, log, epoch)
        try:
            if log.config.copies_to_remote and tiered.refused_epoch != epoch:
                await self._copy_all(tiered, log, epoch)
        finally:
            _show_lag(tiered, log, remote)

    async def _copy_all(self, tiered: TieredPartition, log: Log, epoch: int) -> None:
        remote = self._metadata.loaded(tiered.id)
        for candidate in candidates(log, remote):
            if not tiered.leads_in(epoch) or tiered.partition.log is not log:
                return
            _show_lag(tiered, log, remote)
            await self.quota.wait()
            async with self._store.copiers:
                if not tiered.leads_in(epoch) or not log.config.copies_to_remote:
                    return
                # Meanwhile it may have expired, or been truncated.
                if candidate.segment in log.segments.items and candidate.next_offset > log.log_start_offset:
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
        self.quota.record(segment.size)
        self.in_progress.add(segment.id)
        try:
            await self._metadata.publish(tiered.id, metadata_record(segment))
            await self._store_and_confirm(tiered, log, candidate, segment, epoch)
        finally:
            self.in_progress.discard(segment.id)

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
        remote = self._metadata.loaded(tiered.id)
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
        error = await self._deletion.attempt(segment)
        if error is not None:
            logger.info(
                "the incomplete copy of %s is deleted later: %s",
                segment,
                error,
                extra=event("tiered.delete_failed", segment=str(segment)),
            )


def _show_lag(tiered: TieredPartition, log: Log, remote: RemoteLog) -> None:
    waiting = candidates(log, remote)
    tiered.copy_lag_segments = len(waiting)
    tiered.copy_lag_bytes = sum(candidate.segment.size for candidate in waiting)
