"""Deleting segments from the remote store, announced and confirmed in the metadata topic.

Many deletions take their time, so each one begins with the state that its segment has by then.
"""

from __future__ import annotations

import logging

from moldau.base.errors import KafkaError
from moldau.base.json_log import event
from moldau.server.tiered.metadata import RemoteLogMetadata
from moldau.server.tiered.store import StoreCalls
from moldau.tiered.state.segments import RemoteSegment, SegmentState
from moldau.tiered.stores.interface import RemoteStoreError

logger = logging.getLogger(__name__)


class RemoteDeletion:
    def __init__(self, metadata: RemoteLogMetadata, store: StoreCalls) -> None:
        self._metadata = metadata
        self._store = store

    async def attempt(self, segment: RemoteSegment) -> Exception | None:
        """Delete a segment; return the error if that is not possible now."""
        try:
            await self.delete(segment)
        except (KafkaError, RemoteStoreError) as error:
            return error
        return None

    async def delete(self, segment: RemoteSegment) -> None:
        """Delete a segment. One that was taken for an incomplete copy stays if it is confirmed by now."""
        async with self._store.deleters:
            known = self._metadata.loaded(segment.partition_id).get(segment.id)
            if known is None:
                # Another broker has recorded its deletion; something may have arrived in the store since.
                await self._store.delete(segment)
                return
            finished = SegmentState.COPY_SEGMENT_FINISHED
            if known.state is finished and segment.state is not finished:
                return
            if known.state is not SegmentState.DELETE_SEGMENT_STARTED:
                await self._metadata.move(segment, SegmentState.DELETE_SEGMENT_STARTED)
            await self._store.delete(segment)
            await self._metadata.move(segment, SegmentState.DELETE_SEGMENT_FINISHED)
        logger.info(
            "%s is deleted from the remote tier",
            segment,
            extra=event("tiered.segment_deleted", segment=str(segment)),
        )
