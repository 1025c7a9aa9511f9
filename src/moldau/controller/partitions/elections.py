"""Leader elections: after a broker changes its state, and by ElectLeaders."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.errors import check_record_count, default_error
from moldau.controller.partitions.change import Election, PartitionChange
from moldau.controller.partitions.index import Entry
from moldau.controller.state import ControllerState, DecisionContext
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from moldau.statemachine.decision import Decision

PREFERRED = 0
UNCLEAN = 1


def updates_after(
    state: ControllerState,
    partitions: Iterable[Entry],
    *,
    leaving: int | None = None,
    joining: int | None = None,
    unclean: int | None = None,
) -> list[MetadataRecord]:
    """Return the changes of partitions after a change of one broker.

    `leaving` is removed from every ISR and may not lead; `joining` may lead although it is still fenced;
    `unclean` restarted after an unclean shutdown and is also removed from the ELR.
    """

    def active(broker: int) -> bool:
        if broker in (leaving, unclean):
            return False
        return broker == joining or state.is_active(broker)

    records: list[MetadataRecord] = []
    # Cached: thousands of partitions may belong to a few hundred topics.
    rules = cache(lambda topic_id: state.change_rules(state.image.topics.by_id[topic_id], active))
    elects_uncleanly = cache(state.unclean_election_enabled)
    for topic, index, partition in partitions:
        change = PartitionChange(partition, topic.id, index, rules(topic.id))
        change.isr = tuple(replica for replica in partition.isr if replica not in (leaving, unclean))
        if unclean is not None:
            change.unclean_shutdown = (unclean,)
        if elects_uncleanly(topic.name):
            change.election = Election.UNCLEAN
        record = change.record()
        if record is not None:
            records.append(record)
    return records


def elect_leaders(
    state: ControllerState, request: ElectLeadersRequest, context: DecisionContext
) -> Decision[MetadataRecord, ElectLeadersResponse]:
    if request.election_type not in (PREFERRED, UNCLEAN):
        return Decision([], _refused(request, f"Unknown election type {request.election_type}"))
    records: list[MetadataRecord] = []
    if request.topic_partitions is None:
        results = _elect_everywhere(state, request.election_type, records)
    else:
        results = [
            ReplicaElectionResult(
                topic=asked.topic,
                partition_result=[
                    _elect(state, asked.topic, index, request.election_type, records)
                    for index in asked.partitions
                ],
            )
            for asked in request.topic_partitions
        ]
    check_record_count(len(records))
    return Decision(records, ElectLeadersResponse(replica_election_results=results))


def _refused(request: ElectLeadersRequest, message: str) -> ElectLeadersResponse:
    """Return the same error for the request and for every partition in it."""
    code = ErrorCode.INVALID_REQUEST
    results = [
        ReplicaElectionResult(
            topic=asked.topic,
            partition_result=[
                PartitionResult(partition_id=index, error_code=code, error_message=message)
                for index in asked.partitions
            ],
        )
        for asked in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=code, replica_election_results=results)


def _elect_everywhere(
    state: ControllerState, election_type: int, records: list[MetadataRecord]
) -> list[ReplicaElectionResult]:
    """Elect the leaders of all partitions; leave out those that need no election."""
    results = []
    for topic in state.image.topics.by_name.values():
        outcomes = [_elect(state, topic.name, index, election_type, records) for index in topic.partitions]
        needed = [result for result in outcomes if result.error_code != ErrorCode.ELECTION_NOT_NEEDED]
        results.append(ReplicaElectionResult(topic=topic.name, partition_result=needed))
    return results


def _elect(
    state: ControllerState, topic: str, index: int, election_type: int, records: list[MetadataRecord]
) -> PartitionResult:
    try:
        records.append(elect(state, topic, index, election_type))
    except KafkaError as error:
        return PartitionResult(partition_id=index, error_code=error.code, error_message=error.message)
    return PartitionResult(partition_id=index, error_message=None)


def elect(state: ControllerState, topic_name: str, index: int, election_type: int) -> MetadataRecord:
    """Return the record of an election; raise KafkaError if there is none."""
    topic = state.image.topics.by_name.get(topic_name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic_name}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic_name}-{index}")
    settled = partition.leader == partition.preferred_leader
    if settled if election_type == PREFERRED else partition.has_leader:
        raise default_error(ErrorCode.ELECTION_NOT_NEEDED)
    change = state.change(topic, index, partition)
    change.election = Election.PREFERRED if election_type == PREFERRED else Election.UNCLEAN
    record = change.record()
    if record is None:
        raise default_error(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if election_type == PREFERRED
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
    return record
