"""The ACLs of the metadata by resource pattern, so that a request about one resource does not read all ACLs.

The authorizer has an index of its own (`security/acl/index.py`), which answers what a client may do; this one
answers which ACLs exist and under which ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moldau.base.ids import Uuid
from moldau.metadata.delta import MetadataDelta
from moldau.protocol.stored.metadata import AccessControlEntryRecord
from moldau.security.acl.bindings import AclBinding, AclBindingFilter, binding_of_record
from moldau.security.acl.enums import PatternType, ResourceType

_Pattern = tuple[ResourceType, PatternType, str]


def _pattern_of(binding: AclBinding) -> _Pattern:
    return binding.resource_type, binding.pattern_type, binding.resource_name


class AclsByPattern:
    def __init__(self, acls: Mapping[Uuid, AccessControlEntryRecord]) -> None:
        #: The ids of each binding. A log may store a binding more than once.
        self._patterns: dict[_Pattern, dict[AclBinding, set[Uuid]]] = {}
        for acl_id, record in acls.items():
            self._add(acl_id, record)

    def follow(self, delta: MetadataDelta) -> None:
        """Take over the changes of a delta."""
        for acl_id, record in delta.acls.changes.items():
            old = delta.image.acls.get(acl_id)
            if old is not None:
                self._remove(acl_id, old)
            if record is not None:
                self._add(acl_id, record)

    def __contains__(self, binding: AclBinding) -> bool:
        return binding in self._patterns.get(_pattern_of(binding), ())

    def matching(self, wanted: AclBindingFilter) -> Iterator[tuple[AclBinding, set[Uuid]]]:
        """Return the bindings that a filter selects, with their ids."""
        for bindings in self._candidates(wanted):
            for binding, ids in bindings.items():
                if wanted.matches(binding):
                    yield binding, ids

    def _candidates(self, wanted: AclBindingFilter) -> list[dict[AclBinding, set[Uuid]]]:
        one_pattern = (
            wanted.resource_name is not None
            and wanted.resource_type != ResourceType.ANY
            and wanted.pattern_type not in (PatternType.ANY, PatternType.MATCH)
        )
        if not one_pattern:
            return list(self._patterns.values())
        found = self._patterns.get((wanted.resource_type, wanted.pattern_type, wanted.resource_name or ""))
        return [] if found is None else [found]

    def _add(self, acl_id: Uuid, record: AccessControlEntryRecord) -> None:
        binding = binding_of_record(record)
        self._patterns.setdefault(_pattern_of(binding), {}).setdefault(binding, set()).add(acl_id)

    def _remove(self, acl_id: Uuid, record: AccessControlEntryRecord) -> None:
        binding = binding_of_record(record)
        bindings = self._patterns[_pattern_of(binding)]
        ids = bindings[binding]
        ids.discard(acl_id)
        if not ids:
            del bindings[binding]
        if not bindings:
            del self._patterns[_pattern_of(binding)]
