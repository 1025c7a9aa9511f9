"""Joining the schemas of keywords next to each other, in drafts 2019-09 and 2020-12."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeGuard, TypeVar

from moldau.schemas.json.model import Array, Combined, Criterion, Number, Object, Schema, String

_MERGED = (Array, Number, Object, String)

T = TypeVar("T", bound=Schema)


def join(left: Schema, right: Schema) -> Schema:
    """Return the schema that demands both."""
    if isinstance(left, _MERGED) and type(left) is type(right):
        return merge(left, right)
    if _is_types(left) and _has_kind(left, right):
        return replace(left, subschemas=_add(left.subschemas, right))
    if _is_types(right) and _has_kind(right, left):
        return replace(right, subschemas=_add(right.subschemas, left))
    parts: tuple[Schema, ...] = ()
    for part in (*allof_parts(left), *allof_parts(right)):
        parts = _add(parts, part)
    return Combined(subschemas=parts, generated=True)


def allof_parts(schema: Schema) -> tuple[Schema, ...]:
    """Return the parts of a generated `allOf`, any other schema as the only part."""
    if isinstance(schema, Combined) and schema.generated and schema.criterion is Criterion.ALL:
        return schema.subschemas
    return (schema,)


def merge(left: T, right: T) -> T:
    """Return a schema with the keywords of two schemas of the same kind."""
    changed = {
        field.name: getattr(right, field.name) for field in fields(right) if field.name != "annotations"
    }
    merged = {name: _merged(name, getattr(left, name), value) for name, value in changed.items()}
    return replace(left, **merged)


def _merged(name: str, left: Any, right: Any) -> Any:
    if name == "additional_allowed":
        return left and right
    if isinstance(right, bool):
        return left or right
    if right is None:
        return left
    if isinstance(right, Mapping):
        return {**(left or {}), **right}
    if isinstance(right, frozenset):
        return left | right
    return left + right if isinstance(right, tuple) else right


def _is_types(schema: Schema) -> TypeGuard[Combined]:
    return isinstance(schema, Combined) and schema.generated and schema.criterion is Criterion.ANY


def _has_kind(types: Combined, schema: Schema) -> bool:
    return any(type(member) is type(schema) for member in types.subschemas)


def _add(parts: Iterable[Schema], schema: Schema) -> tuple[Schema, ...]:
    """Merge a schema into the first part of its kind, or append it."""
    result = list(parts)
    for index, part in enumerate(result):
        if isinstance(schema, _MERGED) and type(part) is type(schema):
            result[index] = merge(part, schema)
            return tuple(result)
    return (*result, schema)
