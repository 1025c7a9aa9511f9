"""DescribeProducers (key 61), version 0 (KIP-664): the active producers of partitions.

Requires READ on TOPIC for each topic; the partitions of a topic without it get TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.errors import default_error
from moldau.controller.topics.lifecycle import topic_name_problem
from moldau.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from moldau.replication.replica_manager import ReplicaManager
from moldau.security.acl.permissions import READ_TOPIC
from moldau.server.dispatch.context import RequestContext


def handle(
    replicas: ReplicaManager, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _partition(replicas, context, topic.name, index) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _partition(
    replicas: ReplicaManager, context: RequestContext, topic: str, index: int
) -> PartitionResponse:
    try:
        problem = topic_name_problem(topic)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        context.require(READ_TOPIC, topic)
        log = replicas.by_name(topic, index).leader_log()
    except KafkaError as error:
        message = error.message or default_error(error.code).message
        return PartitionResponse(partition_index=index, error_code=error.code, error_message=message)
    producers = [
        ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.transaction_first_offset,
        )
        for entry in log.producer_state.producers.values()
    ]
    return PartitionResponse(partition_index=index, active_producers=producers)
