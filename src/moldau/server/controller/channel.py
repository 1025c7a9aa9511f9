"""The one way to the active controller, whoever and wherever it is.

What clients ask for travels in an Envelope with the caller's identity when the controller is another node;
what this node asks for itself travels as it is. What comes in on the controller listener is decided here or
not at all: whoever asks a controller that is not active hears NOT_CONTROLLER and looks for the right one.

A change waits until it is committed and in place on this node, so that a client that was told "created" can
use what was created. An error about the whole request is a `KafkaError`, wherever it was decided.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.controller import Controller
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from moldau.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from moldau.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from moldau.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
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
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from moldau.protocol.messages.envelope import EnvelopeResponse
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
from moldau.protocol.schema import Message
from moldau.server.controller.calls import (
    ALTER_PARTITION,
    DIRECTORY_ASSIGNMENTS,
    FORWARDING,
    HEARTBEAT,
    REGISTRATION,
    ControllerCalls,
)
from moldau.server.controller.local import LocalController
from moldau.server.controller.visibility import visible
from moldau.server.dispatch.context import RequestContext
from moldau.server.dispatch.envelopes import unwrap_response, wrap_request
from moldau.server.publisher import Publisher
from moldau.statemachine.decision import Decision

R = TypeVar("R")
Decide = Callable[[Controller], Decision[MetadataRecord, R]]

#: Kafka's patience with a controller that cannot be found.
_TIMEOUT_MS = 60_000
#: How long an answer is held back until this node has followed the change.
_VISIBLE_SECONDS = 1.0


class ControllerChannel:
    def __init__(
        self,
        local: LocalController,
        calls: ControllerCalls,
        publisher: Publisher,
        *,
        is_controller_listener: Callable[[str], bool],
        heartbeat_timeout_ms: int,
    ) -> None:
        self._local = local
        self._calls = calls
        self._publisher = publisher
        self._is_controller_listener = is_controller_listener
        self._heartbeat_timeout_ms = heartbeat_timeout_ms

    def close(self) -> None:
        self._calls.close()

    # On behalf of clients.

    async def create_topics(
        self, context: RequestContext | None, request: CreateTopicsRequest
    ) -> CreateTopicsResponse:
        """Without a context the node itself asks."""
        return await self._change(context, request, lambda controller: controller.create_topics(request))

    async def delete_topics(
        self, context: RequestContext, request: DeleteTopicsRequest
    ) -> DeleteTopicsResponse:
        version = context.api_version
        return await self._change(
            context, request, lambda controller: controller.delete_topics(request, version)
        )

    async def create_partitions(
        self, context: RequestContext, request: CreatePartitionsRequest
    ) -> CreatePartitionsResponse:
        return await self._change(context, request, lambda controller: controller.create_partitions(request))

    async def elect_leaders(
        self, context: RequestContext, request: ElectLeadersRequest
    ) -> ElectLeadersResponse:
        return await self._change(context, request, lambda controller: controller.elect_leaders(request))

    async def alter_partition_reassignments(
        self, context: RequestContext, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        return await self._change(
            context, request, lambda controller: controller.alter_partition_reassignments(request)
        )

    async def list_partition_reassignments(
        self, context: RequestContext, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        def here() -> Awaitable[ListPartitionReassignmentsResponse]:
            return self._local.read(lambda controller: controller.list_partition_reassignments(request))

        return await self.forward(context, request, here)

    async def incremental_alter_configs(
        self, context: RequestContext, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        return await self._change(
            context, request, lambda controller: controller.incremental_alter_configs(request)
        )

    async def alter_configs(
        self, context: RequestContext, request: AlterConfigsRequest
    ) -> AlterConfigsResponse:
        return await self._change(context, request, lambda controller: controller.alter_configs(request))

    async def alter_client_quotas(
        self, context: RequestContext, request: AlterClientQuotasRequest
    ) -> AlterClientQuotasResponse:
        return await self._change(
            context, request, lambda controller: controller.alter_client_quotas(request)
        )

    async def update_features(
        self, context: RequestContext, request: UpdateFeaturesRequest
    ) -> UpdateFeaturesResponse:
        version = context.api_version
        return await self._change(
            context, request, lambda controller: controller.update_features(request, version)
        )

    async def unregister_broker(
        self, context: RequestContext, request: UnregisterBrokerRequest
    ) -> UnregisterBrokerResponse:
        return await self._change(context, request, lambda controller: controller.unregister_broker(request))

    async def forward(
        self, context: RequestContext | None, request: Message, here: Callable[[], Awaitable[R]]
    ) -> R:
        """Let the active controller answer; `here` does it when that is this node."""
        if context is not None and self._is_controller_listener(context.listener_name):
            return await here()
        if context is None:
            return await self._calls.call(FORWARDING, request, here, _TIMEOUT_MS)
        envelope: Message = wrap_request(context, request)
        answer: Any = await self._calls.call(FORWARDING, envelope, here, _TIMEOUT_MS)
        if not isinstance(answer, EnvelopeResponse):
            return cast(R, answer)
        response: R = unwrap_response(context, request, answer)
        return response

    async def _change(self, context: RequestContext | None, request: Message, decide: Decide[R]) -> R:
        response = await self.forward(context, request, lambda: self._local.write(decide))
        await self._publisher.caught_up()
        shows = visible(request, cast(Message, response))
        if shows is not None:
            await self._publisher.until(shows, _VISIBLE_SECONDS)
        return response

    # On behalf of this node.

    async def register_controller(
        self, request: ControllerRegistrationRequest
    ) -> ControllerRegistrationResponse:
        return await self._own(
            REGISTRATION, request, lambda: self._local.register_controller(request), _TIMEOUT_MS
        )

    async def register_broker(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        return await self._own(
            HEARTBEAT, request, lambda: self._local.register_broker(request), self._heartbeat_timeout_ms
        )

    async def broker_heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        return await self._own(
            HEARTBEAT, request, lambda: self._local.broker_heartbeat(request), self._heartbeat_timeout_ms
        )

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        return await self._own(
            ALTER_PARTITION, request, lambda: self._local.alter_partition(request), _TIMEOUT_MS
        )

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        return await self._own(
            FORWARDING, request, lambda: self._local.allocate_producer_ids(request), _TIMEOUT_MS
        )

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest
    ) -> AssignReplicasToDirsResponse:
        return await self._own(
            DIRECTORY_ASSIGNMENTS, request, lambda: self._local.assign_replicas_to_dirs(request), _TIMEOUT_MS
        )

    async def _own(
        self, purpose: str, request: Message, here: Callable[[], Awaitable[R]], timeout_ms: int
    ) -> R:
        answer: Any = await self._calls.call(purpose, request, here, timeout_ms)
        if answer.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode(answer.error_code), getattr(answer, "error_message", None))
        return cast(R, answer)
