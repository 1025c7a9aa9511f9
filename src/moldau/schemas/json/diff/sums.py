"""Differences of `allOf`, `anyOf` and `oneOf`: each subschema needs a partner on the other side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.schemas.json.diff.findings import Findings
from moldau.schemas.json.diff.matching import maximum_matching
from moldau.schemas.json.model import Combined, Criterion, Schema, Structures, referred
from moldau.schemas.trampoline import Recursion

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
    partners = [referred(schema) for schema in after]
    for schema in map(referred, before):
        comparison.steps.take(len(partners))
        compatible = {}
        for index, partner in enumerate(partners):
            inner = comparison.compared.get((id(schema), id(partner)))
            if inner is None:
                inner = yield comparison.of(schema, partner)
            if inner.compatible:
                compatible[index] = inner
        edges.append(compatible)
    matching = maximum_matching([list(compatible) for compatible in edges], len(after))
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
