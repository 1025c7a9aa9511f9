"""The input of a handler, which is the request with its context, and its result for the dispatcher."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from moldau.controller.errors import default_error
from moldau.network.connection import Connection
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import Api
from moldau.protocol.schema import Message
from moldau.security.acl.authorizer import Authorizer
from moldau.security.acl.enums import SUPPORTED_OPERATIONS, AclOperation, ResourceType
from moldau.security.acl.permissions import CLUSTER_NAME, DENIED, Permission
from moldau.security.principal import KafkaPrincipal
from moldau.server.settings import BROKER

#: The authorized operations of a client that did not request them (KIP-430).
NOT_REQUESTED: Final = -(2**31)
_ALL_OPERATIONS: Final = {
    resource_type: sum(1 << operation for operation in operations)
    for resource_type, operations in SUPPORTED_OPERATIONS.items()
}
_NONE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class ServedApi:
    """An API and the versions of it that a listener serves."""

    api: Api
    listener_role: str
    #: Whether a newest version that is marked unstable is served (`unstable.api.versions.enable`).
    unstable: bool = False

    @property
    def min_version(self) -> int:
        return self.api.min_version

    @property
    def max_version(self) -> int:
        """The newest version; an unstable one is neither announced nor served unless enabled."""
        held_back = self.api.latest_unstable and not self.unstable
        return self.api.max_version - 1 if held_back else self.api.max_version

    @property
    def announced_min_version(self) -> int:
        """Produce is announced from version 0: librdkafka compresses only then. 0 to 2 are refused."""
        is_produce = self.api.key == ApiKey.PRODUCE and self.listener_role == BROKER
        return 0 if is_produce else self.min_version

    def serves(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


class ListenerContext(NamedTuple):
    """A listener and what it serves."""

    name: str
    #: BROKER or CONTROLLER.
    role: str
    security_protocol: str
    apis: Mapping[int, ServedApi]
    handlers: Mapping[int, Handler]
    #: None: every request is allowed.
    authorizer: Authorizer | None = None


class RequestContext(NamedTuple):
    """The header of a request and its origin."""

    api_key: int
    api_version: int
    client_id: str | None
    listener: ListenerContext
    principal: KafkaPrincipal
    #: The address as Java prints it, which ACLs compare as text.
    client_host: str
    connection: Connection
    correlation_id: int = 0
    #: Whether a broker forwarded the request in an Envelope.
    forwarded: bool = False

    def allows(self, permission: Permission, name: str = CLUSTER_NAME, *, log_denied: bool = True) -> bool:
        """Return whether the client has the permission for a resource; without an authorizer it has."""
        authorizer = self.listener.authorizer
        return authorizer is None or authorizer.authorize(
            self.principal, self.client_host, permission, name, log_denied=log_denied, api_key=self.api_key
        )

    def require(self, permission: Permission, name: str = CLUSTER_NAME) -> None:
        """Refuse the whole request if the client does not have the permission."""
        if not self.allows(permission, name):
            raise default_error(DENIED[permission.resource_type])

    def unauthorized(
        self, permission: Permission, names: Iterable[str], *, log_denied: bool = True
    ) -> AbstractSet[str]:
        """Return the resources, by name, for which the client does not have the permission."""
        if self.listener.authorizer is None:
            return _NONE
        return {name for name in set(names) if not self.allows(permission, name, log_denied=log_denied)}

    def allows_any(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return whether the client may do this to at least one resource of the type."""
        authorizer = self.listener.authorizer
        return authorizer is None or authorizer.authorize_by_resource_type(
            self.principal, self.client_host, operation, resource_type, api_key=self.api_key
        )

    def authorized_operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
        """Return the operations that the client may perform, as a bit field (KIP-430)."""
        authorizer = self.listener.authorizer
        if authorizer is None:
            return _ALL_OPERATIONS[resource_type]
        return sum(
            1 << operation
            for operation in SUPPORTED_OPERATIONS[resource_type]
            if authorizer.authorize(
                self.principal,
                self.client_host,
                Permission(operation, resource_type),
                name,
                log_denied=False,
                log_allowed=False,
                api_key=self.api_key,
            )
        )


class Pending(NamedTuple):
    """A response that is not ready, with how the connection continues.

    An awaitable alone means: the connection takes its next request after the response, and the bytes of this
    request are not needed any more.
    """

    response: Awaitable[Message | None]
    #: The request still refers to the bytes of its frame.
    keeps_frame: bool = False
    #: The connection may take its next request before the response.
    overlapping: bool = False


#: None: the client expects no response (acks=0).
HandlerResult = Message | Awaitable[Message | None] | Pending | None
Handler = Callable[[RequestContext, Any], HandlerResult]
