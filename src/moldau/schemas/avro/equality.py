"""Structural equality of schemas as in Java's `Schema.equals`: a type may be defined twice if both are equal.

Documentation and aliases do not count; names, types, defaults, order and other properties do.
"""

from __future__ import annotations

import json
from typing import Any

from moldau.schemas.avro.tree import (
    MISSING,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Type,
    Union,
)


def same(one: Type, other: Type) -> bool:
    """Compare two schemas; references to types that are not defined yet equal nothing."""
    return _same(one, other, set())


def _same(one: Type, other: Type, seen: set[tuple[int, int]]) -> bool:
    if one is other:
        return True
    match one, other:
        case Primitive(), Primitive():
            return one.kind == other.kind and _json_equal(one.properties, other.properties)
        case Array(), Array():
            return _json_equal(one.properties, other.properties) and _same(one.items, other.items, seen)
        case Map(), Map():
            return _json_equal(one.properties, other.properties) and _same(one.values, other.values, seen)
        case Union(), Union():
            return len(one.branches) == len(other.branches) and all(
                _same(left, right, seen) for left, right in zip(one.branches, other.branches, strict=True)
            )
        case Record(), Record():
            return _same_record(one, other, seen)
        case Enum(), Enum():
            return (
                one.name.full == other.name.full
                and one.symbols == other.symbols
                and _json_equal(one.properties, other.properties)
            )
        case Fixed(), Fixed():
            return (
                one.name.full == other.name.full
                and one.size == other.size
                and _json_equal(one.properties, other.properties)
            )
    return False


def _same_record(one: Record, other: Record, seen: set[tuple[int, int]]) -> bool:
    pair = (id(one), id(other))
    if pair in seen:
        return True
    seen.add(pair)
    return (
        one.name.full == other.name.full
        and _json_equal(one.properties, other.properties)
        and len(one.fields) == len(other.fields)
        and all(_same_field(left, right, seen) for left, right in zip(one.fields, other.fields, strict=True))
    )


def _same_field(one: Field, other: Field, seen: set[tuple[int, int]]) -> bool:
    return (
        one.name == other.name
        and one.order == other.order
        and _json_equal(one.default, other.default)
        and _json_equal(one.properties, other.properties)
        and _same(one.type, other.type, seen)
    )


def _json_equal(one: Any, other: Any) -> bool:
    """Compare JSON values; unlike in Python, 1, 1.0 and true differ."""
    if one is MISSING or other is MISSING:
        return one is other
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
