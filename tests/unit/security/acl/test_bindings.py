"""Filters of ACL bindings: ANY, MATCH and exact."""

from __future__ import annotations

import pytest

from moldau.security.acl.bindings import AclFilter, known_code
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
        (AclFilter(), [0, 1, 2, 3, 4]),
        (AclFilter(TOPIC), [0, 1, 2, 3]),
        (AclFilter(TOPIC, "foo"), [0, 1]),
        (AclFilter(TOPIC, "foo", PatternType.LITERAL), [0]),
        (AclFilter(TOPIC, "foo", PatternType.PREFIXED), [1]),
        (AclFilter(TOPIC, "foo", PatternType.MATCH), [0, 1, 2, 3]),
        (AclFilter(TOPIC, "fx", PatternType.MATCH), [2, 3]),
        (AclFilter(ResourceType.ANY, "foo", PatternType.MATCH), [0, 1, 2, 3, 4]),
        (AclFilter(TOPIC, "*", PatternType.LITERAL), [3]),
        (AclFilter(TOPIC, None, PatternType.PREFIXED), [1, 2]),
        (AclFilter(principal="User:alice"), [0, 1, 2]),
        (AclFilter(host="10.0.0.1"), [4]),
        (AclFilter(operation=AclOperation.WRITE), [3]),
        (AclFilter(operation=AclOperation.ALL), []),
        (AclFilter(permission_type=PermissionType.DENY), [3]),
    ],
)
def test_filters(selected: AclFilter, indexes: list[int]) -> None:
    assert [index for index, each in enumerate(ACLS) if selected.matches(acl(each))] == indexes


def test_codes_of_later_releases_are_unknown() -> None:
    assert known_code(AclOperation, 99) is AclOperation.UNKNOWN
    assert known_code(PatternType, 4) is PatternType.PREFIXED
