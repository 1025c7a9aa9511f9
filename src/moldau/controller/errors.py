"""Errors of the controller: default messages, the record limit, and requests that fail as a whole.

Most responses have a top-level error code. Those in `_PER_ITEM` have only one error code per item, so an
error about the whole request is repeated in every item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages import alter_client_quotas, alter_configs, incremental_alter_configs
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from moldau.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
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
from moldau.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from moldau.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.protocol.schema import Message

#: Kafka's default messages of errors that it answers without a more specific one.
_DEFAULT_MESSAGES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
    ErrorCode.TOPIC_DELETION_DISABLED: "Topic deletion is disabled.",
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
}

#: The limit on records written by one request.
MAX_RECORDS_PER_REQUEST = 10_000


def default_error(code: ErrorCode) -> KafkaError:
    """Return an error with Kafka's default message for its code."""
    return KafkaError(code, _DEFAULT_MESSAGES.get(code))


def check_record_count(count: int) -> None:
    if count > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def failure_response(request: Message, error: KafkaError) -> Message | None:
    """Return the response to a request that failed as a whole.

    None: the response has a top-level error code, or its API is not one of the controller's.
    """
    make = _PER_ITEM.get(type(request))
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


def _create_acls(request: CreateAclsRequest, failed: dict[str, Any]) -> Message:
    return CreateAclsResponse(results=[AclCreationResult(**failed) for _ in request.creations])


def _delete_acls(request: DeleteAclsRequest, failed: dict[str, Any]) -> Message:
    return DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(**failed) for _ in request.filters])


def _alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, failed: dict[str, Any]
) -> Message:
    deleted = {each.name for each in request.deletions}
    users = sorted(deleted | {each.name for each in request.upsertions})
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user=user, **failed) for user in users]
    )


_PER_ITEM: dict[type[Message], Callable[[Any, dict[str, Any]], Message]] = {
    CreateTopicsRequest: _create_topics,
    DeleteTopicsRequest: _delete_topics,
    CreatePartitionsRequest: _create_partitions,
    CreateAclsRequest: _create_acls,
    DeleteAclsRequest: _delete_acls,
    incremental_alter_configs.IncrementalAlterConfigsRequest: _incremental_alter_configs,
    alter_configs.AlterConfigsRequest: _alter_configs,
    alter_client_quotas.AlterClientQuotasRequest: _alter_client_quotas,
    AlterUserScramCredentialsRequest: _alter_user_scram_credentials,
}
