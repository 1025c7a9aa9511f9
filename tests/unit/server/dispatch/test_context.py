"""What a request may do: with and without an authorizer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.security.acl.enums import AclOperation, ResourceType
from moldau.security.acl.permissions import (
    ALTER_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    READ_GROUP,
    READ_TOPIC,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
    Permission,
)
from tests.unit.server.granted import Granted, context, context_of


def test_without_an_authorizer_everything_is_allowed() -> None:
    free = context_of(None)
    free.require(ALTER_CLUSTER)
    assert free.allows(READ_TOPIC, "orders")
    assert free.allows_any(*WRITE_TOPIC)
    assert free.authorized_operations(ResourceType.GROUP, "readers") == sum(
        1 << each
        for each in (
            AclOperation.READ,
            AclOperation.DELETE,
            AclOperation.DESCRIBE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        )
    )


def test_without_an_authorizer_names_are_not_even_collected() -> None:
    def names() -> Iterator[str]:
        raise AssertionError("the names of a request cost time")
        yield ""

    assert context_of(None).unauthorized(READ_TOPIC, names()) == frozenset()


@pytest.mark.parametrize(
    ("permission", "code"),
    [
        (READ_TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (READ_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ALTER_CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (WRITE_TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_the_resource_type_determines_the_error(permission: Permission, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refused:
        context().require(permission, "any")
    assert refused.value.code is code
    context((permission, "any")).require(permission, "any")


def test_unauthorized_names_are_checked_once_each() -> None:
    authorizer = Granted([(DESCRIBE_TOPIC, "a")])
    assert context_of(authorizer).unauthorized(DESCRIBE_TOPIC, ["a", "b", "b"]) == {"b"}
    assert sorted(authorizer.checks) == [(DESCRIBE_TOPIC, "a", True), (DESCRIBE_TOPIC, "b", True)]


def test_authorized_operations_are_not_logged() -> None:
    authorizer = Granted([(READ_GROUP, "readers"), (DESCRIBE_GROUP, "readers")])
    operations = context_of(authorizer).authorized_operations(ResourceType.GROUP, "readers")
    assert operations == 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE
    assert not any(logged for _, _, logged in authorizer.checks)
