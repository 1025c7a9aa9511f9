"""Differences of objects: properties, required properties, dependencies and content models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.schemas import hashorder
from moldau.schemas.json.diff import contents
from moldau.schemas.json.diff.findings import Findings
from moldau.schemas.json.diff.scalars import compare_limit
from moldau.schemas.json.model import Empty, Nothing, Object, Reference, Schema
from moldau.schemas.trampoline import Recursion

if TYPE_CHECKING:
    from moldau.schemas.json.diff.compare import Comparison

#: What evaluating a regular expression costs, in steps of the comparison.
_PATTERN_STEPS = 3


def compare(comparison: Comparison, found: Findings, original: Object, update: Object) -> Recursion[None]:
    """Compare the keywords of objects."""
    _required(found, original, update)
    yield _properties(comparison, found, original, update)
    if original.property_dependencies or update.property_dependencies:
        _property_dependencies(found, original, update)
    if original.schema_dependencies or update.schema_dependencies:
        yield _schema_dependencies(comparison, found, original, update)
    yield contents.compare_additional(comparison, found, "Properties", original, update)
    if original.unevaluated is not None or update.unevaluated is not None:
        yield contents.compare_unevaluated(
            comparison, found, "Properties", original.unevaluated, update.unevaluated
        )
    compare_limit(found, "MAX_PROPERTIES", "maxProperties", original.max_properties, update.max_properties)
    compare_limit(found, "MIN_PROPERTIES", "minProperties", original.min_properties, update.min_properties)


def _has_default(schema: Schema) -> bool:
    return schema.annotations.default is not None and not isinstance(schema, Reference)


def _required(found: Findings, original: Object, update: Object) -> None:
    after = update.properties or {}
    if original.required == update.required:
        return
    for name in hashorder.in_map(original.properties or {}):
        if name not in after or (name in original.required) == (name in update.required):
            continue
        if name in original.required:
            kind = "REQUIRED_ATTRIBUTE_REMOVED"
        else:
            kind = f"REQUIRED_ATTRIBUTE_{'WITH_DEFAULT_' if _has_default(after[name]) else ''}ADDED"
        found.add(kind, "required", name)


def _properties(comparison: Comparison, found: Findings, original: Object, update: Object) -> Recursion[None]:
    before, after = original.properties or {}, update.properties or {}
    for name in hashorder.in_set(before, after):
        path = ("properties", name)
        if name not in after:
            yield _removed(comparison, found, before[name], update, path)
        elif name not in before:
            yield _added(comparison, found, original, update, path)
        else:
            found.include((yield comparison.of(before[name], after[name])), *path)


def _removed(
    comparison: Comparison, found: Findings, schema: Schema, update: Object, path: tuple[str, str]
) -> Recursion[None]:
    """Report a removed property. Only the content model of the update decides."""
    if contents.is_open(update):
        found.add("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", *path)
        return
    comparison.steps.take(_PATTERN_STEPS * len(update.pattern_properties))
    covering = contents.covering(update, path[1])
    if covering is not None:
        inner = yield comparison.of(schema, covering)
        found.include(inner, *path)
        covered = "IS" if inner.compatible else "NOT"
        found.add(f"PROPERTY_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", *path)
    elif isinstance(schema, Nothing):
        found.add("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", *path)
    else:
        found.add("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", *path)


def _added(
    comparison: Comparison, found: Findings, original: Object, update: Object, path: tuple[str, str]
) -> Recursion[None]:
    """Report an added property. Only the content model of the original decides."""
    name = path[1]
    schema = (update.properties or {})[name]
    if name in update.required:
        noun = "REQUIRED_PROPERTY_WITH_DEFAULT" if _has_default(schema) else "REQUIRED_PROPERTY"
    else:
        noun = "OPTIONAL_PROPERTY"
    if contents.is_open(original):
        if isinstance(schema, Empty):
            noun = "PROPERTY_WITH_EMPTY_SCHEMA"
        found.add(f"{noun}_ADDED_TO_OPEN_CONTENT_MODEL", *path)
        return
    comparison.steps.take(_PATTERN_STEPS * len(original.pattern_properties))
    covering = contents.covering(original, name)
    if covering is not None:
        inner = yield comparison.of(covering, schema)
        found.include(inner, *path)
        covered = "IS" if inner.compatible else "NOT"
        found.add(f"PROPERTY_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", *path)
    found.add(f"{noun}_ADDED_TO_UNOPEN_CONTENT_MODEL", *path)


def _property_dependencies(found: Findings, original: Object, update: Object) -> None:
    before, after = original.property_dependencies or {}, update.property_dependencies or {}
    for name in hashorder.in_set(before, after):
        if name not in after:
            change = "REMOVED"
        elif name not in before:
            change = "ADDED"
        elif before[name] == after[name]:
            continue
        elif after[name] >= before[name]:
            change = "EXTENDED"
        else:
            change = "NARROWED" if before[name] >= after[name] else "CHANGED"
        found.add(f"DEPENDENCY_ARRAY_{change}", "dependencies", name)


def _schema_dependencies(
    comparison: Comparison, found: Findings, original: Object, update: Object
) -> Recursion[None]:
    before, after = original.schema_dependencies or {}, update.schema_dependencies or {}
    for name in hashorder.in_set(before, after):
        if name in before and name in after:
            found.include((yield comparison.of(before[name], after[name])), "dependencies", name)
        else:
            found.add(f"DEPENDENCY_SCHEMA_{'REMOVED' if name in before else 'ADDED'}", "dependencies", name)
