"""New partitions, manually assigned or placed, and CreatePartitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.controller.errors import check_record_count
from moldau.controller.state import ControllerState, DecisionContext
from moldau.controller.topics.placement import UsableBroker, place
from moldau.metadata.image import Endpoint, PartitionRegistration, TopicImage
from moldau.metadata.records import MetadataRecord
from moldau.metadata.registrations import partition_to_record
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from moldau.statemachine.decision import Decision


def usable_brokers(state: ControllerState) -> list[UsableBroker]:
    """Return the brokers that may get new replicas: not those in controlled shutdown, unless fenced."""
    return [
        UsableBroker(broker.id, broker.rack, _host(broker.endpoints), broker.fenced)
        for broker in state.image.cluster.brokers.values()
        if (broker.fenced or not broker.in_controlled_shutdown)
        and not state.heartbeats.is_stopping(broker.id)
        and broker.takes_new_partitions
    ]


def _host(endpoints: Sequence[Endpoint]) -> str:
    return endpoints[0].host if endpoints else ""


def place_partitions(state: ControllerState, count: int, replication_factor: int) -> list[list[int]]:
    """Place the replicas of new partitions; raise INVALID_REPLICATION_FACTOR if impossible."""
    start = state.randomness.randrange(0, 1 << 16)
    return place(usable_brokers(state), count, replication_factor, start)


def cannot_replicate(replication_factor: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {replication_factor} time(s): {reason}",
    )


def check_assignment(state: ControllerState, replicas: Sequence[int], replication_factor: int | None) -> None:
    """Check a manual assignment: registered brokers, no duplicates, the common replication factor."""
    if not replicas:
        raise _bad_assignment("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker in sorted(replicas):
        if broker not in state.image.cluster.brokers:
            raise _bad_assignment(
                f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            )
        if broker == previous:
            raise _bad_assignment(
                f"The manual partition assignment includes the broker {broker} more than once."
            )
        previous = broker
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _bad_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this "
            f"is not consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def _bad_assignment(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def assigned_partition(state: ControllerState, index: int, replicas: Sequence[int]) -> PartitionRegistration:
    """Return a new partition with a manual assignment."""
    partition = new_partition(state, replicas)
    if partition is None:
        raise _bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or "
            "in controlled shutdown."
        )
    return partition


def placed_partitions(state: ControllerState, placed: Sequence[Sequence[int]]) -> list[PartitionRegistration]:
    """Return new partitions on placed replicas."""
    partitions = []
    for replicas in placed:
        partition = new_partition(state, replicas)
        if partition is None:
            raise cannot_replicate(
                len(replicas), "All brokers are currently fenced or in controlled shutdown."
            )
        partitions.append(partition)
    return partitions


def new_partition(state: ControllerState, replicas: Sequence[int]) -> PartitionRegistration | None:
    """Return a new partition whose ISR are the active replicas; None if there are none."""
    isr = tuple(replica for replica in replicas if state.is_active(replica))
    if not isr:
        return None
    directories = tuple(state.default_directory(replica) for replica in replicas)
    return PartitionRegistration(tuple(replicas), directories, isr, isr[0])


def partition_records(
    state: ControllerState, topic_id: TopicId, first: int, partitions: Sequence[PartitionRegistration]
) -> list[MetadataRecord]:
    version = state.metadata_version
    return [
        partition_to_record(topic_id, index, partition, version)
        for index, partition in enumerate(partitions, first)
    ]


def create_partitions(
    state: ControllerState, request: CreatePartitionsRequest, context: DecisionContext
) -> Decision[MetadataRecord, CreatePartitionsResponse]:
    records: list[MetadataRecord] = []
    results: list[CreatePartitionsTopicResult] = []
    times = Counter(topic.name for topic in request.topics)
    duplicates = [name for name, count in times.items() if count > 1]
    for name in duplicates:
        error = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        results.append(_result(name, error))
    for topic in request.topics:
        if times[topic.name] > 1:
            continue
        try:
            records += _add_partitions(state, topic, context)
            results.append(_result(topic.name))
        except KafkaError as error:
            results.append(_result(topic.name, error))
    check_record_count(len(records))
    response = CreatePartitionsResponse(results=results)
    return Decision([] if request.validate_only else records, response)


def _result(name: str, error: KafkaError | None = None) -> CreatePartitionsTopicResult:
    if error is None:
        return CreatePartitionsTopicResult(name=name)
    return CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error.message)


def _add_partitions(
    state: ControllerState, wanted: CreatePartitionsTopic, context: DecisionContext
) -> list[MetadataRecord]:
    topic = state.image.topics.by_name.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    additional = _additional(topic, wanted)
    context.apply_partition_change_quota(additional)
    first = len(topic.partitions)
    replication_factor = len(next(iter(topic.partitions.values())).replicas)
    if wanted.assignments is None:
        placed = place_partitions(state, additional, replication_factor)
        return partition_records(state, topic.id, first, placed_partitions(state, placed))
    partitions = []
    for index, assignment in enumerate(wanted.assignments, first):
        check_assignment(state, assignment.broker_ids, replication_factor)
        partitions.append(assigned_partition(state, index, assignment.broker_ids))
    return partition_records(state, topic.id, first, partitions)


def _additional(topic: TopicImage, wanted: CreatePartitionsTopic) -> int:
    current = len(topic.partitions)
    if wanted.count == current:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if wanted.count < current:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {current} partition(s); {wanted.count} would not be an "
            "increase.",
        )
    additional = wanted.count - current
    check_record_count(additional)
    if wanted.assignments is not None and len(wanted.assignments) != additional:
        raise _bad_assignment(
            f"Attempted to add {additional} additional partition(s), but only {len(wanted.assignments)} "
            "assignment(s) were specified."
        )
    return additional
