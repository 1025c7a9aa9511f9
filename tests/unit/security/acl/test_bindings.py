"""Filters of ACL bindings: ANY, MATCH and exact."""

from __future__ import annotations

import pytest

from moldau.security.acl.bindings import AclBindingFilter, known_code
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType
from tests.unit.security.acl.acls import acl

ACLS = [
    "ALLOW User:alice READ TOPIC foo",
    "ALLOW User:alice READ TOPIC foo*",
    "ALLOW User:alice READ TOPIC f*",
    "DENY User:bob WRITE TOPIC *",
    "ALLOW User:* READ GROUP foo @10.0.0.1",
]
TOPIC = ResourceType.TOPIC


@pytest.mark.parametrize(
    ("selected", "indexes"),
    [
        (AclBindingFilter(), [0, 1, 2, 3, 4]),
        (AclBindingFilter(TOPIC), [0, 1, 2, 3]),
        (AclBindingFilter(TOPIC, "foo"), [0, 1]),
        (AclBindingFilter(TOPIC, "foo", PatternType.LITERAL), [0]),
        (AclBindingFilter(TOPIC, "foo", PatternType.PREFIXED), [1]),
        (AclBindingFilter(TOPIC, "foo", PatternType.MATCH), [0, 1, 2, 3]),
        (AclBindingFilter(TOPIC, "fx", PatternType.MATCH), [2, 3]),
        (AclBindingFilter(ResourceType.ANY, "foo", PatternType.MATCH), [0, 1, 2, 3, 4]),
        (AclBindingFilter(TOPIC, "*", PatternType.LITERAL), [3]),
        (AclBindingFilter(TOPIC, None, PatternType.PREFIXED), [1, 2]),
        (AclBindingFilter(principal="User:alice"), [0, 1, 2]),
        (AclBindingFilter(host="10.0.0.1"), [4]),
        (AclBindingFilter(operation=AclOperation.WRITE), [3]),
        (AclBindingFilter(operation=AclOperation.ALL), []),
        (AclBindingFilter(permission_type=PermissionType.DENY), [3]),
    ],
)
def test_filters(selected: AclBindingFilter, indexes: list[int]) -> None:
    assert [index for index, each in enumerate(ACLS) if selected.matches(acl(each))] == indexes


def test_codes_of_later_releases_are_unknown() -> None:
    assert known_code(AclOperation, 99) is AclOperation.UNKNOWN
    assert known_code(PatternType, 4) is PatternType.PREFIXED
