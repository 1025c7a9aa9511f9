"""Differences of `allOf`, `anyOf` and `oneOf`: each subschema needs a partner on the other side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.schemas.json.diff.findings import Findings
from moldau.schemas.json.diff.matching import maximum_matching
from moldau.schemas.json.model import Combined, Criterion, Schema, Structures
from moldau.schemas.json.trampoline import Recursion

if TYPE_CHECKING:
    from moldau.schemas.json.diff.compare import Comparison


def compare(comparison: Comparison, found: Findings, original: Combined, update: Combined) -> Recursion[None]:
    """Compare the criteria, then match the subschemas."""
    if original.criterion is not update.criterion:
        if not _criterion_is_extended(original, update):
            found.add("COMBINED_TYPE_CHANGED")
            return
        found.add("COMBINED_TYPE_EXTENDED")
    before = _distinct(comparison.structures, original.subschemas)
    after = _distinct(comparison.structures, update.subschemas)
    if len(before) < len(after):
        found.add("PRODUCT_TYPE_EXTENDED" if update.criterion is Criterion.ALL else "SUM_TYPE_EXTENDED")
    elif len(before) > len(after):
        found.add("PRODUCT_TYPE_NARROWED" if original.criterion is Criterion.ALL else "SUM_TYPE_NARROWED")
    edges: list[dict[int, Findings]] = []
    for schema in before:
        partners = {}
        for index, partner in enumerate(after):
            inner = yield comparison.of(schema, partner)
            if inner.compatible:
                partners[index] = inner
        edges.append(partners)
    matching = maximum_matching([list(partners) for partners in edges], len(after))
    for index, partner_index in matching.items():
        found.include(edges[index][partner_index], original.criterion, str(index))
    if len(matching) < min(len(before), len(after)):
        found.add("COMBINED_TYPE_SUBSCHEMAS_CHANGED")


def _criterion_is_extended(original: Combined, update: Combined) -> bool:
    if update.criterion is Criterion.ANY:
        return True
    if len(original.subschemas) == 1:
        return len(update.subschemas) == 1 or update.criterion is Criterion.ONE
    return len(update.subschemas) == 1 and original.criterion is Criterion.ALL


def _distinct(structures: Structures, subschemas: Iterable[Schema]) -> list[Schema]:
    """Return the subschemas without repetitions."""
    distinct: dict[int, Schema] = {}
    for schema in subschemas:
        distinct.setdefault(structures.number(schema), schema)
    return list(distinct.values())
