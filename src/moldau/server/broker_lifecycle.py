"""This broker as the controller knows it: registered, alive by heartbeat, leaving in order.

Registration carries where clients find us, what we support and our directories; heartbeats say how far we
have followed the metadata log and which directories failed. Before a planned stop the controller is asked to
move our leaderships away, and we stop when it says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.base.errors import KafkaError
from moldau.base.ids import DirectoryId, Uuid
from moldau.metadata.features import supported_features
from moldau.metadata.image import Endpoint, MetadataImage
from moldau.protocol.messages import assign_replicas_to_dirs as assign
from moldau.protocol.messages import broker_registration as registration
from moldau.protocol.messages import controller_registration
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from moldau.replication.replica_manager import Placed
from moldau.server.controller_channel import ControllerChannel

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this process is: fixed from start to stop."""

    node_id: int
    cluster_id: str
    incarnation_id: Uuid
    rack: str | None
    broker_endpoints: tuple[Endpoint, ...]
    controller_endpoints: tuple[Endpoint, ...]


class BrokerLifecycle:
    def __init__(
        self,
        identity: Identity,
        channel: ControllerChannel,
        image: Callable[[], MetadataImage],
        cordoned: Callable[[], list[DirectoryId]],
    ) -> None:
        self.epoch = -1
        self._identity = identity
        self._channel = channel
        self._image = image
        self._cordoned = cordoned
        self._offline: list[DirectoryId] = []

    async def register(self, directories: Sequence[DirectoryId], previous_epoch: int | None) -> None:
        """Tell the controller who we are; afterwards we are known, and fenced."""
        identity = self._identity
        levels = supported_features(self._image().features.levels)
        features: list[dict[str, Any]] = [
            {"name": name, "min_supported_version": each.min, "max_supported_version": each.max}
            for name, each in levels.items()
        ]
        await self._channel.register_controller(
            controller_registration.ControllerRegistrationRequest(
                controller_id=identity.node_id,
                incarnation_id=identity.incarnation_id,
                listeners=[
                    controller_registration.Listener(**each._asdict())
                    for each in identity.controller_endpoints
                ],
                features=[controller_registration.Feature(**each) for each in features],
            )
        )
        answer = await self._channel.register_broker(
            registration.BrokerRegistrationRequest(
                broker_id=identity.node_id,
                cluster_id=identity.cluster_id,
                incarnation_id=identity.incarnation_id,
                listeners=[registration.Listener(**each._asdict()) for each in identity.broker_endpoints],
                features=[registration.Feature(**each) for each in features],
                rack=identity.rack,
                log_dirs=list(directories),
                previous_broker_epoch=-1 if previous_epoch is None else previous_epoch,
            )
        )
        self.epoch = answer.broker_epoch

    async def unfence(self) -> None:
        """Report until the controller lets us serve: it does once we have seen our own registration."""
        while (await self._beat()).is_fenced:
            await asyncio.sleep(0.01)

    async def beat(self) -> None:
        """The heartbeat that keeps the session alive."""
        try:
            await self._beat()
        except KafkaError as error:
            log.warning("heartbeat refused: %s", error)

    async def directory_failed(self, directory: DirectoryId) -> None:
        self._offline.append(directory)
        await self.beat()

    async def report_placement(self, placed: Sequence[Placed]) -> None:
        """Tell the controller which directories replicas really lie in."""
        directories: dict[DirectoryId, dict[Uuid, assign.RequestTopicData]] = {}
        for each in placed:
            topics = directories.setdefault(each.directory_id, {})
            topic = topics.setdefault(each.topic_id, assign.RequestTopicData(topic_id=each.topic_id))
            topic.partitions.append(assign.RequestPartitionData(partition_index=each.partition))
        await self._channel.assign_replicas_to_dirs(
            assign.AssignReplicasToDirsRequest(
                broker_id=self._identity.node_id,
                broker_epoch=self.epoch,
                directories=[
                    assign.RequestDirectoryData(id=directory, topics=list(topics.values()))
                    for directory, topics in directories.items()
                ],
            )
        )

    async def controlled_shutdown(self, timeout_seconds: float) -> None:
        """Have our leaderships moved; give up on it when it takes too long."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while not (await self._beat(want_shut_down=True)).should_shut_down:
                    await asyncio.sleep(0.01)
        except TimeoutError:
            log.warning("the controller did not release this broker in time; stopping anyway")
        except KafkaError as error:
            log.warning("controlled shutdown failed: %s", error)

    async def _beat(self, *, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        return await self._channel.broker_heartbeat(
            BrokerHeartbeatRequest(
                broker_id=self._identity.node_id,
                broker_epoch=self.epoch,
                current_metadata_offset=self._image().offset,
                want_shut_down=want_shut_down,
                offline_log_dirs=list(self._offline),
                cordoned_log_dirs=self._cordoned(),
            )
        )
