"""ACL bindings (a resource pattern with an access control entry) and the filters that select them (KIP-140,
KIP-290).

A binding is what a user creates, lists and deletes; the metadata log stores each under a random id. Codes
that this release does not know become UNKNOWN.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, cast

from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType

if TYPE_CHECKING:
    from moldau.protocol.stored.metadata import AccessControlEntryRecord

#: The resource name and the host of an ACL that applies to all.
WILDCARD = "*"
#: The principal of an ACL that applies to every user.
WILDCARD_PRINCIPAL = "User:*"

E = TypeVar("E", bound=IntEnum)


def known_code(kind: type[E], code: int) -> E:
    """Return the member of an ACL enum with this code, UNKNOWN for a code of a later release."""
    # Faster than `kind(code)`: thousands of ACLs are read at once.
    member = kind._value2member_map_.get(code)
    return kind(0) if member is None else cast(E, member)


class AclBinding(NamedTuple):
    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission_type: PermissionType

    def __str__(self) -> str:
        """The form of Kafka's audit log."""
        return (
            f"StandardAcl[resourceType={self.resource_type.name}, resourceName={self.resource_name}, "
            f"patternType={self.pattern_type.name}, principal={self.principal}, host={self.host}, "
            f"operation={self.operation.name}, permissionType={self.permission_type.name}]"
        )


class _AclFields(Protocol):
    """The fields that requests, responses and records have in common."""

    resource_type: int
    resource_name: str
    principal: str
    host: str
    operation: int
    permission_type: int


def binding_of(fields: _AclFields, pattern_type: int) -> AclBinding:
    """Return the binding in a message or record; the pattern type has a different name in each."""
    return AclBinding(
        known_code(ResourceType, fields.resource_type),
        fields.resource_name,
        known_code(PatternType, pattern_type),
        fields.principal,
        fields.host,
        known_code(AclOperation, fields.operation),
        known_code(PermissionType, fields.permission_type),
    )


def binding_of_record(record: AccessControlEntryRecord) -> AclBinding:
    return binding_of(record, record.pattern_type)


class AclBindingFilter(NamedTuple):
    """Selects bindings; None and ANY select all, MATCH all patterns that apply to the resource name."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: PermissionType = PermissionType.ANY

    def matches(self, binding: AclBinding) -> bool:
        return self._matches_pattern(binding) and self._matches_entry(binding)

    def _matches_pattern(self, binding: AclBinding) -> bool:
        if self.resource_type not in (ResourceType.ANY, binding.resource_type):
            return False
        kind = self.pattern_type
        if kind not in (PatternType.ANY, PatternType.MATCH, binding.pattern_type):
            return False
        name = self.resource_name
        if name is None:
            return True
        if kind != PatternType.MATCH:
            return name == binding.resource_name
        if binding.pattern_type == PatternType.PREFIXED:
            return name.startswith(binding.resource_name)
        return binding.resource_name in (name, WILDCARD)

    def _matches_entry(self, binding: AclBinding) -> bool:
        return (
            self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (AclOperation.ANY, binding.operation)
            and self.permission_type in (PermissionType.ANY, binding.permission_type)
        )


class _FilterFields(Protocol):
    """The fields that the requests with filters have in common."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def filter_of(fields: _FilterFields) -> AclBindingFilter:
    return AclBindingFilter(
        known_code(ResourceType, fields.resource_type_filter),
        fields.resource_name_filter,
        known_code(PatternType, fields.pattern_type_filter),
        fields.principal_filter,
        fields.host_filter,
        known_code(AclOperation, fields.operation),
        known_code(PermissionType, fields.permission_type),
    )
