"""Roles: what a user may do in the console. Each role may do what the ones before it may do.

| role | may |
|---|---|
| viewer | read, and preview changes |
| editor | change topics, records, offsets of groups, schemas, connectors and pipelines, and run SQL |
| admin | change ACLs, users, quotas and settings of brokers, and delete |

The table of routes names the role that each action needs. Users of a cluster with SCRAM, and of a console
without login, have the role admin: the cluster's ACLs decide. `--read-only` makes every user a viewer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

_ANY: Final = "*"
_MAX_VALUES: Final = 10_000


class Role(IntEnum):
    VIEWER = 1
    EDITOR = 2
    ADMIN = 3

    @property
    def label(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class RoleRules:
    """The claim with the roles of a user, and the values of it that grant a role; `*`: every user has it."""

    claim: str
    values: Mapping[Role, frozenset[str]]

    def role(self, claims: Mapping[str, Any]) -> Role | None:
        """Return the highest role that the claims grant; None if they grant none."""
        found = self.found(claims)
        granted = [
            role for role, values in self.values.items() if _ANY in values or not values.isdisjoint(found)
        ]
        return max(granted, default=None)

    def found(self, claims: Mapping[str, Any]) -> frozenset[str]:
        """Return the values of the claim: one as text, or a list."""
        value = _claim(claims, self.claim)
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list):
            return frozenset()
        return frozenset(each for each in values[:_MAX_VALUES] if isinstance(each, str))

    def known(self, claims: Mapping[str, Any]) -> bool:
        return _claim(claims, self.claim) is not None


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, which may contain dots, or by its path: `realm_access.roles`."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value
