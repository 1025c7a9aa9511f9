"""When an image shows a change of ACLs or quotas."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moldau.base.errors import ErrorCode
from moldau.metadata.image import MetadataImage, quota_entity
from moldau.protocol.messages import alter_client_quotas as alter_quotas
from moldau.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from moldau.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from moldau.security.acl.bindings import AclBinding
from moldau.security.acl.standard import StandardAuthorizer
from moldau.server.controller.read_your_writes import visible
from tests.unit.security.acl.acls import AclLog, acl

OLD, NEW = acl("ALLOW User:alice READ TOPIC old"), acl("DENY User:bob WRITE TOPIC new*")


def image_with(*bindings: AclBinding) -> MetadataImage:
    log = AclLog(StandardAuthorizer())
    log.change(add=bindings)
    return log.image


def creation(binding: AclBinding) -> AclCreation:
    fields = binding._asdict()
    return AclCreation(resource_pattern_type=fields.pop("pattern_type"), **fields)


def test_created_acls_are_visible_when_all_are_in_the_image() -> None:
    request = CreateAclsRequest(creations=[creation(OLD), creation(NEW)])
    shows = visible(request, CreateAclsResponse(results=[AclCreationResult(), AclCreationResult()]))
    assert shows is not None
    assert not shows(image_with(OLD))
    assert shows(image_with(OLD, NEW))


def test_refused_acls_are_not_waited_for() -> None:
    request = CreateAclsRequest(creations=[creation(OLD), creation(NEW)])
    refused = AclCreationResult(error_code=ErrorCode.INVALID_REQUEST)
    shows = visible(request, CreateAclsResponse(results=[AclCreationResult(), refused]))
    assert shows is not None
    assert shows(image_with(OLD))


def test_deleted_acls_are_visible_when_none_is_in_the_image() -> None:
    matching = [DeleteAclsMatchingAcl(**NEW._asdict())]
    shows = visible(
        DeleteAclsRequest(),
        DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(matching_acls=matching)]),
    )
    assert shows is not None
    assert not shows(image_with(OLD, NEW))
    assert shows(image_with(OLD))
    assert visible(DeleteAclsRequest(), DeleteAclsResponse()) is None


@pytest.mark.parametrize("remove", [False, True])
def test_altered_quotas_are_visible_when_the_image_has_them(remove: bool) -> None:
    entity = [alter_quotas.EntityData(entity_type="user", entity_name=None)]
    operation = alter_quotas.OpData(key="producer_byte_rate", value=5.0, remove=remove)
    request = alter_quotas.AlterClientQuotasRequest(
        entries=[alter_quotas.RequestEntryData(entity=entity, ops=[operation])]
    )
    done = alter_quotas.AlterClientQuotasResponse(entries=[alter_quotas.ResponseEntryData(entity=entity)])
    shows = visible(request, done)
    assert shows is not None
    without = MetadataImage.empty()
    limits = {quota_entity([("user", None)]): {"producer_byte_rate": 5.0}}
    assert (shows(without), shows(replace(without, client_quotas=limits))) == (remove, not remove)
