"""ACLs by resource pattern, so that a decision does not read ACLs of other resources, users or hosts.

A resource of a type is matched by at most one literal pattern, by the literal pattern `*`, and by the
prefixed patterns that its name starts with; those are looked up by each length that a prefix of the type has.
A pattern stores the operations that it allows and denies as bit fields, by principal and host. The number of
look-ups therefore depends on the number of distinct prefix lengths, not on the number of ACLs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from moldau.security.acl.bindings import WILDCARD, WILDCARD_PRINCIPAL, AclBinding
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType

#: The operations that imply another one in an ALLOW, never in a DENY.
_IMPLIED_BY = {
    AclOperation.DESCRIBE: (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}
#: The bits of the operations in a DENY that deny an operation: itself and ALL.
DENYING_BITS = {op: 1 << op | 1 << AclOperation.ALL for op in AclOperation}
#: The bits of the operations in an ALLOW that allow an operation.
ALLOWING_BITS = {
    op: DENYING_BITS[op] | sum(1 << implying for implying in _IMPLIED_BY.get(op, ())) for op in AclOperation
}


@dataclass(slots=True)
class Entry:
    """The operations that a pattern allows and denies to one principal from one host, as bit fields."""

    allowed: int = 0
    denied: int = 0


@dataclass(slots=True, eq=False)
class Pattern:
    """The ACLs of one resource pattern, by principal and host."""

    type: PatternType
    name: str
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)

    @property
    def is_wildcard(self) -> bool:
        return self.type == PatternType.LITERAL and self.name == WILDCARD

    def entries_of(self, principal: str, host: str) -> Iterator[tuple[tuple[str, str], Entry]]:
        """Return the entries that apply to a client, with their keys."""
        for key in client_keys(principal, host):
            entry = self.entries.get(key)
            if entry is not None:
                yield key, entry


def client_keys(principal: str, host: str) -> tuple[tuple[str, str], ...]:
    """Return the keys of the entries that apply to a client."""
    return (
        (principal, host),
        (principal, WILDCARD),
        (WILDCARD_PRINCIPAL, host),
        (WILDCARD_PRINCIPAL, WILDCARD),
    )


class _ResourceTypeIndex:
    """The patterns of one resource type."""

    __slots__ = ("by_principal", "lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, Pattern] = {}
        self.prefixed: dict[str, Pattern] = {}
        #: The lengths of the prefixed patterns, longest first, with the number of patterns that have it.
        self.lengths: dict[int, int] = {}
        #: The patterns with an entry of a principal, with the number of these entries.
        self.by_principal: dict[str, Counter[Pattern]] = {}

    def matching(self, name: str) -> list[Pattern]:
        """Return the patterns that apply to a resource, in Kafka's order: longest name first, then `*`."""
        literal, prefixed = self.literal, self.prefixed
        found = []
        pattern = literal.get(name)
        if pattern is not None:
            found.append(pattern)
        longest = len(name)
        for length in self.lengths:
            if length <= longest:
                pattern = prefixed.get(name[:length])
                if pattern is not None:
                    found.append(pattern)
        if name != WILDCARD:
            pattern = literal.get(WILDCARD)
            if pattern is not None:
                found.append(pattern)
        return found

    def pattern(self, kind: PatternType, name: str) -> Pattern:
        """Return a pattern, which is created if there is no ACL on it yet."""
        patterns = self.prefixed if kind == PatternType.PREFIXED else self.literal
        pattern = patterns.get(name)
        if pattern is None:
            pattern = patterns[name] = Pattern(kind, name)
            if kind == PatternType.PREFIXED:
                self._count_length(len(name), 1)
        return pattern

    def forget(self, pattern: Pattern) -> None:
        if pattern.type == PatternType.PREFIXED:
            del self.prefixed[pattern.name]
            self._count_length(len(pattern.name), -1)
        else:
            del self.literal[pattern.name]

    def _count_length(self, length: int, change: int) -> None:
        counts = dict(self.lengths)
        counts[length] = counts.get(length, 0) + change
        self.lengths = {each: counts[each] for each in sorted(counts, reverse=True) if counts[each]}


class AclIndex:
    def __init__(self) -> None:
        self._types: dict[ResourceType, _ResourceTypeIndex] = {}
        #: A log written by others may hold one binding under two ids; it applies until both are removed.
        self._bindings: Counter[AclBinding] = Counter()

    def __len__(self) -> int:
        return self._bindings.total()

    def matching(self, resource_type: ResourceType, name: str) -> list[Pattern]:
        """Return the patterns that apply to a resource, in Kafka's order: longest name first, then `*`."""
        index = self._types.get(resource_type)
        return [] if index is None else index.matching(name)

    def patterns_of(self, resource_type: ResourceType, principal: str) -> Iterator[Pattern]:
        """Return the patterns of a type that have an entry for a principal or for all."""
        index = self._types.get(resource_type)
        if index is not None:
            for each in (principal, WILDCARD_PRINCIPAL):
                yield from index.by_principal.get(each, ())

    def add(self, binding: AclBinding) -> None:
        self._bindings[binding] += 1
        index = self._types.setdefault(binding.resource_type, _ResourceTypeIndex())
        pattern = index.pattern(binding.pattern_type, binding.resource_name)
        key = binding.principal, binding.host
        entry = pattern.entries.get(key)
        if entry is None:
            entry = pattern.entries[key] = Entry()
            index.by_principal.setdefault(binding.principal, Counter())[pattern] += 1
        if binding.permission_type == PermissionType.ALLOW:
            entry.allowed |= 1 << binding.operation
        else:
            entry.denied |= 1 << binding.operation

    def remove(self, binding: AclBinding) -> None:
        self._bindings[binding] -= 1
        if self._bindings[binding] > 0:
            return
        del self._bindings[binding]
        index = self._types[binding.resource_type]
        pattern = index.pattern(binding.pattern_type, binding.resource_name)
        key = binding.principal, binding.host
        entry = pattern.entries[key]
        if binding.permission_type == PermissionType.ALLOW:
            entry.allowed &= ~(1 << binding.operation)
        else:
            entry.denied &= ~(1 << binding.operation)
        if not entry.allowed and not entry.denied:
            del pattern.entries[key]
            self._forget_principal(index, binding.principal, pattern)
        if not pattern.entries:
            index.forget(pattern)

    @staticmethod
    def _forget_principal(index: _ResourceTypeIndex, principal: str, pattern: Pattern) -> None:
        patterns = index.by_principal[principal]
        patterns[pattern] -= 1
        if not patterns[pattern]:
            del patterns[pattern]
        if not patterns:
            del index.by_principal[principal]
