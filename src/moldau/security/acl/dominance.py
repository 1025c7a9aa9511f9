"""Whether a principal may do something to at least one resource of a type (KIP-679).

Only patterns are compared; which resources exist is not known. A DENY dominates an ALLOW if it applies to
every resource of the ALLOW: a DENY on `*`, on a prefix of the ALLOW's name, or on the same literal name. As
in Kafka, an ALLOW on `*` counts without comparison with prefixed and literal DENYs, and no operation
implies another.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.security.acl.enums import AclOperation, PatternType
from moldau.security.acl.index import DENYING_BITS, Pattern


def allows_some(patterns: Iterable[Pattern], principal: str, host: str, operation: AclOperation) -> bool:
    """Return whether an ALLOW for this client is not dominated by a DENY."""
    bits = DENYING_BITS[operation]
    allowed: list[Pattern] = []
    denied: dict[PatternType, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
    for pattern in patterns:
        for _, entry in pattern.entries_of(principal, host):
            if entry.denied & bits:
                if pattern.is_wildcard:
                    return False
                denied[pattern.type].add(pattern.name)
            if entry.allowed & bits:
                allowed.append(pattern)
    if any(pattern.is_wildcard for pattern in allowed):
        return True
    return any(not _dominated(pattern, denied) for pattern in allowed)


def _dominated(pattern: Pattern, denied: dict[PatternType, set[str]]) -> bool:
    name = pattern.name
    if pattern.type == PatternType.LITERAL and name in denied[PatternType.LITERAL]:
        return True
    prefixes = denied[PatternType.PREFIXED]
    return bool(prefixes) and any(name[:length] in prefixes for length in range(1, len(name) + 1))
