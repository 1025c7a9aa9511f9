"""Read-your-writes: a response is sent when this node has applied the change that another node decided.

Kafka responds earlier. Here a client may use a created topic, user or token immediately, and a changed quota
applies, on the broker that responded. Requests that are not listed here change nothing that clients use
immediately.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.base.errors import ErrorCode
from moldau.metadata.image import MetadataImage, quota_entity
from moldau.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from moldau.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from moldau.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from moldau.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from moldau.protocol.messages.delete_acls import DeleteAclsResponse
from moldau.protocol.messages.delete_topics import DeleteTopicsResponse
from moldau.protocol.schema import Message
from moldau.protocol.stored.metadata import AccessControlEntryRecord
from moldau.security.acl.bindings import AclBinding, binding_of

ImageCondition = Callable[[MetadataImage], bool]


def visible(request: Message, response: Message) -> ImageCondition | None:
    """Return whether an image shows the change; None if there is nothing to wait for."""
    if isinstance(response, DeleteTopicsResponse):
        return _deleted(response)
    if isinstance(request, CreateTopicsRequest) and isinstance(response, CreateTopicsResponse):
        return None if request.validate_only else _created(response)
    if isinstance(request, CreatePartitionsRequest) and isinstance(response, CreatePartitionsResponse):
        return None if request.validate_only else _partitions_created(request, response)
    if isinstance(request, AlterUserScramCredentialsRequest) and isinstance(
        response, AlterUserScramCredentialsResponse
    ):
        return _users_altered(request, response)
    if isinstance(request, CreateAclsRequest) and isinstance(response, CreateAclsResponse):
        return _acls_created(request, response)
    if isinstance(response, DeleteAclsResponse):
        return _acls_deleted(response)
    if isinstance(response, CreateDelegationTokenResponse):
        return _token_created(response)
    if isinstance(request, AlterClientQuotasRequest) and isinstance(response, AlterClientQuotasResponse):
        return None if request.validate_only else _quotas_altered(request, response)
    return None


def _created(response: CreateTopicsResponse) -> ImageCondition:
    names = [each.name for each in response.topics if each.error_code == ErrorCode.NONE]
    return lambda image: all(name in image.topics.by_name for name in names)


def _deleted(response: DeleteTopicsResponse) -> ImageCondition:
    deleted = [each for each in response.responses if each.error_code == ErrorCode.NONE]
    ids = [each.topic_id for each in deleted]
    return lambda image: not any(topic_id in image.topics.by_id for topic_id in ids)


def _partitions_created(
    request: CreatePartitionsRequest, response: CreatePartitionsResponse
) -> ImageCondition:
    done = {each.name for each in response.results if each.error_code == ErrorCode.NONE}
    wanted = {each.name: each.count for each in request.topics if each.name in done}

    def shows(image: MetadataImage) -> bool:
        topics = image.topics.by_name
        return all(name not in topics or len(topics[name].partitions) >= wanted[name] for name in wanted)

    return shows


def _users_altered(
    request: AlterUserScramCredentialsRequest, response: AlterUserScramCredentialsResponse
) -> ImageCondition:
    done = {each.user for each in response.results if each.error_code == ErrorCode.NONE}
    deleted = [(each.mechanism, each.name) for each in request.deletions if each.name in done]
    set_to = {
        (each.mechanism, each.name): (each.salt, each.iterations)
        for each in request.upsertions
        if each.name in done
    }

    def shows(image: MetadataImage) -> bool:
        stored = {key: image.scram.get(key) for key in set_to}
        return not any(key in image.scram for key in deleted) and all(
            each is not None and (each.salt, each.iterations) == set_to[key] for key, each in stored.items()
        )

    return shows


def _acls_created(request: CreateAclsRequest, response: CreateAclsResponse) -> ImageCondition:
    created = {
        binding_of(creation, creation.resource_pattern_type)
        for creation, result in zip(request.creations, response.results, strict=False)
        if result.error_code == ErrorCode.NONE
    }

    def shows(image: MetadataImage) -> bool:
        missing = set(created)
        # The newest are the last.
        for record in reversed(list(image.acls.values())):
            if not missing:
                break
            missing.discard(_stored(record))
        return not missing

    return shows


def _acls_deleted(response: DeleteAclsResponse) -> ImageCondition | None:
    deleted = {
        binding_of(acl, acl.pattern_type)
        for result in response.filter_results
        for acl in result.matching_acls
    }
    if not deleted:
        return None
    return lambda image: not any(_stored(record) in deleted for record in image.acls.values())


def _stored(record: AccessControlEntryRecord) -> AclBinding:
    """Return the binding of a record without the check of its codes: it is only compared."""
    return tuple.__new__(
        AclBinding,
        (
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        ),
    )


def _token_created(response: CreateDelegationTokenResponse) -> ImageCondition | None:
    if response.error_code != ErrorCode.NONE:
        return None
    return lambda image: response.token_id in image.delegation_tokens


def _quotas_altered(request: AlterClientQuotasRequest, response: AlterClientQuotasResponse) -> ImageCondition:
    wanted = {}
    for entry, answer in zip(request.entries, response.entries, strict=False):
        if answer.error_code == ErrorCode.NONE:
            entity = quota_entity({part.entity_type: part.entity_name for part in entry.entity}.items())
            for each in entry.ops:
                wanted[entity, each.key] = None if each.remove else each.value

    def shows(image: MetadataImage) -> bool:
        quotas = image.client_quotas
        return all(quotas.get(entity, {}).get(key) == value for (entity, key), value in wanted.items())

    return shows
