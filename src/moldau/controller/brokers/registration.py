"""BrokerRegistration: the checks of a registration, and its record."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import DirectoryId, format_uuid
from moldau.config.listeners import SECURITY_PROTOCOLS
from moldau.controller.state import ControllerState
from moldau.metadata.features import (
    DIRECTORY_ASSIGNMENT_SUPPORTED,
    KRAFT_VERSION,
    METADATA_VERSION,
    VersionRange,
)
from moldau.metadata.image import BrokerRegistration
from moldau.protocol.messages import broker_registration, controller_registration
from moldau.protocol.messages.broker_registration import BrokerRegistrationRequest
from moldau.protocol.stored.metadata import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord

_NOT_SUPPORTED = VersionRange(0, 0)


def check_registration(
    state: ControllerState,
    request: BrokerRegistrationRequest,
    existing: BrokerRegistration | None,
    now_ms: int,
) -> None:
    if request.cluster_id != state.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {state.cluster_id}, but got cluster ID {request.cluster_id}",
        )
    if (
        existing is not None
        and existing.incarnation_id != request.incarnation_id
        and state.heartbeats.has_valid_session(existing.id, existing.epoch, now_ms)
    ):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted this "
            "should self-resolve once the heartbeat manager expires the broker's session.",
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers."
        )
    if state.metadata_version >= DIRECTORY_ASSIGNMENT_SUPPORTED:
        _check_directories(state, request)
    check_listeners(request.listeners)
    _check_features(state, request)


def check_listeners(
    listeners: Sequence[broker_registration.Listener | controller_registration.Listener],
) -> None:
    """Refuse unknown security protocols: Apache Kafka fails to replay them."""
    for listener in listeners:
        if listener.security_protocol not in SECURITY_PROTOCOLS.values():
            raise _invalid(f"Unknown security protocol {listener.security_protocol} of {listener.name}")


def _check_directories(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    directories = request.log_dirs
    if not directories:
        raise _invalid("No directories specified in request")
    if any(_is_reserved(directory) for directory in directories):
        raise _invalid("Reserved directory ID in request")
    if len(set(directories)) != len(directories):
        raise _invalid("Duplicate directory ID in request")
    for broker in state.image.cluster.brokers.values():
        for directory in broker.directories:
            if broker.id != request.broker_id and directory in directories:
                raise _invalid(
                    f"Broker {broker.id} is already registered with directory {format_uuid(directory)}"
                )


def _is_reserved(directory: DirectoryId) -> bool:
    return int.from_bytes(directory, "big") < 100


def _check_features(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    """Check that the broker supports every finalized feature level."""
    supported = {
        feature.name: VersionRange(feature.min_supported_version, feature.max_supported_version)
        for feature in request.features
    }
    if METADATA_VERSION not in supported:
        raise _invalid("Request features do not contain 'metadata.version'")
    finalized = {**state.image.features.levels, KRAFT_VERSION: state.kraft_version}
    for name in {**supported, **finalized}:
        level, levels_supported = finalized.get(name, 0), supported.get(name, _NOT_SUPPORTED)
        if not levels_supported.supports(level):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level} of "
                f"{name}. The broker wants a version between {levels_supported.min} and "
                f"{levels_supported.max}, inclusive.",
            )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGISTRATION, message)


def registration_record(state: ControllerState, request: BrokerRegistrationRequest) -> RegisterBrokerRecord:
    """Return a fenced registration; the caller sets its broker epoch."""
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in request.listeners
        ],
        features=[
            BrokerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in request.features
        ],
        rack=request.rack,
    )
    if state.metadata_version >= DIRECTORY_ASSIGNMENT_SUPPORTED:
        record.log_dirs = list(request.log_dirs)
    return record
