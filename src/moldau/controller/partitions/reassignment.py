"""AlterPartitionReassignments and ListPartitionReassignments.

A reassignment adds the new replicas and marks those to be removed. The AlterPartition that brings the last
required replica into the ISR completes it (`PartitionChange`). A reassignment that only reorders replicas is
complete immediately (KIP-455).
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.errors import check_record_count
from moldau.controller.partitions.change import Election
from moldau.controller.state import ControllerState, DecisionContext
from moldau.controller.topics.partitions import check_assignment
from moldau.metadata.image import PartitionRegistration, TopicImage
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from moldau.protocol.stored.metadata import PartitionChangeRecord
from moldau.statemachine.decision import Decision


def alter_partition_reassignments(
    state: ControllerState, request: AlterPartitionReassignmentsRequest, context: DecisionContext
) -> Decision[MetadataRecord, AlterPartitionReassignmentsResponse]:
    records: list[MetadataRecord] = []
    responses = []
    for topic in request.topics:
        partitions = []
        for target in topic.partitions:
            answer = ReassignablePartitionResponse(partition_index=target.partition_index, error_message=None)
            try:
                record = _alter(state, topic.name, target, request.allow_replication_factor_change)
                if record is not None:
                    records.append(record)
            except KafkaError as error:
                answer.error_code, answer.error_message = error.code, error.message
            partitions.append(answer)
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
    check_record_count(len(records))
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None if request.topics else "",
        responses=responses,
    )
    return Decision(records, response)


def _alter(
    state: ControllerState, name: str, target: ReassignablePartition, may_resize: bool
) -> PartitionChangeRecord | None:
    topic = state.image.topics.by_name.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    index = target.partition_index
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if target.replicas is None:
        return _cancel(state, topic, index, partition)
    check_assignment(state, target.replicas, None)
    if not may_resize:
        _check_size(partition, len(target.replicas))
    return _reassign(state, topic, index, partition, tuple(target.replicas))


def _check_size(partition: PartitionRegistration, wanted: int) -> None:
    current = len({*partition.replicas, *partition.adding} - set(partition.removing))
    if current != wanted:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {current} to {wanted}",
        )


def _reassign(
    state: ControllerState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    target: tuple[int, ...],
) -> PartitionChangeRecord | None:
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    change = state.change(topic, index, partition)
    change.replicas = target + removing
    change.removing = removing or change.removing
    change.adding = adding or change.adding
    return change.record()


def _cancel(
    state: ControllerState, topic: TopicImage, index: int, partition: PartitionRegistration
) -> PartitionChangeRecord | None:
    """Cancel a reassignment: restore the original replicas."""
    if not partition.is_reassigning:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = tuple(replica for replica in partition.replicas if replica not in partition.adding)
    isr = tuple(replica for replica in partition.isr if replica not in partition.adding)
    if not replicas:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Invalid replica assignment: addingReplicas contains all replicas.",
        )
    unclean = state.unclean_election_enabled(topic.name)
    if not isr and not unclean:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {topic.name}:{index} because it would require an "
            "unclean leader election.",
        )
    change = state.change(topic, index, partition)
    change.isr = isr or replicas[:1]
    change.replicas, change.removing, change.adding = replicas, (), ()
    if unclean:
        change.election = Election.UNCLEAN
    return change.record()


def list_partition_reassignments(
    state: ControllerState, request: ListPartitionReassignmentsRequest, context: DecisionContext
) -> Decision[MetadataRecord, ListPartitionReassignmentsResponse]:
    if request.topics is None:
        asked = [(topic, list(topic.partitions)) for topic in state.image.topics.by_name.values()]
    else:
        known = state.image.topics.by_name
        asked = [(known[t.name], t.partition_indexes) for t in request.topics if t.name in known]
    topics = [_ongoing(topic, indexes) for topic, indexes in asked]
    ongoing = [topic for topic in topics if topic.partitions]
    return Decision([], ListPartitionReassignmentsResponse(error_message=None, topics=ongoing))


def _ongoing(topic: TopicImage, indexes: list[int]) -> OngoingTopicReassignment:
    found = ((index, topic.partitions.get(index)) for index in indexes)
    return OngoingTopicReassignment(
        name=topic.name,
        partitions=[
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
            for index, partition in found
            if partition is not None and partition.is_reassigning
        ],
    )
