"""Conversion of broker, controller and partition registrations between records and the image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.base.ids import MIGRATING_DIR, DirectoryId, TopicId
from moldau.metadata.features import (
    CORDONED_DIRECTORIES_SUPPORTED,
    DIRECTORY_ASSIGNMENT_SUPPORTED,
    ELR_SUPPORTED,
    VersionRange,
)
from moldau.metadata.image import (
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
    PartitionRegistration,
)
from moldau.protocol.stored.metadata import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)

#: Values of PartitionChangeRecord fields that mean no change.
NO_LEADER_CHANGE = -2
NO_RECOVERY_STATE_CHANGE = -1


def broker_from_record(record: RegisterBrokerRecord) -> BrokerRegistration:
    cordoned = record.cordoned_log_dirs
    return BrokerRegistration(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        features=_features(record.features),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        directories=tuple(record.log_dirs),
        cordoned_directories=None if cordoned is None else tuple(cordoned),
        is_migrating_zk_broker=record.is_migrating_zk_broker,
    )


def broker_to_record(broker: BrokerRegistration, metadata_version: int) -> RegisterBrokerRecord:
    record = RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in broker.endpoints
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
            for name, levels in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
    )
    if metadata_version >= DIRECTORY_ASSIGNMENT_SUPPORTED:
        record.log_dirs = list(broker.directories)
    if metadata_version >= CORDONED_DIRECTORIES_SUPPORTED and broker.cordoned_directories is not None:
        record.cordoned_log_dirs = list(broker.cordoned_directories)
    return record


def controller_from_record(record: RegisterControllerRecord) -> ControllerRegistration:
    return ControllerRegistration(
        id=record.controller_id,
        incarnation_id=record.incarnation_id,
        zk_migration_ready=record.zk_migration_ready,
        endpoints=_endpoints(record.end_points),
        features=_features(record.features),
    )


def controller_to_record(controller: ControllerRegistration) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[
            ControllerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in controller.endpoints
        ],
        features=[
            ControllerFeature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
            for name, levels in controller.features.items()
        ],
    )


def _endpoints(listed: Sequence[Any]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in listed)


def _features(listed: Sequence[Any]) -> dict[str, VersionRange]:
    return {f.name: VersionRange(f.min_supported_version, f.max_supported_version) for f in listed}


def partition_from_record(record: PartitionRecord) -> PartitionRegistration:
    replicas = tuple(record.replicas)
    return PartitionRegistration(
        replicas=replicas,
        directories=_directories(record.directories, len(replicas)),
        isr=tuple(record.isr),
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        removing=tuple(record.removing_replicas),
        adding=tuple(record.adding_replicas),
        elr=tuple(record.eligible_leader_replicas or ()),
        last_known_elr=tuple(record.last_known_elr or ()),
        leader_recovery_state=record.leader_recovery_state,
    )


def partition_to_record(
    topic_id: TopicId, index: int, partition: PartitionRegistration, metadata_version: int
) -> PartitionRecord:
    record = PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )
    if metadata_version >= DIRECTORY_ASSIGNMENT_SUPPORTED:
        record.directories = list(partition.directories)
    if metadata_version >= ELR_SUPPORTED:
        record.eligible_leader_replicas = list(partition.elr) or None
        record.last_known_elr = list(partition.last_known_elr) or None
    return record


def changed_partition(
    partition: PartitionRegistration, change: PartitionChangeRecord
) -> PartitionRegistration:
    """Return the partition after a change. The partition epoch grows by one, the leader epoch only if the
    record sets a leader."""
    replicas = _either(change.replicas, partition.replicas)
    directories = change.directories
    new_leader = change.leader != NO_LEADER_CHANGE
    recovery_state = change.leader_recovery_state
    return PartitionRegistration(
        replicas=replicas,
        directories=_directories(
            partition.directories if directories is None else directories, len(replicas)
        ),
        isr=_either(change.isr, partition.isr),
        leader=change.leader if new_leader else partition.leader,
        leader_epoch=partition.leader_epoch + new_leader,
        partition_epoch=partition.partition_epoch + 1,
        removing=_either(change.removing_replicas, partition.removing),
        adding=_either(change.adding_replicas, partition.adding),
        elr=_either(change.eligible_leader_replicas, partition.elr),
        last_known_elr=_either(change.last_known_elr, partition.last_known_elr),
        leader_recovery_state=(
            partition.leader_recovery_state if recovery_state == NO_RECOVERY_STATE_CHANGE else recovery_state
        ),
    )


def _either(changed: list[int] | None, current: tuple[int, ...]) -> tuple[int, ...]:
    return current if changed is None else tuple(changed)


def _directories(listed: Sequence[DirectoryId], replicas: int) -> tuple[DirectoryId, ...]:
    """Records written before directory assignment (KIP-858) have no directories; brokers report them
    later."""
    return tuple(listed) if len(listed) == replicas else (MIGRATING_DIR,) * replicas
