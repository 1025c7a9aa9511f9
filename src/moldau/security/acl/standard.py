"""The authorizer with ACLs in the metadata log: `org.apache.kafka.metadata.authorizer.StandardAuthorizer`.

The rules, in this order:

1. A super user (`super.users`) may do everything, also before ACLs are loaded.
2. A DENY on any pattern that applies to the resource (literal, prefixed, `*`) refuses the operation.
3. An ALLOW on any such pattern allows it; READ, WRITE, DELETE and ALTER imply DESCRIBE, ALTER_CONFIGS implies
   DESCRIBE_CONFIGS.
4. If no ACL applies to the resource, for any principal, `allow.everyone.if.no.acl.found` decides.
5. The operation is refused.

Principals and hosts are compared as text. A delegation token has the rights of its owner.

Decisions are cached until an ACL changes; the cache is emptied when it is full. Cached decisions are logged
as well (`audit.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid
from moldau.base.json_log import event
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.metadata import AccessControlEntryRecord
from moldau.security.acl.audit import (
    DEFAULT_ALLOW,
    DEFAULT_DENY,
    SUPER_USER,
    api_name,
    audit,
    audit_line,
    deciding_rule,
)
from moldau.security.acl.bindings import binding_of_record
from moldau.security.acl.dominance import allows_some
from moldau.security.acl.enums import AclOperation, ResourceType
from moldau.security.acl.index import ALLOWING_BITS, DENYING_BITS, AclIndex, client_keys
from moldau.security.acl.permissions import CLUSTER_ACTION, Permission
from moldau.security.principal import KafkaPrincipal, parse_principal

#: The limit on cached decisions.
MAX_CACHED_DECISIONS = 32_768
#: Decisions about longer names are not cached: clients choose them, and a name has up to 32 KiB.
MAX_CACHED_NAME = 256
#: The resource in the first check of `authorize_by_resource_type`, as in Kafka.
_ANY_RESOURCE = "hardcode"

_log = logging.getLogger(__name__)


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
        self._warned = False
        self._decisions: dict[tuple[KafkaPrincipal, str, Permission, str], bool] = {}
        self._type_decisions: dict[tuple[KafkaPrincipal, str, AclOperation, ResourceType], bool] = {}
        #: Decisions about one resource.
        self.allowed = 0
        self.denied = 0

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
        log_allowed: bool = True,
        api_key: int = -1,
    ) -> bool:
        if self._cached(principal, host, permission, name):
            self.allowed += 1
            if log_allowed and audit.isEnabledFor(logging.DEBUG):
                self._audit(logging.DEBUG, principal, host, permission, name, api_key)
            return True
        self.denied += 1
        if log_denied and audit.isEnabledFor(logging.INFO):
            self._audit(logging.INFO, principal, host, permission, name, api_key)
        return False

    def authorize_by_resource_type(
        self,
        principal: KafkaPrincipal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        *,
        api_key: int = -1,
    ) -> bool:
        permission = Permission(operation, resource_type)
        if self._cached(principal, host, permission, _ANY_RESOURCE):
            if audit.isEnabledFor(logging.DEBUG):
                self._audit(logging.DEBUG, principal, host, permission, _ANY_RESOURCE, api_key, references=0)
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

    def _cached(self, principal: KafkaPrincipal, host: str, permission: Permission, name: str) -> bool:
        key = (principal, host, permission, name)
        allowed = self._decisions.get(key)
        if allowed is None:
            allowed = self._decide(str(principal), host, permission, name)
            if len(name) > MAX_CACHED_NAME:
                return allowed
            if len(self._decisions) >= MAX_CACHED_DECISIONS:
                self._decisions.clear()
            self._decisions[key] = allowed
        return allowed

    def _decide(self, principal: str, host: str, permission: Permission, name: str) -> bool:
        if principal in self._super_users:
            return True
        if self._acls is None:
            self._warn_not_loaded(principal, permission)
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

    def _warn_not_loaded(self, principal: str, permission: Permission) -> None:
        """Warn once of a node that is not a super user: its controllers would never elect a leader."""
        if permission == CLUSTER_ACTION and not self._warned:
            self._warned = True
            _log.warning(
                "%s requires CLUSTER_ACTION before the ACLs are loaded, which only super users have: if this "
                "is the principal of a node, add it to super.users.",
                principal,
            )

    # Audit log.

    def _audit(
        self,
        level: int,
        principal: KafkaPrincipal,
        host: str,
        permission: Permission,
        name: str,
        api_key: int,
        references: int = 1,
    ) -> None:
        who = str(principal)
        if who in self._super_users:
            rule = SUPER_USER
        else:
            default = DEFAULT_ALLOW if self._default else DEFAULT_DENY
            rule = deciding_rule(self._index, who, host, permission, name, without_acls=default)
        line = audit_line(
            principal,
            host,
            permission,
            name,
            allowed=level == logging.DEBUG,
            api_key=api_key,
            references=references,
            rule=rule,
        )
        allowed = level == logging.DEBUG
        audit.log(
            level,
            "%s",
            line,
            extra=event(
                "operation.allowed" if allowed else "operation.denied",
                principal=who,
                host=host,
                operation=permission.operation.name,
                resource_type=permission.resource_type.name,
                resource=name,
                api=api_name(api_key),
                rule=rule,
            ),
        )
