"""The one way to the active controller, whoever it is: here it lives in this process.

Every change waits until it is committed and in place on this node, so that a client that was told "created"
can use what was created. The caller's identity travels in the context.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from moldau.base.clock import Clock
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from moldau.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from moldau.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
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
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from moldau.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from moldau.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from moldau.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from moldau.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.server.context import RequestContext
from moldau.statemachine.decision import Decision

R = TypeVar("R")


class ControllerChannel:
    def __init__(
        self, quorum: MetadataQuorum, clock: Clock, caught_up: Callable[[], Awaitable[None]]
    ) -> None:
        self._quorum = quorum
        self._controller = quorum.controller
        self._clock = clock
        self._caught_up = caught_up

    async def _write(self, decide: Callable[[], Decision[MetadataRecord, R]]) -> R:
        response = await self._quorum.write(decide)
        await self._caught_up()
        return response

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    # On behalf of clients.

    async def create_topics(
        self, context: RequestContext | None, request: CreateTopicsRequest
    ) -> CreateTopicsResponse:
        """Without a context the node itself asks."""
        return await self._write(lambda: self._controller.create_topics(request))

    async def delete_topics(
        self, context: RequestContext, request: DeleteTopicsRequest
    ) -> DeleteTopicsResponse:
        return await self._write(lambda: self._controller.delete_topics(request, context.api_version))

    async def create_partitions(
        self, context: RequestContext, request: CreatePartitionsRequest
    ) -> CreatePartitionsResponse:
        return await self._write(lambda: self._controller.create_partitions(request))

    async def elect_leaders(
        self, context: RequestContext, request: ElectLeadersRequest
    ) -> ElectLeadersResponse:
        return await self._write(lambda: self._controller.elect_leaders(request))

    async def alter_partition_reassignments(
        self, context: RequestContext, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        return await self._write(lambda: self._controller.alter_partition_reassignments(request))

    async def list_partition_reassignments(
        self, context: RequestContext, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        return await self._quorum.read(lambda: self._controller.list_partition_reassignments(request))

    async def incremental_alter_configs(
        self, context: RequestContext, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        return await self._write(lambda: self._controller.incremental_alter_configs(request))

    async def alter_configs(
        self, context: RequestContext, request: AlterConfigsRequest
    ) -> AlterConfigsResponse:
        return await self._write(lambda: self._controller.alter_configs(request))

    async def alter_client_quotas(
        self, context: RequestContext, request: AlterClientQuotasRequest
    ) -> AlterClientQuotasResponse:
        return await self._write(lambda: self._controller.alter_client_quotas(request))

    async def describe_client_quotas(
        self, context: RequestContext, request: DescribeClientQuotasRequest
    ) -> DescribeClientQuotasResponse:
        return await self._quorum.read(lambda: self._controller.describe_client_quotas(request))

    async def update_features(
        self, context: RequestContext, request: UpdateFeaturesRequest
    ) -> UpdateFeaturesResponse:
        return await self._write(lambda: self._controller.update_features(request, context.api_version))

    async def unregister_broker(
        self, context: RequestContext, request: UnregisterBrokerRequest
    ) -> UnregisterBrokerResponse:
        return await self._write(lambda: self._controller.unregister_broker(request))

    # On behalf of this node.

    async def register_controller(
        self, request: ControllerRegistrationRequest
    ) -> ControllerRegistrationResponse:
        return await self._write(lambda: self._controller.register_controller(request))

    async def register_broker(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        return await self._write(lambda: self._controller.register_broker(request, self._now_ms()))

    async def broker_heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        return await self._write(lambda: self._controller.broker_heartbeat(request, self._now_ms()))

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        return await self._quorum.write(lambda: self._controller.allocate_producer_ids(request))

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest
    ) -> AssignReplicasToDirsResponse:
        return await self._quorum.write(lambda: self._controller.assign_replicas_to_dirs(request))
