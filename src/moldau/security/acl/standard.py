"""The authorizer with ACLs in the metadata log: `org.apache.kafka.metadata.authorizer.StandardAuthorizer`.

The rules, in this order:

1. A super user (`super.users`) may do everything, also before ACLs are loaded.
2. A DENY on any pattern that applies to the resource (literal, prefixed, `*`) refuses the operation.
3. An ALLOW on any such pattern allows it; READ, WRITE, DELETE and ALTER imply DESCRIBE, ALTER_CONFIGS implies
   DESCRIBE_CONFIGS.
4. If no ACL applies to the resource, for any principal, `allow.everyone.if.no.acl.found` decides.
5. The operation is refused.

Principals and hosts are compared as text. A delegation token has the rights of its owner.

Decisions are cached until an ACL changes; the cache is emptied when it is full. The logger
`kafka.authorizer.logger` receives each refused operation at INFO and each allowed one at DEBUG, in Kafka's
words.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.stored.metadata import AccessControlEntryRecord
from moldau.security.acl.bindings import AclBinding, binding_of_record
from moldau.security.acl.dominance import allows_some
from moldau.security.acl.enums import AclOperation, PermissionType, ResourceType
from moldau.security.acl.index import ALLOWING_BITS, DENYING_BITS, AclIndex, Pattern, client_keys
from moldau.security.acl.permissions import Permission
from moldau.security.principal import KafkaPrincipal, parse_principal

AUDIT_LOGGER = "kafka.authorizer.logger"
#: The limit on cached decisions.
MAX_CACHED_DECISIONS = 32_768
#: The resource in the first check of `authorize_by_resource_type`, as in Kafka.
_ANY_RESOURCE = "hardcode"

_log = logging.getLogger(__name__)
_audit = logging.getLogger(AUDIT_LOGGER)


def parse_super_users(text: str | None) -> frozenset[str]:
    """Parse `super.users`: principals separated by semicolons; raise ValueError if one has no type."""
    users = frozenset(user.strip() for user in (text or "").split(";")) - {""}
    for user in users:
        parse_principal(user)
    return users


class StandardAuthorizer:
    def __init__(self, super_users: Iterable[str] = (), *, allow_everyone_if_no_acl: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._default = allow_everyone_if_no_acl
        self._index = AclIndex()
        #: The ACLs in the index; None before they are loaded.
        self._acls: Mapping[Uuid, AccessControlEntryRecord] | None = None
        self._decisions: dict[tuple[KafkaPrincipal, str, Permission, str], bool] = {}
        self._type_decisions: dict[tuple[KafkaPrincipal, str, AclOperation, ResourceType], bool] = {}

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> StandardAuthorizer:
        """Return the authorizer of a node; `configs` are the lines of its properties file."""
        allow_everyone = configs.get("allow.everyone.if.no.acl.found", "").strip().lower() == "true"
        return cls(parse_super_users(configs.get("super.users")), allow_everyone_if_no_acl=allow_everyone)

    # ACLs.

    def __len__(self) -> int:
        """The number of ACLs."""
        return len(self._index)

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Take over the ACLs of an image; the first call completes loading."""
        if image.acls is self._acls:
            return
        if self._acls is None:
            for record in image.acls.values():
                self._index.add(binding_of_record(record))
            _log.info("Completed initial ACL load process with %d ACLs.", len(image.acls))
        else:
            for acl_id in delta.acls.changes:
                self._replace(self._acls.get(acl_id), image.acls.get(acl_id))
        self._acls = image.acls
        self._decisions.clear()
        self._type_decisions.clear()

    def _replace(self, old: AccessControlEntryRecord | None, new: AccessControlEntryRecord | None) -> None:
        if old is not None:
            self._index.remove(binding_of_record(old))
        if new is not None:
            self._index.add(binding_of_record(new))

    # Decisions.

    def authorize(
        self,
        principal: KafkaPrincipal,
        host: str,
        permission: Permission,
        name: str,
        *,
        log_denied: bool = True,
        api_key: int = -1,
    ) -> bool:
        key = (principal, host, permission, name)
        allowed = self._decisions.get(key)
        if allowed is None:
            allowed = self._decide(str(principal), host, permission, name)
            if len(self._decisions) >= MAX_CACHED_DECISIONS:
                self._decisions.clear()
            self._decisions[key] = allowed
        if allowed:
            if _audit.isEnabledFor(logging.DEBUG):
                _audit.debug(self._audit_line(principal, host, permission, name, True, api_key))
            return True
        if log_denied and _audit.isEnabledFor(logging.INFO):
            _audit.info(self._audit_line(principal, host, permission, name, False, api_key))
        return False

    def authorize_by_resource_type(
        self, principal: KafkaPrincipal, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        permission = Permission(operation, resource_type)
        if self.authorize(principal, host, permission, _ANY_RESOURCE, log_denied=False):
            return True
        key = (principal, host, operation, resource_type)
        allowed = self._type_decisions.get(key)
        if allowed is None:
            patterns = self._index.patterns_of(resource_type, str(principal))
            allowed = allows_some(patterns, str(principal), host, operation)
            if len(self._type_decisions) >= MAX_CACHED_DECISIONS:
                self._type_decisions.clear()
            self._type_decisions[key] = allowed
        return allowed

    def _decide(self, principal: str, host: str, permission: Permission, name: str) -> bool:
        if principal in self._super_users:
            return True
        if self._acls is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The authorizer has not loaded the ACLs yet.")
        operation, resource_type = permission
        patterns = self._index.matching(resource_type, name)
        if not patterns:
            return self._default
        allowing, denying = ALLOWING_BITS[operation], DENYING_BITS[operation]
        keys = client_keys(principal, host)
        allowed = False
        for pattern in patterns:
            entries = pattern.entries
            for key in keys:
                entry = entries.get(key)
                if entry is not None:
                    if entry.denied & denying:
                        return False
                    if entry.allowed & allowing:
                        allowed = True
        return allowed

    # Audit log.

    def _audit_line(
        self,
        principal: KafkaPrincipal,
        host: str,
        permission: Permission,
        name: str,
        allowed: bool,
        api_key: int,
    ) -> str:
        operation, resource_type = permission
        rule = self._rule(str(principal), host, permission, name)
        kind = resource_type.name.title().replace("_", "")
        return (
            f"Principal = {principal} is {'Allowed' if allowed else 'Denied'} operation = {operation.name} "
            f"from host = {host} on resource = {kind}:LITERAL:{name} for request = {_api_name(api_key)} "
            f"with resourceRefCount = 1 based on rule {rule}"
        )

    def _rule(self, principal: str, host: str, permission: Permission, name: str) -> str:
        """Return why an operation was allowed or refused: the first matching DENY, else the last ALLOW."""
        if principal in self._super_users:
            return "SuperUser"
        operation, resource_type = permission
        patterns = self._index.matching(resource_type, name)
        if not patterns:
            return "DefaultAllow" if self._default else "DefaultDeny"
        allow = None
        for pattern in patterns:
            bindings = _applying(resource_type, pattern, principal, host, operation)
            for binding in bindings:
                if binding.permission_type != PermissionType.ALLOW:
                    return f"MatchingAcl(acl={binding})"
                allow = binding
        return "DefaultDeny" if allow is None else f"MatchingAcl(acl={allow})"


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


def _api_name(api_key: int) -> str:
    try:
        return ApiKey(api_key).name.title().replace("_", "")
    except ValueError:
        return "unknown"
