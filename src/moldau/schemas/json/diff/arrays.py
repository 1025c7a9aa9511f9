"""Differences of arrays: items, content models and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.schemas.json.diff import contents
from moldau.schemas.json.diff.findings import Findings
from moldau.schemas.json.diff.scalars import compare_limit
from moldau.schemas.json.model import Array, Empty, Nothing, Schema
from moldau.schemas.trampoline import Recursion

if TYPE_CHECKING:
    from moldau.schemas.json.diff.compare import Comparison


def compare(comparison: Comparison, found: Findings, original: Array, update: Array) -> Recursion[None]:
    """Compare the keywords of arrays."""
    found.include((yield comparison.of(original.all_items, update.all_items)), "items")
    yield _items(comparison, found, original, update)
    yield contents.compare_additional(comparison, found, "Items", original, update)
    yield contents.compare_unevaluated(comparison, found, "Items", original.unevaluated, update.unevaluated)
    compare_limit(found, "MAX_ITEMS", "maxItems", original.max_items, update.max_items)
    compare_limit(found, "MIN_ITEMS", "minItems", original.min_items, update.min_items)
    if original.unique != update.unique:
        found.add("UNIQUE_ITEMS_REMOVED" if original.unique else "UNIQUE_ITEMS_ADDED", "uniqueItems")
    compare_limit(found, "MAX_CONTAINS", "maxContains", original.max_contains, update.max_contains)
    compare_limit(found, "MIN_CONTAINS", "minContains", original.min_contains, update.min_contains)


def _items(comparison: Comparison, found: Findings, original: Array, update: Array) -> Recursion[None]:
    """Compare the schemas of the first items."""
    common = min(len(original.items), len(update.items))
    for index in range(common):
        found.include((yield comparison.of(original.items[index], update.items[index])), "items", str(index))
    for index in range(common, len(original.items)):
        yield _removed(comparison, found, original.items[index], update, str(index))
    for index in range(common, len(update.items)):
        yield _added(comparison, found, original, update.items[index], str(index))


def _removed(
    comparison: Comparison, found: Findings, schema: Schema, update: Array, index: str
) -> Recursion[None]:
    if contents.is_open(update):
        found.add("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", "items", index)
        return
    covering = contents.covering(update)
    if covering is not None:
        inner = yield comparison.of(schema, covering)
        found.include(inner, "items", index)
        covered = "IS" if inner.compatible else "NOT"
        found.add(f"ITEM_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "items", index)
    elif isinstance(schema, Nothing):
        found.add("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", "items", index)
    else:
        found.add("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", "items", index)


def _added(
    comparison: Comparison, found: Findings, original: Array, schema: Schema, index: str
) -> Recursion[None]:
    if contents.is_open(original):
        noun = "ITEM_WITH_EMPTY_SCHEMA" if isinstance(schema, Empty) else "ITEM"
        found.add(f"{noun}_ADDED_TO_OPEN_CONTENT_MODEL", "items", index)
        return
    covering = contents.covering(original)
    if covering is None:
        found.add("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", "items", index)
        return
    inner = yield comparison.of(covering, schema)
    found.include(inner, "items", index)
    covered = "IS" if inner.compatible else "NOT"
    found.add(f"ITEM_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "items", index)
