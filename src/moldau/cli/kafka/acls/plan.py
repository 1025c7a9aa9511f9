"""The resources and ACLs that the options of kafka-acls describe, and their text in Kafka's format."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple

from moldau.cli.shared.arguments import UsageError
from moldau.cli.shared.tool import ToolError
from moldau.security.acl.bindings import WILDCARD, AclBinding, AclBindingFilter
from moldau.security.acl.enums import (
    SUPPORTED_OPERATIONS,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from moldau.security.acl.permissions import CLUSTER_NAME

#: The options that name resources.
RESOURCE_OPTIONS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
_PRODUCER = {
    ResourceType.TOPIC: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
}
_CONSUMER = {
    ResourceType.TOPIC: (AclOperation.READ, AclOperation.DESCRIBE),
    ResourceType.GROUP: (AclOperation.READ,),
}


class Resource(NamedTuple):
    """A resource pattern, or a filter for patterns."""

    type: ResourceType
    name: str
    pattern_type: PatternType

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={self.type.name}, name={self.name}, "
            f"patternType={self.pattern_type.name})"
        )

    def filter(self, entry: Entry | None = None) -> AclBindingFilter:
        """Return the filter for an entry of this resource, or for all entries."""
        everything = AclBindingFilter(self.type, self.name, self.pattern_type)
        return everything if entry is None else everything._replace(**entry._asdict())

    def binding(self, entry: Entry) -> AclBinding:
        return AclBinding(
            self.type,
            self.name,
            self.pattern_type,
            entry.principal,
            entry.host,
            entry.operation,
            entry.permission_type,
        )


class Entry(NamedTuple):
    """An ACL without its resource."""

    principal: str
    host: str
    operation: AclOperation
    permission_type: PermissionType

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name}, "
            f"permissionType={self.permission_type.name})"
        )


#: The entries of each resource, without duplicates, in the order of the command line.
Plan = dict[Resource, list[Entry]]

_CLUSTER = Resource(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)


def split_binding(binding: AclBinding) -> tuple[Resource, Entry]:
    resource = Resource(binding.resource_type, binding.resource_name, binding.pattern_type)
    return resource, Entry(binding.principal, binding.host, binding.operation, binding.permission_type)


def operation_name(operation: AclOperation) -> str:
    """Return the name of an operation on the command line: DescribeConfigs."""
    return operation.name.title().replace("_", "")


def pattern_type(text: str) -> PatternType:
    """Parse --resource-pattern-type; case does not matter."""
    try:
        found = PatternType[text.upper()]
    except KeyError:
        raise ValueError(text) from None
    if found is PatternType.UNKNOWN:
        raise ValueError(text)
    return found


def principals(options: argparse.Namespace, option: str) -> list[str]:
    """Return the principals of an option; as in Kafka, one without a type is refused."""
    found = [text.strip() for text in getattr(options, option) or [] if text is not None]
    for text in found:
        if ":" not in text:
            raise ToolError(f"expected a string in format principalType:principalName but got {text}")
    return list(dict.fromkeys(found))


def resources(options: argparse.Namespace) -> list[Resource]:
    kind = options.resource_pattern_type
    found = [
        Resource(resource_type, name.strip(), kind)
        for option, resource_type in RESOURCE_OPTIONS.items()
        for name in getattr(options, option) or []
    ]
    if kind is PatternType.LITERAL and (options.cluster or options.idempotent):
        found.append(_CLUSTER)
    return list(dict.fromkeys(found))


def plan_of(options: argparse.Namespace) -> Plan:
    """Return the ACLs to add or remove; a resource without entries stands for all its ACLs."""
    found = resources(options)
    if not found:
        raise UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>"
        )
    plan: Plan = {}
    if options.producer:
        _add_role(plan, options, found, _PRODUCER)
        if options.idempotent:
            plan[_CLUSTER] = _entries(options, [AclOperation.IDEMPOTENT_WRITE])
    if options.consumer:
        _add_role(plan, options, found, _CONSUMER)
    if not options.producer and not options.consumer:
        entries = _entries(options, _operations(options))
        plan = dict.fromkeys(found, entries)
    _check_operations(plan)
    return plan


def _add_role(
    plan: Plan,
    options: argparse.Namespace,
    found: Iterable[Resource],
    role: dict[ResourceType, tuple[AclOperation, ...]],
) -> None:
    for resource in found:
        if resource.type in role:
            entries = plan.get(resource, []) + _entries(options, role[resource.type])
            plan[resource] = list(dict.fromkeys(entries))


def _operations(options: argparse.Namespace) -> list[AclOperation]:
    """Return the operations; an unknown name becomes UNKNOWN, which no resource supports."""
    names = {operation_name(operation).upper(): operation for operation in AclOperation}
    given_names = options.operation or [operation_name(AclOperation.ALL)]
    return [names.get(name.strip().upper(), AclOperation.UNKNOWN) for name in given_names]


def _entries(options: argparse.Namespace, operations: Iterable[AclOperation]) -> list[Entry]:
    wanted = list(operations)
    return list(
        dict.fromkeys(
            (
                *_combinations(options, "allow", wanted, PermissionType.ALLOW),
                *_combinations(options, "deny", wanted, PermissionType.DENY),
            )
        )
    )


def _combinations(
    options: argparse.Namespace, word: str, operations: list[AclOperation], permission_type: PermissionType
) -> Iterator[Entry]:
    hosts = [host.strip() for host in getattr(options, f"{word}_host") or [WILDCARD]]
    for principal, operation, host in product(principals(options, f"{word}_principal"), operations, hosts):
        yield Entry(principal, host, operation, permission_type)


def _check_operations(plan: Plan) -> None:
    for resource, entries in plan.items():
        valid = (*SUPPORTED_OPERATIONS[resource.type], AclOperation.ALL)
        if any(entry.operation not in valid for entry in entries):
            names = ", ".join(operation.name for operation in valid)
            raise UsageError(f"ResourceType {resource.type.name} only supports operations [{names}]")
