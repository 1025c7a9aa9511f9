"""CreateAcls, DeleteAcls and DescribeAcls (KIP-140, KIP-290).

ACLs are stored here; the authorizer of each node enforces them. As in Kafka, an ACL that exists already is
not created again, and whether an operation has a meaning for a resource type is not checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid, random_uuid
from moldau.controller.errors import MAX_RECORDS_PER_REQUEST, check_record_count
from moldau.controller.state import ControllerState, DecisionContext
from moldau.metadata.image import MetadataImage
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from moldau.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from moldau.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from moldau.protocol.stored.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from moldau.security.acl.bindings import (
    AclBinding,
    AclBindingFilter,
    binding_of,
    binding_of_record,
    filter_of,
)
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.acl.permissions import CLUSTER_NAME
from moldau.statemachine.decision import Decision

NO_AUTHORIZER = "No Authorizer is configured."


def refuse_without_authorizer(
    state: ControllerState, request: CreateAclsRequest | DeleteAclsRequest, context: DecisionContext
) -> Decision[MetadataRecord, Any]:
    """The decision of a controller without an authorizer."""
    raise KafkaError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


# Creation.


def create_acls(
    state: ControllerState, request: CreateAclsRequest, context: DecisionContext
) -> Decision[MetadataRecord, CreateAclsResponse]:
    new: dict[AclBinding, MetadataRecord] = {}
    results = []
    for creation in request.creations:
        binding = binding_of(creation, creation.resource_pattern_type)
        result = AclCreationResult()
        try:
            _check_binding(binding)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        else:
            if binding not in new and binding not in state.acls:
                new[binding] = _record(binding, random_uuid(state.randomness))
        results.append(result)
    check_record_count(len(new))
    return Decision(list(new.values()), CreateAclsResponse(results=results))


def _check_binding(binding: AclBinding) -> None:
    if binding.resource_type == ResourceType.CLUSTER and binding.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not binding.resource_name:
        raise _invalid("Invalid empty resource name")
    if binding.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise _invalid(f"Invalid resourceType {binding.resource_type.name}")
    if binding.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {binding.pattern_type.name}")
    if binding.operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        raise _invalid(f"Invalid operation {binding.operation.name}")
    if binding.permission_type not in (PermissionType.ALLOW, PermissionType.DENY):
        raise _invalid(f"Invalid permissionType {binding.permission_type.name}")
    if ":" not in binding.principal:
        raise _invalid(
            f"Could not parse principal from `{binding.principal}` (no colon is present separating the "
            "principal type from the principal name)"
        )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _record(binding: AclBinding, acl_id: Uuid) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=binding.resource_type,
        resource_name=binding.resource_name,
        pattern_type=binding.pattern_type,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission_type,
    )


# Deletion.


def delete_acls(
    state: ControllerState, request: DeleteAclsRequest, context: DecisionContext
) -> Decision[MetadataRecord, DeleteAclsResponse]:
    deleted: dict[Uuid, None] = {}
    results = []
    for each in request.filters:
        wanted = filter_of(each)
        result = DeleteAclsFilterResult(error_message=None)
        try:
            _check_filter(wanted)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        else:
            for binding, ids in state.acls.matching(wanted):
                deleted |= dict.fromkeys(sorted(ids))
                result.matching_acls += [_matching_acl(binding)] * len(ids)
            _check_deletion_count(len(deleted))
        results.append(result)
    records: list[MetadataRecord] = [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in deleted]
    return Decision(records, DeleteAclsResponse(filter_results=results))


def _check_filter(wanted: AclBindingFilter) -> None:
    if wanted.resource_type == ResourceType.UNKNOWN or wanted.pattern_type == PatternType.UNKNOWN:
        raise _invalid("Unknown patternFilter.")
    if wanted.operation == AclOperation.UNKNOWN or wanted.permission_type == PermissionType.UNKNOWN:
        raise _invalid("Unknown entryFilter.")


def _check_deletion_count(count: int) -> None:
    if count > MAX_RECORDS_PER_REQUEST:
        raise _invalid(
            f"Cannot remove more than {MAX_RECORDS_PER_REQUEST} acls in a single delete operation."
        )


def _matching_acl(binding: AclBinding) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=binding.resource_type,
        resource_name=binding.resource_name,
        pattern_type=binding.pattern_type,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission_type,
    )


# Description.


def describe_acls(image: MetadataImage, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the ACLs that the filter selects, by resource pattern; a filter with an unknown code, none."""
    wanted = filter_of(request)
    everything = wanted == AclBindingFilter()
    resources: dict[tuple[int, str, int], dict[tuple[str, str, int, int], None]] = {}
    for record in _named(image, wanted):
        if everything or wanted.matches(binding_of_record(record)):
            pattern = record.resource_type, record.resource_name, record.pattern_type
            entry = record.principal, record.host, record.operation, record.permission_type
            resources.setdefault(pattern, {})[entry] = None
    return DescribeAclsResponse(resources=[_resource(*each, acls) for each, acls in resources.items()])


def _resource(
    resource_type: int, name: str, pattern_type: int, acls: Iterable[tuple[str, str, int, int]]
) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=resource_type,
        resource_name=name,
        pattern_type=pattern_type,
        acls=[
            AclDescription(
                principal=principal, host=host, operation=operation, permission_type=permission_type
            )
            for principal, host, operation, permission_type in acls
        ],
    )


def _named(image: MetadataImage, wanted: AclBindingFilter) -> Iterable[AccessControlEntryRecord]:
    """Return the ACLs that a filter may select, without reading all of each: most filters name a resource."""
    name = wanted.resource_name
    if name is None or wanted.pattern_type == PatternType.MATCH:
        return image.acls.values()
    return (record for record in image.acls.values() if record.resource_name == name)
