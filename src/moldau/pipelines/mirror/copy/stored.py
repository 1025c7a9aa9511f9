"""What earlier runs of a mirror left on the clusters: copied source offsets, and offset syncs.

Source offsets are in a topic of the mirror, unless the copy has an `OffsetStore`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from moldau.base.ids import TopicPartition
from moldau.client.wire.cluster import Cluster
from moldau.pipelines.mirror.config.flow import Flow
from moldau.pipelines.mirror.records.fields import MalformedRecord
from moldau.pipelines.mirror.records.offset_sync import read_offset_sync
from moldau.pipelines.mirror.records.source_offset import SourceOffset, read_source_offset
from moldau.pipelines.mirror.topic_log import TopicLog
from moldau.pipelines.mirror.translation.runs import OffsetRuns

logger = logging.getLogger(__name__)


class OffsetStore(Protocol):
    """Keeps how far partitions are copied for a copy without an offsets topic of its own."""

    def load(self, partitions: Sequence[TopicPartition]) -> list[SourceOffset]:
        """Return the stored offsets of partitions, of those that have one."""
        ...

    def store(self, offsets: Sequence[SourceOffset]) -> None:
        """Store offsets, and return when they are stored."""
        ...


async def stored_offsets(target: Cluster, flow: Flow) -> dict[TopicPartition, SourceOffset]:
    """Return how far partitions were copied, by us or by MirrorMaker 2."""
    offsets: dict[TopicPartition, SourceOffset] = {}
    for record in await TopicLog(target, flow.offsets_topic).read_new():
        try:
            found = read_source_offset(flow.source, record.key, record.value)
        except MalformedRecord as error:
            logger.warning("%s: a record of %s is ignored: %s", flow, flow.offsets_topic, error)
            continue
        if found is not None:
            offsets[found.partition] = found
    return offsets


class SyncedOffsets:
    """The offset syncs of a flow, followed in their topic."""

    def __init__(self, flow: Flow, source: Cluster, target: Cluster) -> None:
        self.runs = OffsetRuns()
        self._flow = flow
        self._log = TopicLog(source if flow.syncs_on_source else target, flow.offset_syncs_topic)

    async def read_new(self) -> None:
        for record in await self._log.read_new():
            try:
                self.runs.add(read_offset_sync(record.key, record.value, record.headers))
            except MalformedRecord as error:
                logger.warning(
                    "%s: a record of %s is ignored: %s", self._flow, self._flow.offset_syncs_topic, error
                )
