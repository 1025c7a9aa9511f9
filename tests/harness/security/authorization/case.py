"""What a case consists of, and the variants of it that are sent to a broker.

A case is a request, the ACLs that exactly suffice for it, and what the user observes with all of them, with
none of them, and with all but one. Names may contain `{user}`, which every variant replaces by a user of its
own, so that variants do not disturb each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from moldau.base.ids import Uuid
from moldau.protocol.schema import Message, Struct
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.acl.permissions import CLUSTER_NAME

#: Error codes or names, as an observer of the case returns them.
Outcome = tuple[Any, ...]

SUCCESS: Outcome = ()
TOPIC_DENIED: Outcome = (29,)
GROUP_DENIED: Outcome = (30,)
CLUSTER_DENIED: Outcome = (31,)
TRANSACTIONAL_ID_DENIED: Outcome = (53,)
#: The broker closed the connection.
CLOSED: Outcome = ("closed",)
NOT_REQUESTED = -(2**31)
_AUTHORIZATION_CODES = frozenset({29, 30, 31, 53, 65})


class Acl(NamedTuple):
    operation: AclOperation
    resource_type: ResourceType
    name: str
    permission_type: PermissionType = PermissionType.ALLOW
    pattern_type: PatternType = PatternType.LITERAL

    def of(self, user: str) -> Acl:
        return self._replace(name=self.name.replace("{user}", user))

    def nearly(self) -> Acl:
        """Return an ACL that does not help: of another resource, or another operation on the cluster."""
        if self.resource_type != ResourceType.CLUSTER:
            return self._replace(name=f"{self.name}-other")
        creates = self.operation == AclOperation.CREATE
        return self._replace(operation=AclOperation.DESCRIBE_CONFIGS if creates else AclOperation.CREATE)


def topic(operation: str, name: str = "orders") -> Acl:
    return Acl(AclOperation[operation], ResourceType.TOPIC, name)


def group(operation: str, name: str = "readers") -> Acl:
    return Acl(AclOperation[operation], ResourceType.GROUP, name)


def transactional_id(operation: str, name: str = "tx-{user}") -> Acl:
    return Acl(AclOperation[operation], ResourceType.TRANSACTIONAL_ID, name)


def cluster(operation: str) -> Acl:
    return Acl(AclOperation[operation], ResourceType.CLUSTER, CLUSTER_NAME)


def denied(acl: Acl) -> Acl:
    return acl._replace(permission_type=PermissionType.DENY)


class World(NamedTuple):
    """What a request may refer to."""

    user: str
    #: The ids of existing topics by name.
    topic_ids: dict[str, Uuid]
    node_id: int = 1

    @property
    def transactional_id(self) -> str:
        return f"tx-{self.user}"


def error_codes(response: Any) -> Outcome:
    """Return the distinct error codes of a response; none means success."""
    return tuple(sorted({code for code in _codes(response) if code}))


def authorization_codes(response: Any) -> Outcome:
    """The same for requests whose other errors depend on time or on the broker."""
    return tuple(code for code in error_codes(response) if code in _AUTHORIZATION_CODES)


def _codes(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        for item in value:
            yield from _codes(item)
    elif isinstance(value, Struct):
        for each in value.FIELDS:
            inner = getattr(value, each.name)
            if each.name.endswith("error_code"):
                yield inner
            else:
                yield from _codes(inner)


@dataclass(frozen=True)
class Case:
    name: str
    version: int
    request: Callable[[World], Message]
    #: What a user without ACLs observes.
    refused: Outcome
    #: The ACLs that exactly suffice.
    needs: tuple[Acl, ...] = ()
    #: What a user with them observes.
    allowed: Outcome = SUCCESS
    #: What a user observes who lacks only the ACL at this position of `needs`.
    lacking: tuple[Outcome, ...] = ()
    #: Other ACLs and what a user with them observes.
    also: tuple[tuple[tuple[Acl, ...], Outcome], ...] = ()
    observe: Callable[[Any], Outcome] = error_codes
    #: Topics and groups with committed offsets that must exist.
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = field(default=())
    #: Whether similar ACLs are as good as none.
    near_miss: bool = True
    #: Whether the share group `sharers` must have an assignment.
    share_assignment: bool = False
    #: Whether the request is sent to a controller listener.
    controller: bool = False

    def on_controller(self) -> Case:
        return replace(self, controller=True)


@dataclass(frozen=True)
class Variant:
    case: Case
    label: str
    user: str
    acls: tuple[Acl, ...]
    expected: Outcome

    @property
    def id(self) -> str:
        where = " on the controller" if self.case.controller else ""
        return f"{self.case.name} v{self.case.version}{where}: {self.label}"


def variants(cases: list[Case]) -> list[Variant]:
    """Return the variants of all cases; each has a user of its own."""
    found: list[Variant] = []
    for case in cases:
        for label, acls, expected in _variants(case):
            user = f"user{len(found)}"
            found.append(Variant(case, label, user, tuple(each.of(user) for each in acls), expected))
    return found


def _variants(case: Case) -> Iterator[tuple[str, tuple[Acl, ...], Outcome]]:
    yield "without ACLs", (), case.refused
    if case.needs:
        yield "with the ACLs", case.needs, case.allowed
        if case.near_miss:
            yield "with similar ACLs", tuple(each.nearly() for each in case.needs), case.refused
    for index, outcome in enumerate(case.lacking):
        rest = case.needs[:index] + case.needs[index + 1 :]
        yield f"without {_text(case.needs[index])}", rest, outcome
    for acls, outcome in case.also:
        yield f"with {', '.join(map(_text, acls))}", acls, outcome


def _text(acl: Acl) -> str:
    deny = "DENY " if acl.permission_type == PermissionType.DENY else ""
    return f"{deny}{acl.operation.name} on {acl.resource_type.name} {acl.name}"
