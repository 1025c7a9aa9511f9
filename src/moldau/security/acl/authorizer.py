"""The interface of authorizers: `StandardAuthorizer`, or a class of the user's (`authorizer.class.name`).

An authorizer of your own is a Python class with the methods of `Authorizer`; it need not inherit from it:

    class OfficeHours:
        def __init__(self, properties):  # The lines of the node's properties file.
            self.closed = properties.get("office.hours.closed") == "true"

        def authorize(self, principal, host, permission, name, **options):
            return not self.closed or principal.name == "admin"

        def authorize_by_resource_type(self, principal, host, operation, resource_type, **options):
            return not self.closed or principal.name == "admin"

        def apply(self, delta, image):
            pass

`authorizer.class.name=office.hours:OfficeHours` names it. The node imports `office.hours`, which is
installed or in a folder of PYTHONPATH. A node creates one instance. All methods are called on the event loop
of the node, often several times for a request: they must return at once, without I/O. A `KafkaError` that
`authorize` raises becomes the error of the request. Requests between nodes are authorized, too
(CLUSTER_ACTION on the cluster). With any authorizer, ACLs are stored in the metadata by CreateAcls and
DeleteAcls; `image.acls` contains them.

A subclass of `StandardAuthorizer` may override methods to add rules of its own; it is created by its class
method `of(properties)`.
"""

from __future__ import annotations

from typing import Protocol

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.security.acl.enums import AclOperation, ResourceType
from moldau.security.acl.permissions import Permission
from moldau.security.principal import KafkaPrincipal


class Authorizer(Protocol):
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
        """Return whether the principal may do this to the resource `name`.

        `log_denied` is False for a resource that the request did not name, such as an entry of a list;
        `log_allowed` is False if the answer is only reported (authorized operations, KIP-430). `api_key` is
        the request, for the audit log.
        """
        ...

    def authorize_by_resource_type(
        self,
        principal: KafkaPrincipal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        *,
        api_key: int = -1,
    ) -> bool:
        """Return whether the principal may do this to at least one resource of the type."""
        ...

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Take over changed ACLs; the node calls this for every change of the metadata, first for all of it.

        Before the first call only nodes connect, on listeners of the controller."""
        ...
