"""Heartbeats: a record per interval in the target's topic `heartbeats`.

The opposite pair of clusters emits them into the source, from where the flow mirrors them, so that consumers
of the target see that the flow works.
"""

from __future__ import annotations

from moldau.base.clock import Clock
from moldau.client.batches.writer import AsyncBatchWriter
from moldau.pipelines.mirror.config.flow import Flow
from moldau.pipelines.mirror.flows.periodic import repeat
from moldau.pipelines.mirror.records.heartbeat import Heartbeat
from moldau.pipelines.mirror.topic_log import NewRecord, TopicAppender, create_compacted


class Heartbeats:
    """The heartbeats of a pair of clusters, whose flow need not be enabled."""

    def __init__(self, pair: Flow, clock: Clock) -> None:
        self._pair = pair
        self._clock = clock
        self._writer: AsyncBatchWriter | None = None

    async def run(self) -> None:
        try:
            interval = self._pair["emit.heartbeats.interval.seconds"]
            await repeat(f"{self._pair}: emitting heartbeats", interval, self._emit)
        finally:
            await self._close()

    async def _emit(self) -> None:
        writer = self._writer
        try:
            if writer is None:
                writer = self._writer = await self._open()
            now = self._clock.time_ms()
            beat = Heartbeat(self._pair.source, self._pair.target, now)
            topic = self._pair.policy.heartbeats_topic
            await TopicAppender(writer).append(topic, [NewRecord(beat.key(), beat.value())], now)
            await writer.flush()
        except BaseException:
            await self._close()
            raise

    async def _open(self) -> AsyncBatchWriter:
        writer = AsyncBatchWriter(self._pair.target_settings("heartbeats"))
        factor = "heartbeats.topic.replication.factor"
        topic = self._pair.policy.heartbeats_topic
        await create_compacted(writer.cluster, topic, 1, self._pair[factor], factor)
        return writer

    async def _close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.close()
