"""FindCoordinator creates internal topics only for clients that may find a coordinator."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from moldau.base.errors import ErrorCode
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.security.acl.permissions import DESCRIBE_GROUP
from moldau.server.handlers import find_coordinator
from moldau.server.handlers.find_coordinator import GROUP, SHARE, TRANSACTION
from tests.unit.server.granted import context


class Metadata:
    image = MetadataImage.empty()


class InternalTopics:
    def __init__(self) -> None:
        self.created: list[str] = []

    async def ensure(self, name: str) -> None:
        self.created.append(name)


def find(topics: InternalTopics, request: FindCoordinatorRequest, version: int, *grants: Any) -> Any:
    parts = cast(Any, Metadata()), cast(Any, topics)
    result = find_coordinator.handle(*parts, context(*grants, version=version), request)
    return asyncio.run(cast(Any, result)) if asyncio.iscoroutine(result) else result


@pytest.mark.parametrize(
    ("key_type", "code"),
    [
        (GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (TRANSACTION, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (SHARE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_a_refused_client_creates_no_topic(key_type: int, code: ErrorCode) -> None:
    topics = InternalTopics()
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a", "b"])
    assert [each.error_code for each in find(topics, request, 6).coordinators] == [code] * 2
    assert topics.created == []


def test_old_versions_have_one_key() -> None:
    response = find(InternalTopics(), FindCoordinatorRequest(key="a", key_type=GROUP), 2)
    assert response.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert response.node_id == -1


def test_each_key_is_authorised() -> None:
    topics = InternalTopics()
    request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=["mine", "other"])
    found = find(topics, request, 4, (DESCRIBE_GROUP, "mine")).coordinators
    assert [each.error_code for each in found] == [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ]
    assert topics.created == ["__consumer_offsets"]


def test_versions_without_share_groups_create_no_topic() -> None:
    topics = InternalTopics()
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["a"])
    assert find(topics, request, 5).coordinators[0].error_code == ErrorCode.INVALID_REQUEST
    assert topics.created == []
