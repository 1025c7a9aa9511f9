"""What nodes ask the controller for themselves, decided by the one in this process, if it is the active one.

The handlers of the controller listener and this node's own channel both end here. A controller that is not
active, and a node that has none, answer NOT_CONTROLLER.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.controller import Controller
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from moldau.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from moldau.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from moldau.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from moldau.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.statemachine.decision import Decision

R = TypeVar("R")


class LocalController:
    def __init__(self, quorum: MetadataQuorum, controller: Controller | None, clock: Clock) -> None:
        self._quorum = quorum
        self._controller = controller
        self._clock = clock

    @property
    def is_active(self) -> bool:
        return self._quorum.is_active

    async def write(self, decide: Callable[[Controller], Decision[MetadataRecord, R]]) -> R:
        controller = self._active()
        return await self._quorum.write(lambda: decide(controller))

    async def read(self, look: Callable[[Controller], R]) -> R:
        controller = self._active()
        return await self._quorum.read(lambda: look(controller))

    def _active(self) -> Controller:
        if self._controller is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This node is not a controller.")
        return self._controller

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    # What other nodes ask.

    async def register_controller(
        self, request: ControllerRegistrationRequest
    ) -> ControllerRegistrationResponse:
        return await self.write(lambda controller: controller.register_controller(request))

    async def register_broker(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        return await self.write(lambda controller: controller.register_broker(request, self._now_ms()))

    async def broker_heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        return await self.write(lambda controller: controller.broker_heartbeat(request, self._now_ms()))

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        return await self.write(lambda controller: controller.alter_partition(request))

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        return await self.write(lambda controller: controller.allocate_producer_ids(request))

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest
    ) -> AssignReplicasToDirsResponse:
        return await self.write(lambda controller: controller.assign_replicas_to_dirs(request))

    # What it does by itself.

    async def upkeep(self) -> bool:
        """One step of it; whether there may be another at once."""
        return await self.write(lambda controller: controller.upkeep(self._now_ms()))

    async def broker_gone(self, broker_id: int, broker_epoch: int) -> None:
        """Fence a broker whose process is no longer there."""
        await self.write(lambda controller: controller.broker_gone(broker_id, broker_epoch))
