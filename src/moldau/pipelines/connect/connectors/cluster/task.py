"""A source task that copies by itself: its coroutine runs in the thread of the task, between two polls.

The copy does not return records to the worker, because batches are copied without opening them. Nothing runs
while the connector is paused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.sdk import SourceContext, SourceTask
from moldau.pipelines.mirror.records.source_offset import SourceOffset, source_offset, source_partition

#: How long the coroutine runs until the worker's commands are looked at.
_STEP_S: Final = 0.2


class CoroutineTask(SourceTask):
    def __init__(self, work: Callable[[SourceContext], Coroutine[Any, Any, None]]) -> None:
        """`work` runs until it is cancelled; if it fails, the task fails."""
        self._work = work
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: asyncio.Task[None] | None = None

    def start(self, context: SourceContext) -> None:
        self._loop = asyncio.new_event_loop()
        self._running = self._loop.create_task(self._work(context))

    def poll(self) -> Sequence[SourceRecord]:
        loop, running = self._loop, self._running
        if loop is None or running is None:
            raise ConnectError("The task has not been started.")
        loop.run_until_complete(asyncio.wait([running], timeout=_STEP_S))
        if running.done():
            raise _first(running.exception() or ConnectError("The copy has ended."))
        return ()

    def stop(self) -> None:
        loop, running = self._loop, self._running
        if loop is None or running is None:
            return
        self._loop = None
        running.cancel()
        loop.run_until_complete(asyncio.wait([running]))
        # Parts that were cancelled end now.
        left = asyncio.all_tasks(loop)
        for each in left:
            each.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()


class WorkerOffsets:
    """The offsets of a copy in the offset topic of the Connect worker, with MirrorMaker 2's fields."""

    def __init__(self, context: SourceContext, cluster: str) -> None:
        self._context = context
        self._cluster = cluster

    def load(self, partitions: Sequence[TopicPartition]) -> list[SourceOffset]:
        stored = self._context.offsets([source_partition(self._cluster, each) for each in partitions])
        return [
            source_offset(partition, content)
            for partition, content in zip(partitions, stored, strict=True)
            if content is not None
        ]

    def store(self, offsets: Sequence[SourceOffset]) -> None:
        self._context.store_offsets(
            [(source_partition(self._cluster, each.partition), each.content()) for each in offsets]
        )


def _first(error: BaseException) -> BaseException:
    """Return the error of the part that failed."""
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
