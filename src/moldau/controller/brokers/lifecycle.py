"""Brokers and controllers: registration, heartbeats, fencing, controlled shutdown, removal.

A broker is registered fenced. It is unfenced when its heartbeat reports a metadata offset after its
registration, gives up its leaderships in a controlled shutdown, and is fenced when its session expires. The
broker epoch is the offset of the registration, so it increases with every registration (KIP-631).
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import DirectoryId
from moldau.controller.brokers.heartbeats import BrokerState
from moldau.controller.brokers.registration import check_listeners, check_registration, registration_record
from moldau.controller.partitions.elections import updates_after
from moldau.controller.state import ControllerState, DecisionContext
from moldau.metadata.features import CONTROLLER_REGISTRATION_SUPPORTED, CORDONED_DIRECTORIES_SUPPORTED
from moldau.metadata.image import BrokerRegistration
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from moldau.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from moldau.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from moldau.protocol.stored.metadata import (
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)
from moldau.statemachine.decision import Decision

_FENCE, _UNFENCE = 1, -1
_IN_CONTROLLED_SHUTDOWN = 1


def check_broker_epoch(state: ControllerState, broker_id: int, epoch: int) -> None:
    broker = state.image.cluster.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}"
        )
    if broker.epoch != epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}",
        )


def register_broker(
    state: ControllerState, request: BrokerRegistrationRequest, context: DecisionContext
) -> Decision[MetadataRecord, BrokerRegistrationResponse]:
    existing = state.image.cluster.brokers.get(request.broker_id)
    check_registration(state, request, existing, context.now_ms)
    record = registration_record(state, request)
    records: list[MetadataRecord] = []
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        record.broker_epoch = existing.epoch
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
    else:
        clean = existing is not None and existing.epoch == request.previous_broker_epoch
        records += _after_restart(state, request.broker_id, clean)
        record.broker_epoch = state.next_offset
    records.append(record)

    def then() -> None:
        state.heartbeats.registered(request.broker_id, record.broker_epoch, record.fenced, context.now_ms)

    return Decision(records, BrokerRegistrationResponse(broker_epoch=record.broker_epoch), then)


def _after_restart(state: ControllerState, broker_id: int, clean: bool) -> list[MetadataRecord]:
    """Remove a restarted broker from every ISR; it rejoins when it has caught up."""
    if state.elr_enabled and not clean:
        return updates_after(state, state.index.held_by(broker_id), unclean=broker_id)
    return updates_after(state, state.index.in_sync(broker_id), leaving=broker_id)


def register_controller(
    state: ControllerState, request: ControllerRegistrationRequest, context: DecisionContext
) -> Decision[MetadataRecord, ControllerRegistrationResponse]:
    if state.metadata_version < CONTROLLER_REGISTRATION_SUPPORTED:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    check_listeners(request.listeners)
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            ControllerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in request.listeners
        ],
        features=[
            ControllerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in request.features
        ],
    )
    return Decision([record], ControllerRegistrationResponse(error_message=""))


def broker_heartbeat(
    state: ControllerState, request: BrokerHeartbeatRequest, context: DecisionContext
) -> Decision[MetadataRecord, BrokerHeartbeatResponse]:
    check_broker_epoch(state, request.broker_id, request.broker_epoch)
    broker = state.image.cluster.brokers[request.broker_id]
    registered_at = state.registration_offset(broker.id)
    current, following = state.heartbeats.next_state(
        request, registered_at, leads=lambda: state.index.leads(broker.id)
    )
    failed = [directory for directory in broker.directories if directory in request.offline_log_dirs]
    if failed and following is BrokerState.UNFENCED:
        # Unfencing could elect replicas in the failed directory; the next heartbeat unfences the broker.
        following = current
    records = [] if current is following else _transition(state, broker, following)
    records += _directory_changes(state, broker, request, failed)
    fenced = following in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)
    last_offset = state.next_offset + len(records) - 1
    state.heartbeats.heard(broker.id, request.current_metadata_offset, context.now_ms)

    def then() -> None:
        if following is BrokerState.CONTROLLED_SHUTDOWN:
            state.heartbeats.begin_shutdown(broker.id, last_offset)
        else:
            state.heartbeats.set_fenced(broker.id, fenced)

    response = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= registered_at,
        is_fenced=fenced,
        should_shut_down=following is BrokerState.SHUTDOWN_NOW,
    )
    return Decision(records, response, then)


def _transition(
    state: ControllerState, broker: BrokerRegistration, following: BrokerState
) -> list[MetadataRecord]:
    if following is BrokerState.UNFENCED:
        unfence = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, fenced=_UNFENCE
        )
        return [unfence, *updates_after(state, state.index.leaderless(), joining=broker.id)]
    if following is BrokerState.CONTROLLED_SHUTDOWN:
        return _begin_shutdown(state, broker)
    return fence(state, broker)


def fence(state: ControllerState, broker: BrokerRegistration) -> list[MetadataRecord]:
    """Remove the broker from every ISR and fence it."""
    records = updates_after(state, state.index.in_sync(broker.id), leaving=broker.id)
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=_FENCE)
    return [*records, change]


def fence_broker(state: ControllerState, broker_id: int, epoch: int) -> Decision[MetadataRecord, None]:
    """Fence a broker before its session expires, unless it has registered again since `epoch`."""
    broker = state.image.cluster.brokers.get(broker_id)
    if broker is None or broker.epoch != epoch or broker.fenced:
        return Decision([], None)
    return Decision(fence(state, broker), None, lambda: state.heartbeats.set_fenced(broker_id, True))


def _begin_shutdown(state: ControllerState, broker: BrokerRegistration) -> list[MetadataRecord]:
    records: list[MetadataRecord] = []
    if not broker.in_controlled_shutdown:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.id,
                broker_epoch=broker.epoch,
                in_controlled_shutdown=_IN_CONTROLLED_SHUTDOWN,
            )
        )
    return records + updates_after(state, state.index.in_sync(broker.id), leaving=broker.id)


def _directory_changes(
    state: ControllerState,
    broker: BrokerRegistration,
    request: BrokerHeartbeatRequest,
    failed: list[DirectoryId],
) -> list[MetadataRecord]:
    """Remove replicas in failed directories from their ISRs, and record cordoned directories."""
    records: list[MetadataRecord] = []
    if failed:
        held = state.partitions_where(
            lambda p: broker.id in p.replicas and p.directory_of(broker.id) in failed
        )
        records += updates_after(state, held, leaving=broker.id)
        records.append(_online(broker, failed))
    cordoned = request.cordoned_log_dirs
    if cordoned is not None and state.metadata_version >= CORDONED_DIRECTORIES_SUPPORTED:
        records += _cordoned(broker, cordoned)
    return records


def _cordoned(broker: BrokerRegistration, cordoned: list[DirectoryId]) -> list[MetadataRecord]:
    known = broker.cordoned_directories
    if known is not None and set(known) == set(cordoned):
        return []
    return [
        BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
        )
    ]


def _online(broker: BrokerRegistration, failed: list[DirectoryId]) -> MetadataRecord:
    online = [directory for directory in broker.directories if directory not in failed]
    return BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=online)


def unregister_broker(
    state: ControllerState, request: UnregisterBrokerRequest, context: DecisionContext
) -> Decision[MetadataRecord, UnregisterBrokerResponse]:
    broker = state.image.cluster.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {request.broker_id} is not currently registered"
        )
    records = updates_after(state, state.index.held_by(broker.id), leaving=broker.id)
    records.append(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch))
    response = UnregisterBrokerResponse(error_message="")
    return Decision(records, response, lambda: state.heartbeats.removed(broker.id))
