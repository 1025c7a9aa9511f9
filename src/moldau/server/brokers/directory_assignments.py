"""Reports the log directories of this broker's replicas to the controller (AssignReplicasToDirs, KIP-858).

The controller needs the assignment to know which replicas a failed directory takes offline. Assignments made
before the broker is registered wait until `start`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import DirectoryId, Uuid
from moldau.base.log_throttle import LogThrottle
from moldau.controller.brokers.directories import assign_replicas_to_dirs
from moldau.protocol.messages import assign_replicas_to_dirs as messages
from moldau.replication.replica_logs import Placed
from moldau.server.controller.calls import DIRECTORY_ASSIGNMENTS
from moldau.server.controller.channel import ControllerChannel
from moldau.server.tasks import BackgroundTasks

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.1
_MAX_RETRY_SECONDS = 5.0


class DirectoryAssignments:
    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        controller: ControllerChannel,
        tasks: BackgroundTasks,
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._tasks = tasks
        self._pending: list[Placed] = []
        self._started = False

    def start(self) -> None:
        """Report pending assignments: the broker is registered now."""
        self._started = True
        self.add(())

    def add(self, assignments: Iterable[Placed]) -> None:
        self._pending.extend(assignments)
        if self._pending and self._started:
            pending, self._pending = self._pending, []
            self._tasks.start(self._report(pending))

    async def add_result(self, assignments: Awaitable[Iterable[Placed]]) -> None:
        self.add(await assignments)

    async def _report(self, assignments: Sequence[Placed]) -> None:
        """Retry until the controller has stored the assignments."""
        throttle, pause = LogThrottle(), _RETRY_SECONDS
        while True:
            try:
                return await self._send(assignments)
            except KafkaError as error:
                if throttle.is_due(asyncio.get_running_loop().time(), error.code):
                    logger.warning(
                        "the directories of %d replicas are not reported yet: %s", len(assignments), error
                    )
                if error.code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.UNSUPPORTED_VERSION):
                    return None
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_RETRY_SECONDS)

    async def _send(self, assignments: Sequence[Placed]) -> None:
        directories: dict[DirectoryId, dict[Uuid, messages.RequestTopicData]] = {}
        for each in assignments:
            topics = directories.setdefault(each.directory_id, {})
            topic = topics.setdefault(each.topic_id, messages.RequestTopicData(topic_id=each.topic_id))
            topic.partitions.append(messages.RequestPartitionData(partition_index=each.partition))
        request = messages.AssignReplicasToDirsRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                messages.RequestDirectoryData(id=directory, topics=list(topics.values()))
                for directory, topics in directories.items()
            ],
        )
        await self._controller.send(DIRECTORY_ASSIGNMENTS, request, assign_replicas_to_dirs)
