"""CreateTopics and DeleteTopics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import METADATA_TOPIC, ZERO_UUID, TopicId, random_uuid
from moldau.controller.configs.alter import new_topic_config_records
from moldau.controller.errors import MAX_RECORDS_PER_REQUEST, check_record_count, default_error
from moldau.controller.state import ControllerState, DecisionContext
from moldau.controller.topics.names import topic_name_problem
from moldau.controller.topics.partitions import (
    assigned_partition,
    cannot_replicate,
    check_assignment,
    partition_records,
    place_partitions,
    placed_partitions,
)
from moldau.controller.topics.settings import effective_topic_configs
from moldau.metadata.image import PartitionRegistration
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from moldau.protocol.stored.metadata import RemoveTopicRecord, TopicRecord
from moldau.statemachine.decision import Decision

__all__ = ["create_topics", "delete_topics", "topic_name_problem"]


def create_topics(
    state: ControllerState, request: CreateTopicsRequest, context: DecisionContext
) -> Decision[MetadataRecord, CreateTopicsResponse]:
    _check_total(state, request)
    times = Counter(topic.name for topic in request.topics)
    records: list[MetadataRecord] = []
    results: dict[str, CreatableTopicResult] = {}
    for topic in request.topics:
        if topic.name in results:
            continue
        try:
            _check_name(state, topic.name, times[topic.name])
            new_records, results[topic.name] = _create(state, topic, context)
            records += new_records
        except KafkaError as error:
            results[topic.name] = CreatableTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message
            )
    check_record_count(len(records))
    response = CreateTopicsResponse(topics=list(results.values()))
    return Decision([] if request.validate_only else records, response)


def _check_total(state: ControllerState, request: CreateTopicsRequest) -> None:
    """Refuse a request for too many partitions as a whole."""
    total = 0
    for topic in request.topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == -1:
            total += state.config.integer("num.partitions")
        else:
            total += max(topic.num_partitions, 0)
    if total > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _check_name(state: ControllerState, name: str, times: int) -> None:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if name == METADATA_TOPIC:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        )
    if name in state.image.topics.by_name:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    problem = topic_name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    colliding = state.colliding_topic(name)
    if colliding is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {colliding}"
        )


def _create(
    state: ControllerState, topic: CreatableTopic, context: DecisionContext
) -> tuple[list[MetadataRecord], CreatableTopicResult]:
    configs = _configs(topic)
    config_records = new_topic_config_records(state, topic.name, configs)
    partitions = _assigned(state, topic) if topic.assignments else _placed(state, topic)
    context.apply_partition_change_quota(len(partitions))
    topic_id = random_uuid(state.randomness)
    records: list[MetadataRecord] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    records += config_records
    records += partition_records(state, topic_id, 0, partitions)
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=effective_topic_configs(state.config, configs),
    )
    return records, result


def _configs(topic: CreatableTopic) -> dict[str, str]:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}"
        )
    return {config.name: config.value for config in topic.configs if config.value is not None}


def _assigned(state: ControllerState, topic: CreatableTopic) -> list[PartitionRegistration]:
    """Return the partitions of a manual assignment."""
    if topic.replication_factor != -1:
        raise _invalid_request("replication factor")
    if topic.num_partitions != -1:
        raise _invalid_request("numPartitions")
    partitions: dict[int, PartitionRegistration] = {}
    replication_factor = None
    for assignment in topic.assignments:
        index, replicas = assignment.partition_index, assignment.broker_ids
        if index in partitions:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        check_assignment(state, replicas, replication_factor)
        replication_factor = len(replicas)
        partitions[index] = assigned_partition(state, index, replicas)
    if sorted(partitions) != list(range(len(partitions))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [partitions[index] for index in range(len(partitions))]


def _invalid_request(setting: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"A manual partition assignment was specified, but {setting} was not set to -1.",
    )


def _placed(state: ControllerState, topic: CreatableTopic) -> list[PartitionRegistration]:
    """Return partitions on replicas chosen by placement."""
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    count, factor = topic.num_partitions, topic.replication_factor
    if count == -1:
        count = state.config.integer("num.partitions")
    if factor == -1:
        factor = state.config.integer("default.replication.factor")
    try:
        placed = place_partitions(state, count, factor)
    except KafkaError as error:
        raise cannot_replicate(factor, error.message or "") from error
    return placed_partitions(state, placed)


def delete_topics(
    state: ControllerState, request: DeleteTopicsRequest, context: DecisionContext
) -> Decision[MetadataRecord, DeleteTopicsResponse]:
    if not state.config.boolean("delete.topic.enable"):
        if context.api_version < 3:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "This version does not support topic deletion.")
        raise default_error(ErrorCode.TOPIC_DELETION_DISABLED)
    found, results = _find_topics(state, request)
    records: list[MetadataRecord] = []
    for topic_id, name in found.items():
        try:
            context.apply_partition_change_quota(len(state.image.topics.by_id[topic_id].partitions))
        except KafkaError as error:
            results.append(_deleted(name, topic_id, error))
            continue
        records.append(RemoveTopicRecord(topic_id=topic_id))
        results.append(_deleted(name, topic_id))
    check_record_count(len(records))
    return Decision(records, DeleteTopicsResponse(responses=results))


def _find_topics(
    state: ControllerState, request: DeleteTopicsRequest
) -> tuple[Mapping[TopicId, str], list[DeletableTopicResult]]:
    """Return the topics to delete, and results for unknown or duplicate ones."""
    results: list[DeletableTopicResult] = []
    names, ids = Counter(request.topic_names), Counter[TopicId]()
    for topic in request.topics:
        if topic.name is None and topic.topic_id == ZERO_UUID:
            results.append(_refused(None, ZERO_UUID, "Neither topic name nor id were specified."))
        elif topic.name is None:
            ids[topic.topic_id] += 1
        elif topic.topic_id == ZERO_UUID:
            names[topic.name] += 1
        else:
            results.append(
                _refused(topic.name, topic.topic_id, "You may not specify both topic name and topic id.")
            )
    found: dict[TopicId, str] = {}
    for topic_id, times in ids.items():
        known = state.topic_by_id(topic_id)
        if times > 1:
            results.append(_refused(None, topic_id, "Duplicate topic id."))
        elif known is None:
            results.append(_deleted(None, topic_id, default_error(ErrorCode.UNKNOWN_TOPIC_ID)))
        else:
            found[topic_id] = known.name
    for name, times in names.items():
        known = state.image.topics.by_name.get(name)
        if times > 1:
            results.append(_refused(name, ZERO_UUID, "Duplicate topic name."))
        elif known is None:
            results.append(_deleted(name, ZERO_UUID, default_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
        elif known.id in ids:
            found.pop(known.id, None)
            message = "The provided topic name maps to an ID that was already supplied."
            results.append(_refused(name, known.id, message))
        else:
            found[known.id] = name
    return found, results


def _refused(name: str | None, topic_id: TopicId, message: str) -> DeletableTopicResult:
    return _deleted(name, topic_id, KafkaError(ErrorCode.INVALID_REQUEST, message))


def _deleted(name: str | None, topic_id: TopicId, error: KafkaError | None = None) -> DeletableTopicResult:
    if error is None:
        return DeletableTopicResult(name=name, topic_id=topic_id)
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
    )
