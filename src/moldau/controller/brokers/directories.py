"""AssignReplicasToDirs: a broker reports the log directories of its replicas (KIP-858)."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import DirectoryId
from moldau.controller.brokers.lifecycle import check_broker_epoch
from moldau.controller.partitions.elections import updates_after
from moldau.controller.partitions.index import Entry
from moldau.controller.state import ControllerState, DecisionContext
from moldau.metadata.features import DIRECTORY_ASSIGNMENT_SUPPORTED
from moldau.metadata.image import TopicImage
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
)
from moldau.statemachine.decision import Decision


def assign_replicas_to_dirs(
    state: ControllerState, request: AssignReplicasToDirsRequest, context: DecisionContext
) -> Decision[MetadataRecord, AssignReplicasToDirsResponse]:
    if state.metadata_version < DIRECTORY_ASSIGNMENT_SUPPORTED:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    check_broker_epoch(state, request.broker_id, request.broker_epoch)
    broker = state.image.cluster.brokers[request.broker_id]
    records: list[MetadataRecord] = []
    offline: list[Entry] = []
    directories = []
    for directory in request.directories:
        topics = []
        for asked in directory.topics:
            topic = state.topic_by_id(asked.topic_id)
            partitions = []
            for wanted in asked.partitions:
                index = wanted.partition_index
                error = _check(topic, index, broker.id)
                if topic is not None and error is ErrorCode.NONE:
                    records += _assign(state, topic, index, broker.id, directory.id)
                    if not broker.has_online_directory(directory.id):
                        offline.append((topic, index, topic.partitions[index]))
                partitions.append(ResponsePartitionData(partition_index=index, error_code=error))
            topics.append(ResponseTopicData(topic_id=asked.topic_id, partitions=partitions))
        directories.append(ResponseDirectoryData(id=directory.id, topics=topics))
    records += updates_after(state, offline, leaving=broker.id)
    return Decision(records, AssignReplicasToDirsResponse(directories=directories))


def _check(topic: TopicImage | None, index: int, broker_id: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker_id in partition.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _assign(
    state: ControllerState, topic: TopicImage, index: int, broker_id: int, directory: DirectoryId
) -> list[MetadataRecord]:
    change = state.change(topic, index, topic.partitions[index])
    change.directories[broker_id] = directory
    record = change.record()
    return [] if record is None else [record]
