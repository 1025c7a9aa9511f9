"""CreateAcls, DeleteAcls and DescribeAcls: validation, duplicates, filters, limits."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.base.errors import ErrorCode
from moldau.controller.security.acls import (
    create_acls,
    delete_acls,
    describe_acls,
    refuse_without_authorizer,
)
from moldau.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from moldau.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from moldau.protocol.messages.describe_acls import DescribeAclsRequest
from moldau.protocol.stored.metadata import RemoveAccessControlEntryRecord
from moldau.security.acl.bindings import AclBinding, binding_of, binding_of_record
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType
from tests.unit.controller.harness import Cluster
from tests.unit.security.acl.acls import acl

ALICE = acl("ALLOW User:alice READ TOPIC orders")
BOB = acl("DENY User:bob ALL TOPIC ord*")
GROUP = acl("ALLOW User:alice READ GROUP orders @10.0.0.1")


def creation(binding: AclBinding, **changes: Any) -> AclCreation:
    fields = binding._asdict()
    fields["resource_pattern_type"] = fields.pop("pattern_type")
    return AclCreation(**(fields | changes))


def create(cluster: Cluster, *creations: AclCreation) -> CreateAclsResponse:
    return cluster.decide(create_acls, CreateAclsRequest(creations=list(creations)))


def cluster_with(*bindings: AclBinding) -> Cluster:
    cluster = Cluster()
    create(cluster, *map(creation, bindings))
    return cluster


def stored(cluster: Cluster) -> list[AclBinding]:
    return [binding_of_record(record) for record in cluster.controller.image.acls.values()]


def wanted(**changes: Any) -> dict[str, Any]:
    anything = {
        "resource_type_filter": ResourceType.ANY, "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY, "principal_filter": None, "host_filter": None,
        "operation": AclOperation.ANY, "permission_type": PermissionType.ANY,
    }  # fmt: skip
    return anything | changes


def delete(cluster: Cluster, *filters: dict[str, Any]) -> DeleteAclsResponse:
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**each) for each in filters])
    return cluster.decide(delete_acls, request)


def deleted(response: DeleteAclsResponse) -> list[set[AclBinding]]:
    return [
        {binding_of(each, each.pattern_type) for each in result.matching_acls}
        for result in response.filter_results
    ]


def described(cluster: Cluster, **changes: Any) -> set[AclBinding]:
    response = describe_acls(cluster.controller.image, DescribeAclsRequest(**wanted(**changes)))
    return {
        AclBinding(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
            each.principal,
            each.host,
            AclOperation(each.operation),
            PermissionType(each.permission_type),
        )
        for resource in response.resources
        for each in resource.acls
    }


def test_acls_are_created_once_each_under_an_id_of_its_own() -> None:
    cluster = Cluster()
    response = create(cluster, creation(ALICE), creation(BOB), creation(ALICE))
    assert [(each.error_code, each.error_message) for each in response.results] == [(0, "")] * 3
    assert stored(cluster) == [ALICE, BOB]
    create(cluster, creation(BOB), creation(GROUP))
    assert stored(cluster) == [ALICE, BOB, GROUP]
    assert len(cluster.controller.image.acls) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"resource_type": ResourceType.CLUSTER},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": ResourceType.ANY}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": PatternType.MATCH}, "Invalid patternType MATCH"),
        ({"resource_pattern_type": PatternType.ANY}, "Invalid patternType ANY"),
        ({"operation": AclOperation.ANY}, "Invalid operation ANY"),
        ({"operation": 99}, "Invalid operation UNKNOWN"),
        ({"permission_type": PermissionType.ANY}, "Invalid permissionType ANY"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal type from "
            "the principal name)",
        ),
    ],
)
def test_an_invalid_acl_is_refused_and_the_others_are_created(changes: dict[str, Any], message: str) -> None:
    cluster = Cluster()
    response = create(cluster, creation(ALICE, **changes), creation(BOB))
    assert [each.error_code for each in response.results] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert response.results[0].error_message == message
    assert stored(cluster) == [BOB]


def test_the_cluster_resource_has_one_name() -> None:
    cluster = cluster_with(acl("ALLOW User:alice ALTER CLUSTER kafka-cluster"))
    assert len(stored(cluster)) == 1


def test_filters_delete_what_they_select_and_return_it() -> None:
    cluster = cluster_with(ALICE, BOB, GROUP)
    response = delete(
        cluster,
        wanted(resource_type_filter=ResourceType.TOPIC, principal_filter="User:alice"),
        wanted(resource_name_filter="orders", pattern_type_filter=PatternType.MATCH),
        wanted(principal_filter="User:nobody"),
    )
    assert deleted(response) == [{ALICE}, {ALICE, BOB, GROUP}, set()]
    assert {type(record) for record in cluster.records} == {RemoveAccessControlEntryRecord}
    assert len(cluster.records) == 3
    assert stored(cluster) == []
    create(cluster, creation(ALICE))
    assert stored(cluster) == [ALICE]


def test_an_exact_filter_deletes_one_acl() -> None:
    cluster = cluster_with(ALICE, BOB, GROUP)
    exact = {f"{name}_filter": value for name, value in ALICE._asdict().items()}
    exact |= {"operation": exact.pop("operation_filter")}
    exact |= {"permission_type": exact.pop("permission_type_filter")}
    assert deleted(delete(cluster, exact)) == [{ALICE}]
    assert stored(cluster) == [BOB, GROUP]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resource_type_filter": 99}, "Unknown patternFilter."),
        ({"pattern_type_filter": 99}, "Unknown patternFilter."),
        ({"operation": 99}, "Unknown entryFilter."),
        ({"permission_type": 99}, "Unknown entryFilter."),
    ],
)
def test_an_unknown_filter_is_refused_and_the_others_delete(changes: dict[str, Any], message: str) -> None:
    cluster = cluster_with(ALICE, BOB)
    response = delete(cluster, wanted(**changes), wanted(principal_filter="User:alice"))
    codes = [(each.error_code, each.error_message) for each in response.filter_results]
    assert codes == [(ErrorCode.INVALID_REQUEST, message), (ErrorCode.NONE, None)]
    assert stored(cluster) == [BOB]


def test_the_records_of_a_request_are_bounded() -> None:
    many = [creation(ALICE, resource_name=f"topic-{number}") for number in range(10_001)]
    cluster = Cluster()
    response = create(cluster, *many)
    assert {each.error_code for each in response.results} == {ErrorCode.POLICY_VIOLATION}
    assert stored(cluster) == []
    create(cluster, *many[:6000])
    create(cluster, *many[6000:])
    refused = delete(cluster, wanted(principal_filter="User:bob"), wanted())
    assert {(each.error_code, each.error_message) for each in refused.filter_results} == {
        (
            ErrorCode.INVALID_REQUEST,
            "Cannot remove more than 10000 acls in a single delete operation.",
        )
    }
    assert len(stored(cluster)) == 10_001


def test_descriptions_are_selected_by_the_filter() -> None:
    cluster = cluster_with(ALICE, BOB, GROUP)
    assert described(cluster) == {ALICE, BOB, GROUP}
    assert described(cluster, resource_type_filter=ResourceType.GROUP) == {GROUP}
    assert described(cluster, resource_name_filter="orders") == {ALICE, GROUP}
    assert described(cluster, resource_name_filter="orders", pattern_type_filter=PatternType.MATCH) == {
        ALICE,
        BOB,
        GROUP,
    }
    assert described(cluster, resource_type_filter=99) == set()


def test_acls_survive_a_change_of_the_controller() -> None:
    cluster = cluster_with(ALICE)
    state = cluster.controller.state
    state.reset(state.image, state.next_offset)
    create(cluster, creation(ALICE), creation(BOB))
    assert stored(cluster) == [ALICE, BOB]


def test_without_an_authorizer_every_item_is_refused() -> None:
    request = CreateAclsRequest(creations=[creation(ALICE), creation(BOB)])
    response: CreateAclsResponse = Cluster().decide(refuse_without_authorizer, request)
    assert [each.error_code for each in response.results] == [ErrorCode.SECURITY_DISABLED] * 2
