"""AlterPartition: a leader changes the ISR of its partition (KIP-497)."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.brokers.lifecycle import check_broker_epoch
from moldau.controller.partitions.change import Election
from moldau.controller.state import ControllerState, DecisionContext
from moldau.metadata.image import RECOVERED, RECOVERING, PartitionRegistration, TopicImage
from moldau.metadata.records import MetadataRecord
from moldau.metadata.registrations import NO_LEADER_CHANGE, changed_partition
from moldau.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from moldau.statemachine.decision import Decision

#: Sent by a leader that does not know the epoch of a broker.
ANY_EPOCH = -1


def alter_partition(
    state: ControllerState, request: AlterPartitionRequest, context: DecisionContext
) -> Decision[MetadataRecord, AlterPartitionResponse]:
    check_broker_epoch(state, request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    topics = []
    for asked in request.topics:
        topic = state.topic_by_id(asked.topic_id)
        partitions = [
            _answer(state, request.broker_id, topic, wanted, records) for wanted in asked.partitions
        ]
        topics.append(ResponseTopicData(topic_id=asked.topic_id, partitions=partitions))
    return Decision(records, AlterPartitionResponse(topics=topics))


def _answer(
    state: ControllerState,
    broker_id: int,
    topic: TopicImage | None,
    wanted: RequestPartitionData,
    records: list[MetadataRecord],
) -> ResponsePartitionData:
    try:
        partition = _alter(state, broker_id, topic, wanted, records)
    except KafkaError as error:
        return ResponsePartitionData(partition_index=wanted.partition_index, error_code=error.code)
    return ResponsePartitionData(
        partition_index=wanted.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _alter(
    state: ControllerState,
    broker_id: int,
    topic: TopicImage | None,
    wanted: RequestPartitionData,
    records: list[MetadataRecord],
) -> PartitionRegistration:
    """Return the changed partition; a change that elects another leader is made and reported as an error."""
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(wanted.partition_index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    isr = wanted.new_isr_with_epochs or [BrokerState(broker_id=replica) for replica in wanted.new_isr]
    _check_epochs(broker_id, partition, wanted)
    _check_isr(state, partition, wanted, isr)
    change = state.change(topic, wanted.partition_index, partition)
    change.isr = tuple(member.broker_id for member in isr)
    change.leader_recovery_state = wanted.leader_recovery_state
    if state.unclean_election_enabled(topic.name):
        change.election = Election.UNCLEAN
    record = change.record()
    if record is None:
        return partition
    records.append(record)
    if record.leader not in (broker_id, NO_LEADER_CHANGE):
        raise KafkaError(ErrorCode.NEW_LEADER_ELECTED)
    return changed_partition(partition, record)


def _check_epochs(broker_id: int, partition: PartitionRegistration, wanted: RequestPartitionData) -> None:
    """Refuse stale epochs; a newer epoch than ours means that this controller is no longer active."""
    if wanted.leader_epoch > partition.leader_epoch or wanted.partition_epoch > partition.partition_epoch:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if wanted.leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if broker_id != partition.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if wanted.partition_epoch < partition.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)


def _check_isr(
    state: ControllerState,
    partition: PartitionRegistration,
    wanted: RequestPartitionData,
    isr: list[BrokerState],
) -> None:
    members = [member.broker_id for member in isr]
    recovering = wanted.leader_recovery_state == RECOVERING
    makes_sense = (
        members
        and len(set(members)) == len(members)
        and set(members) <= set(partition.replicas)
        and partition.leader in members
        and not (recovering and len(members) > 1)
        and not (recovering and partition.leader_recovery_state == RECOVERED)
    )
    if not makes_sense:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    for member in isr:
        broker = state.image.cluster.brokers.get(member.broker_id)
        known_epoch = broker is not None and member.broker_epoch in (ANY_EPOCH, broker.epoch)
        if broker is None or not broker.is_active or not known_epoch:
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
