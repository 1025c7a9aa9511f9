"""An authorizer that allows exactly what a test grants, and contexts of requests that it authorises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.security.acl.enums import AclOperation, ResourceType
from moldau.security.acl.permissions import CLUSTER_NAME, Permission
from moldau.security.principal import KafkaPrincipal
from moldau.server.dispatch.context import ListenerContext, RequestContext
from moldau.server.settings import BROKER

ALICE = KafkaPrincipal("User", "alice")
Grant = Permission | tuple[Permission, str]


class Granted:
    """Remembers every check, and whether a refusal is logged."""

    def __init__(self, grants: Iterable[Grant] = ()) -> None:
        self._grants = {(each, CLUSTER_NAME) if isinstance(each, Permission) else each for each in grants}
        self.checks: list[tuple[Permission, str, bool]] = []

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
        self.checks.append((permission, name, log_denied))
        return (permission, name) in self._grants

    def authorize_by_resource_type(
        self,
        principal: KafkaPrincipal,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        *,
        api_key: int = -1,
    ) -> bool:
        return any(permission == (operation, resource_type) for permission, _ in self._grants)

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Changed ACLs are not the matter of these tests."""


def context(*grants: Grant, version: int = 0, role: str = BROKER) -> RequestContext:
    """Return the context of a request of alice, who has these permissions."""
    return context_of(Granted(grants), version=version, role=role)


def context_of(authorizer: Any, *, version: int = 0, role: str = BROKER) -> RequestContext:
    listener = ListenerContext("PLAINTEXT", role, "PLAINTEXT", {}, {}, authorizer)
    return RequestContext(0, version, "client", listener, ALICE, "127.0.0.1", cast(Any, None))
