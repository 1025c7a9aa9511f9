"""The audit log: the logger `kafka.authorizer.logger` with Kafka's sentences.

A refused operation is logged at INFO, an allowed one at DEBUG. What a request did not name (an entry of a
list, authorized operations) is not logged; Kafka logs it at TRACE. Nothing is formatted unless it is logged.
"""

from __future__ import annotations

import logging
from typing import Final

from moldau.base.printable import one_line
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from moldau.security.acl.bindings import AclBinding
from moldau.security.acl.enums import AclOperation, PermissionType, ResourceType
from moldau.security.acl.index import ALLOWING_BITS, DENYING_BITS, AclIndex, Pattern
from moldau.security.acl.permissions import Permission
from moldau.security.principal import KafkaPrincipal

AUDIT_LOGGER: Final = "kafka.authorizer.logger"
audit: Final = logging.getLogger(AUDIT_LOGGER)

SUPER_USER: Final = "SuperUser"
DEFAULT_ALLOW: Final = "DefaultAllow"
DEFAULT_DENY: Final = "DefaultDeny"
_MAX_LINE: Final = 100_000


def audit_line(
    principal: KafkaPrincipal,
    host: str,
    permission: Permission,
    name: str,
    *,
    allowed: bool,
    api_key: int,
    references: int,
    rule: str,
) -> str:
    """Return Kafka's sentence about a decision; `references` is how often the request names the resource."""
    operation, resource_type = permission
    kind = resource_type.name.title().replace("_", "")
    return one_line(
        f"Principal = {principal} is {'Allowed' if allowed else 'Denied'} operation = {operation.name} "
        f"from host = {host} on resource = {kind}:LITERAL:{name} for request = {api_name(api_key)} "
        f"with resourceRefCount = {references} based on rule {rule}",
        _MAX_LINE,
    )


def api_name(api_key: int) -> str:
    try:
        return APIS[ApiKey(api_key)].name
    except (ValueError, KeyError):
        return "unknown"


def deciding_rule(
    index: AclIndex, principal: str, host: str, permission: Permission, name: str, *, without_acls: str
) -> str:
    """Return why an operation was allowed or refused: the first matching DENY, else the last ALLOW.

    `without_acls` is the rule of a resource that no ACL applies to.
    """
    operation, resource_type = permission
    patterns = index.matching(resource_type, name)
    if not patterns:
        return without_acls
    allow = None
    for pattern in patterns:
        for binding in _applying(resource_type, pattern, principal, host, operation):
            if binding.permission_type != PermissionType.ALLOW:
                return f"MatchingAcl(acl={binding})"
            allow = binding
    return DEFAULT_DENY if allow is None else f"MatchingAcl(acl={allow})"


def _applying(
    resource_type: ResourceType, pattern: Pattern, principal: str, host: str, operation: AclOperation
) -> list[AclBinding]:
    """Return the ACLs of a pattern that decide an operation, in Kafka's order."""
    found = []
    for (who, where), entry in pattern.entries_of(principal, host):
        for permission_type, bits in (
            (PermissionType.DENY, entry.denied & DENYING_BITS[operation]),
            (PermissionType.ALLOW, entry.allowed & ALLOWING_BITS[operation]),
        ):
            found += [
                AclBinding(resource_type, pattern.name, pattern.type, who, where, each, permission_type)
                for each in AclOperation
                if bits >> each & 1
            ]
    return sorted(found, key=lambda acl: (acl.operation, acl.principal, acl.host, acl.permission_type))
