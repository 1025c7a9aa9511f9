"""One error for a whole request, in the shape its answer has.

Most answers have a place for such an error. Those listed here have none, only one per item, so each item
gets it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.base.errors import KafkaError
from moldau.protocol.messages import alter_client_quotas, alter_configs, incremental_alter_configs
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from moldau.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.protocol.schema import Message


def failure_response(request: Message, error: KafkaError) -> Message | None:
    """The answer to a request that failed as a whole; None if it has a place for the error itself."""
    make = _SHAPES.get(type(request))
    return None if make is None else make(request, {"error_code": error.code, "error_message": error.message})


def _create_topics(request: CreateTopicsRequest, failed: dict[str, Any]) -> Message:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreateTopicsResponse(topics=[CreatableTopicResult(name=name, **failed) for name in names])


def _delete_topics(request: DeleteTopicsRequest, failed: dict[str, Any]) -> Message:
    topics = [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, **failed) for topic in topics
        ]
    )


def _create_partitions(request: CreatePartitionsRequest, failed: dict[str, Any]) -> Message:
    results = [CreatePartitionsTopicResult(name=topic.name, **failed) for topic in request.topics]
    return CreatePartitionsResponse(results=results)


def _incremental_alter_configs(
    request: incremental_alter_configs.IncrementalAlterConfigsRequest, failed: dict[str, Any]
) -> Message:
    return incremental_alter_configs.IncrementalAlterConfigsResponse(
        responses=[
            incremental_alter_configs.AlterConfigsResourceResponse(
                resource_type=each.resource_type, resource_name=each.resource_name, **failed
            )
            for each in request.resources
        ]
    )


def _alter_configs(request: alter_configs.AlterConfigsRequest, failed: dict[str, Any]) -> Message:
    return alter_configs.AlterConfigsResponse(
        responses=[
            alter_configs.AlterConfigsResourceResponse(
                resource_type=each.resource_type, resource_name=each.resource_name, **failed
            )
            for each in request.resources
        ]
    )


def _alter_client_quotas(
    request: alter_client_quotas.AlterClientQuotasRequest, failed: dict[str, Any]
) -> Message:
    return alter_client_quotas.AlterClientQuotasResponse(
        entries=[
            alter_client_quotas.ResponseEntryData(entity=each.entity, **failed) for each in request.entries
        ]
    )


_SHAPES: dict[type[Message], Callable[[Any, dict[str, Any]], Message]] = {
    CreateTopicsRequest: _create_topics,
    DeleteTopicsRequest: _delete_topics,
    CreatePartitionsRequest: _create_partitions,
    incremental_alter_configs.IncrementalAlterConfigsRequest: _incremental_alter_configs,
    alter_configs.AlterConfigsRequest: _alter_configs,
    alter_client_quotas.AlterClientQuotasRequest: _alter_client_quotas,
}
