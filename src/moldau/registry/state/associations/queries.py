"""Which associations a subject or a resource has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from moldau.registry.state.contracts import Json

if TYPE_CHECKING:
    from moldau.registry.state.registry import Registry

STRONG: Final = "STRONG"
WEAK: Final = "WEAK"
#: In place of a namespace or a name: any.
_ANY: Final = "-"
_ORDER: Final = ("resourceName", "resourceNamespace", "resourceType", "associationType", "subject")


class Wanted(NamedTuple):
    """Which associations of a subject or resource; nothing means all."""

    resource_type: str | None = None
    association_types: Sequence[str] = ()
    lifecycle: str | None = None

    def includes(self, association: Json) -> bool:
        return (
            (self.resource_type is None or association["resourceType"] == self.resource_type)
            and (not self.association_types or association["associationType"] in self.association_types)
            and (self.lifecycle is None or association["lifecycle"] == self.lifecycle)
        )


def of_subject(registry: Registry, subject: str, wanted: Wanted | None = None) -> list[Json]:
    return _selected(registry, {"subject": subject}, wanted)


def of_resource_id(registry: Registry, resource_id: str, wanted: Wanted | None = None) -> list[Json]:
    return _selected(registry, {"resourceId": resource_id}, wanted)


def of_resource_name(
    registry: Registry, namespace: str, name: str, wanted: Wanted | None = None
) -> list[Json]:
    given = {"resourceNamespace": namespace, "resourceName": name}
    return _selected(registry, {key: value for key, value in given.items() if value != _ANY}, wanted)


def is_strong(registry: Registry, subject: str) -> bool:
    return any(each["lifecycle"] == STRONG for each in of_subject(registry, subject))


def _selected(registry: Registry, equal: dict[str, str], wanted: Wanted | None) -> list[Json]:
    """Return associations as replies show them, in Confluent's order."""
    if not registry.store.associations:
        return []
    chosen = wanted or Wanted()
    found = [
        each
        for each in registry.store.associations.values()
        if all(each.get(key) == value for key, value in equal.items()) and chosen.includes(each)
    ]
    found.sort(key=lambda each: tuple(str(each[field]) for field in _ORDER))
    return [_shown(each) for each in found]


def _shown(association: Json) -> Json:
    shown = {key: value for key, value in association.items() if key not in ("tenant", "subject")}
    return {"subject": association["subject"], **shown}
