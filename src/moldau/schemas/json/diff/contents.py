"""Content models: what a schema says about properties or items that it does not name.

Open: anything. Closed: nothing. Partially open: what another schema describes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.schemas.json.diff.findings import Findings
from moldau.schemas.json.model import Array, Empty, Nothing, Object, Schema
from moldau.schemas.trampoline import Recursion

if TYPE_CHECKING:
    from moldau.schemas.json.diff.compare import Comparison


def is_open(schema: Object | Array) -> bool:
    """Return whether unnamed properties or items may be anything."""
    if not schema.additional_allowed or schema.additional is not None:
        return False
    if isinstance(schema, Object) and schema.pattern_properties:
        return False
    return schema.unevaluated is None or isinstance(schema.unevaluated, Empty)


def covering(schema: Object | Array, name: str | None = None) -> Schema | None:
    """Return the schema of an unnamed property or item in a partially open content model."""
    if isinstance(schema, Object) and name is not None:
        for pattern, inner in schema.pattern_properties:
            if pattern.found_in(name):
                return inner
    if schema.additional is not None:
        return schema.additional
    if schema.additional_allowed and not isinstance(schema.unevaluated, (Empty, Nothing)):
        return schema.unevaluated
    return None


def compare_additional(
    comparison: Comparison, found: Findings, noun: str, original: Object | Array, update: Object | Array
) -> Recursion[None]:
    """Compare `additionalProperties` or `additionalItems`; `noun` is Properties or Items."""
    if original.additional_allowed == update.additional_allowed and not (
        original.additional is not None or update.additional is not None
    ):
        return
    keyword, kind = f"additional{noun}", f"ADDITIONAL_{noun.upper()}"
    if original.additional_allowed != update.additional_allowed:
        found.add(f"{kind}_ADDED" if update.additional_allowed else f"{kind}_REMOVED", keyword)
    elif original.additional is None and update.additional is not None:
        found.add(f"{kind}_NARROWED", keyword)
    elif original.additional is not None and update.additional is None:
        found.add(f"{kind}_EXTENDED", keyword)
    else:
        found.include((yield comparison.of(original.additional, update.additional)), keyword)


def compare_unevaluated(
    comparison: Comparison, found: Findings, noun: str, before: Schema | None, after: Schema | None
) -> Recursion[None]:
    """Compare `unevaluatedProperties` or `unevaluatedItems`."""
    if before is None and after is None:
        return
    keyword, kind = f"unevaluated{noun}", f"UNEVALUATED_{noun.upper()}"
    was_false, is_false = isinstance(before, Nothing), isinstance(after, Nothing)
    was_empty, is_empty = isinstance(before, Empty), isinstance(after, Empty)
    if was_false != is_false:
        found.add(f"{kind}_ADDED" if was_false else f"{kind}_REMOVED", keyword)
    elif before is None or (was_empty and not is_empty and after is not None):
        found.add(f"{kind}_NARROWED", keyword)
    elif after is None or (is_empty and not was_empty):
        found.add(f"{kind}_EXTENDED", keyword)
    else:
        found.include((yield comparison.of(before, after)), keyword)
