"""Short ways to write ACLs in tests."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.base.ids import Uuid
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.metadata import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from moldau.security.acl.authorizer import Authorizer
from moldau.security.acl.bindings import AclBinding
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType


def acl(text: str) -> AclBinding:
    """`ALLOW User:alice READ TOPIC foo`, with `foo*` for a prefix, `*` for all and `@host` at the end."""
    words = text.split()
    host = words.pop()[1:] if words[-1].startswith("@") else "*"
    permission, principal, operation, resource, name = words
    prefixed = name.endswith("*") and name != "*"
    return AclBinding(
        ResourceType[resource],
        name[:-1] if prefixed else name,
        PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal,
        host,
        AclOperation[operation],
        PermissionType[permission],
    )


def record(binding: AclBinding, acl_id: Uuid) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=binding.resource_type,
        resource_name=binding.resource_name,
        pattern_type=binding.pattern_type,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission_type,
    )


class AclLog:
    """ACLs in a metadata image that an authorizer follows."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.image = MetadataImage.empty()
        self.ids: dict[AclBinding, Uuid] = {}
        self._authorizer = authorizer
        self._next_id = 0
        self.change()

    def change(self, *, add: Iterable[AclBinding] = (), remove: Iterable[AclBinding] = ()) -> None:
        delta = MetadataDelta(self.image)
        for binding in remove:
            delta.replay(RemoveAccessControlEntryRecord(id=self.ids.pop(binding)))
        for binding in add:
            self._next_id += 1
            self.ids[binding] = Uuid(self._next_id.to_bytes(16, "big"))
            delta.replay(record(binding, self.ids[binding]))
        self.image = delta.apply(self.image.offset + 1, 1)
        self._authorizer.apply(delta, self.image)
