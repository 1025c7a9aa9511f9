"""Associations of resources (topics) with subjects, WEAK or STRONG.

A strong association owns its subject: it is frozen, no other resource may be associated with the subject, and
no schema may refer to it. A cascading delete removes the schemas of strong associations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from moldau.registry.state import errors
from moldau.registry.state.contracts import Json

if TYPE_CHECKING:
    from moldau.registry.state.registry import Registry

STRONG = "STRONG"


def of_subject(
    registry: Registry, subject: str, resource_type: str | None = None, types: Sequence[str] = ()
) -> list[Json]:
    """Return the associations of a subject, as replies show them."""
    return _selected(registry, {"subject": subject}, resource_type, types, None)


def _selected(
    registry: Registry,
    wanted: dict[str, Any],
    resource_type: str | None,
    types: Sequence[str],
    lifecycle: str | None,
) -> list[Json]:
    if not registry.store.associations:
        return []
    found = (
        each
        for each in registry.store.associations.values()
        if all(each.get(key) == value for key, value in wanted.items())
        and (resource_type is None or each["resourceType"] == resource_type)
        and (not types or each["associationType"] in types)
        and (lifecycle is None or each["lifecycle"] == lifecycle)
    )
    return [{key: value for key, value in each.items() if key != "tenant"} for each in found]


def is_strong(registry: Registry, subject: str) -> bool:
    return any(each["lifecycle"] == STRONG for each in of_subject(registry, subject))


def by_resource(
    registry: Registry,
    wanted: dict[str, Any],
    resource_type: str | None,
    types: Sequence[str],
    lifecycle: str | None,
) -> list[Json]:
    """Return the associations of a resource, named by id, or by name and namespace (`-`: any)."""
    given = {key: value for key, value in wanted.items() if value != "-"}
    return _selected(registry, given, resource_type, types, lifecycle)


def require_found(associations: Iterable[Json], resource: str) -> list[Json]:
    found = list(associations)
    if not found:
        raise errors.association_not_found(resource)
    return found
