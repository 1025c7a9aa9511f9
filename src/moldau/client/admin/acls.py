"""ACLs: describe, create and delete them (KIP-140)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from moldau.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from moldau.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from moldau.protocol.schema import Message
from moldau.security.acl.bindings import AclBinding, AclBindingFilter, binding_of, known_code
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType

__all__ = [
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "PatternType",
    "PermissionType",
    "ResourceType",
    "create_acls",
    "delete_acls",
    "describe_acls",
]

R = TypeVar("R", AclCreationResult, DeleteAclsFilterResult)


async def describe_acls(cluster: Cluster, wanted: AclBindingFilter) -> list[AclBinding]:
    """Return the ACLs that a filter selects."""
    request = DescribeAclsRequest(**_filter_fields(wanted))

    async def attempt() -> DescribeAclsResponse:
        answer: DescribeAclsResponse = await cluster.ask_any(request)
        check(answer.error_code, answer.error_message)
        return answer

    answer = await cluster.retry(attempt)
    return [
        AclBinding(
            known_code(ResourceType, resource.resource_type),
            resource.resource_name,
            known_code(PatternType, resource.pattern_type),
            acl.principal,
            acl.host,
            known_code(AclOperation, acl.operation),
            known_code(PermissionType, acl.permission_type),
        )
        for resource in answer.resources
        for acl in resource.acls
    ]


async def create_acls(
    cluster: Cluster, bindings: Iterable[AclBinding]
) -> dict[AclBinding, KafkaError | None]:
    """Create ACLs; one that exists already is not an error. Return the error of each, None for success."""
    wanted = list(dict.fromkeys(bindings))
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                resource_pattern_type=each.pattern_type,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission_type,
            )
            for each in wanted
        ]
    )
    results = await _change(cluster, request, _creation_results)
    return {binding: _error(result) for binding, result in zip(wanted, results, strict=True)}


async def delete_acls(
    cluster: Cluster, filters: Iterable[AclBindingFilter]
) -> dict[AclBindingFilter, list[AclBinding] | KafkaError]:
    """Delete the ACLs that filters select; return the deleted ACLs of each filter."""
    wanted = list(dict.fromkeys(filters))
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**_filter_fields(each)) for each in wanted])
    results = await _change(cluster, request, _filter_results)
    return {each: _deleted(result) for each, result in zip(wanted, results, strict=True)}


def _creation_results(response: CreateAclsResponse) -> list[AclCreationResult]:
    return response.results


def _filter_results(response: DeleteAclsResponse) -> list[DeleteAclsFilterResult]:
    return response.filter_results


async def _change(cluster: Cluster, request: Message, results: Callable[[Any], list[R]]) -> list[R]:
    async def attempt() -> list[R]:
        found = results(await cluster.ask_controller(request))
        for result in found:
            # About the whole request, although each result repeats it.
            if result.error_code == ErrorCode.NOT_CONTROLLER:
                raise error_of(result.error_code, result.error_message)
        return found

    return await cluster.retry(attempt)


def _filter_fields(wanted: AclBindingFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.resource_name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission_type,
    }


def _error(result: Any) -> KafkaError | None:
    return error_of(result.error_code, result.error_message) if result.error_code else None


def _deleted(result: DeleteAclsFilterResult) -> list[AclBinding] | KafkaError:
    for each in (result, *result.matching_acls):
        error = _error(each)
        if error is not None:
            return error
    return [binding_of(acl, acl.pattern_type) for acl in result.matching_acls]
