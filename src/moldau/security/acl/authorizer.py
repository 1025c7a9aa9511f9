"""The interface of authorizers: `StandardAuthorizer`, or a class of the user's (`authorizer.class.name`)."""

from __future__ import annotations

from typing import Protocol

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.security.acl.enums import AclOperation, ResourceType
from moldau.security.acl.permissions import Permission
from moldau.security.principal import KafkaPrincipal


class Authorizer(Protocol):
    """A class of the user's is called with the properties of the node and has these methods."""

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
        """Return whether the principal may do this to the resource `name`.

        `log_denied` is False for a resource that the request did not name, such as an entry of a list.
        `api_key` is the request, for the audit log.
        """
        ...

    def authorize_by_resource_type(
        self, principal: KafkaPrincipal, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Return whether the principal may do this to at least one resource of the type."""
        ...

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Take over changed ACLs; before the first call only super users are served."""
        ...
