"""The controller: every decision about the cluster's metadata, by name.

Each takes a protocol request and gives a `Decision`, the records that make it so and the response, without
changing anything; `replay` changes the state when the records have been appended. Errors about single items
are in the response; an error about the whole request is a `KafkaError`. Times are milliseconds that never
go back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from moldau.base.errors import KafkaError
from moldau.base.ids import ZERO_UUID, Randomness, Uuid
from moldau.config.broker.config import BrokerConfig
from moldau.controller import features, producer_ids
from moldau.controller.activation import activation_records
from moldau.controller.brokers import directories
from moldau.controller.brokers import lifecycle as brokers
from moldau.controller.configs import alter as configs
from moldau.controller.configs import quotas
from moldau.controller.failures import failure_response
from moldau.controller.partitions import elections, isr, reassignment
from moldau.controller.state import ControllerState, UpgradeQuorum
from moldau.controller.topics import lifecycle as topics
from moldau.controller.topics import partitions
from moldau.controller.upkeep import Upkeep
from moldau.metadata.image import MetadataImage
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
from moldau.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from moldau.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from moldau.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
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
from moldau.protocol.schema import Message
from moldau.statemachine.decision import Decision

R = TypeVar("R")


class Controller:
    def __init__(
        self, config: BrokerConfig, cluster_id: str, randomness: Randomness, incarnation_id: Uuid = ZERO_UUID
    ) -> None:
        """`incarnation_id` is that of the broker in the same process."""
        self.state = ControllerState(config, cluster_id, randomness)
        self._incarnation_id = incarnation_id
        self._upkeep = Upkeep(0)

    @property
    def image(self) -> MetadataImage:
        """The metadata with everything decided so far, committed or not."""
        return self.state.image

    # The state.

    def reset(self, image: MetadataImage, next_offset: int) -> None:
        """Go back to what is committed."""
        self.state.reset(image, next_offset)

    def replay(self, records: Sequence[MetadataRecord], base_offset: int) -> None:
        self.state.replay(records, base_offset)

    def activate(
        self,
        bootstrap: Sequence[MetadataRecord],
        *,
        in_transaction: bool,
        kraft_version: int,
        now_ms: int,
        upgrade_quorum: UpgradeQuorum | None = None,
    ) -> Decision[MetadataRecord, None]:
        """Become the active controller; an empty log gets the `bootstrap` records."""
        state = self.state
        state.kraft_version, state.upgrade_quorum = kraft_version, upgrade_quorum
        self._upkeep = Upkeep(now_ms)
        brokers = state.image.cluster.brokers
        former = brokers.get(state.node_id)
        # A broker with the id of this node that is not in this process ran in the one before, and is gone.
        gone = former is not None and former.incarnation_id != self._incarnation_id
        state.heartbeats.activate(brokers.values(), state.node_id if gone else None, now_ms)
        empty = state.image.features.metadata_version is None
        records = activation_records(
            bootstrap if empty else None, in_transaction=in_transaction, min_isr=state.static_min_isr
        )
        return Decision(records, None)

    def upkeep(self, now_ms: int) -> Decision[MetadataRecord, bool]:
        """One step of what nobody asks for; the answer says whether there may be another at once."""
        return self._upkeep.step(self.state, now_ms)

    # Brokers and controllers.

    def register_broker(
        self, request: BrokerRegistrationRequest, now_ms: int
    ) -> Decision[MetadataRecord, BrokerRegistrationResponse]:
        return brokers.register_broker(self.state, request, now_ms)

    def register_controller(
        self, request: ControllerRegistrationRequest
    ) -> Decision[MetadataRecord, ControllerRegistrationResponse]:
        return brokers.register_controller(self.state, request)

    def broker_heartbeat(
        self, request: BrokerHeartbeatRequest, now_ms: int
    ) -> Decision[MetadataRecord, BrokerHeartbeatResponse]:
        return brokers.broker_heartbeat(self.state, request, now_ms)

    def broker_gone(self, broker_id: int, epoch: int) -> Decision[MetadataRecord, None]:
        """The process of a broker is known to be no longer there."""
        return brokers.broker_gone(self.state, broker_id, epoch)

    def unregister_broker(
        self, request: UnregisterBrokerRequest
    ) -> Decision[MetadataRecord, UnregisterBrokerResponse]:
        return brokers.unregister_broker(self.state, request)

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> Decision[MetadataRecord, AllocateProducerIdsResponse]:
        return producer_ids.allocate_producer_ids(self.state, request)

    # Topics and partitions.

    def create_topics(self, request: CreateTopicsRequest) -> Decision[MetadataRecord, CreateTopicsResponse]:
        return _answered(request, lambda: topics.create_topics(self.state, request))

    def delete_topics(
        self, request: DeleteTopicsRequest, version: int
    ) -> Decision[MetadataRecord, DeleteTopicsResponse]:
        return _answered(request, lambda: topics.delete_topics(self.state, request, version))

    def create_partitions(
        self, request: CreatePartitionsRequest
    ) -> Decision[MetadataRecord, CreatePartitionsResponse]:
        return _answered(request, lambda: partitions.create_partitions(self.state, request))

    def alter_partition(
        self, request: AlterPartitionRequest
    ) -> Decision[MetadataRecord, AlterPartitionResponse]:
        return isr.alter_partition(self.state, request)

    def elect_leaders(self, request: ElectLeadersRequest) -> Decision[MetadataRecord, ElectLeadersResponse]:
        return elections.elect_leaders(self.state, request)

    def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> Decision[MetadataRecord, AlterPartitionReassignmentsResponse]:
        return reassignment.alter_partition_reassignments(self.state, request)

    def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        return reassignment.list_partition_reassignments(self.state, request)

    def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest
    ) -> Decision[MetadataRecord, AssignReplicasToDirsResponse]:
        return directories.assign_replicas_to_dirs(self.state, request)

    # Configs, quotas, features.

    def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest
    ) -> Decision[MetadataRecord, IncrementalAlterConfigsResponse]:
        return _answered(request, lambda: configs.incremental_alter_configs(self.state, request))

    def alter_configs(self, request: AlterConfigsRequest) -> Decision[MetadataRecord, AlterConfigsResponse]:
        return _answered(request, lambda: configs.alter_configs(self.state, request))

    def alter_client_quotas(
        self, request: AlterClientQuotasRequest
    ) -> Decision[MetadataRecord, AlterClientQuotasResponse]:
        return _answered(request, lambda: quotas.alter_client_quotas(self.state, request))

    def update_features(
        self, request: UpdateFeaturesRequest, version: int
    ) -> Decision[MetadataRecord, UpdateFeaturesResponse]:
        return features.update_features(self.state, request, version)


def _answered(
    request: Message, decide: Callable[[], Decision[MetadataRecord, R]]
) -> Decision[MetadataRecord, R]:
    """A decision whose answer has no place for an error about the whole request: every item gets it."""
    try:
        return decide()
    except KafkaError as error:
        response = failure_response(request, error)
        if response is None:
            raise
        return Decision([], cast(R, response))
