"""Deleting a segment from the remote store, announced and confirmed in the metadata topic."""

from __future__ import annotations

import logging

from moldau.base.json_log import event
from moldau.server.tiered.metadata import RemoteLogMetadata
from moldau.server.tiered.store import StoreCalls
from moldau.tiered.state.segments import RemoteSegment, SegmentState

logger = logging.getLogger(__name__)


class RemoteDeletion:
    def __init__(self, metadata: RemoteLogMetadata, store: StoreCalls) -> None:
        self._metadata = metadata
        self._store = store

    async def delete(self, segment: RemoteSegment) -> None:
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
