"""Strategies of Connect schemas with values that fit them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Schema,
    Type,
    array,
    map_of,
    struct,
)
from moldau.pipelines.connect.data.struct import Struct

_TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(
    lambda time: time.replace(tzinfo=UTC, microsecond=time.microsecond // 1000 * 1000)
)
_DATES = st.dates(datetime(1900, 1, 1).date(), datetime(2200, 1, 1).date()).map(
    lambda day: datetime(day.year, day.month, day.day, tzinfo=UTC)
)
_NAMES = st.from_regex(r"[a-z][a-z0-9]{0,6}", fullmatch=True)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_PRIMITIVES: list[tuple[Schema, st.SearchStrategy[Any]]] = [
    (INT8, st.integers(-128, 127)),
    (INT16, st.integers(-(2**15), 2**15 - 1)),
    (INT32, st.integers(-(2**31), 2**31 - 1)),
    (INT64, st.integers(-(2**63), 2**63 - 1)),
    (FLOAT64, st.floats(allow_nan=False, allow_infinity=False)),
    (BOOLEAN, st.booleans()),
    (STRING, _TEXT),
    (BYTES, st.binary(max_size=6)),
    (logical.decimal_schema(3), st.integers(-(10**20), 10**20).map(lambda n: Decimal(n).scaleb(-3))),
    (logical.DATE, _DATES),
    (logical.TIME, st.integers(0, 86_399_999).map(lambda ms: logical.EPOCH + timedelta(milliseconds=ms))),
    (logical.TIMESTAMP, _TIMES),
]

#: A schema and the strategy of its values.
Typed = tuple[Schema, st.SearchStrategy[Any]]


def _optional(typed: Typed) -> Typed:
    schema, values = typed
    optional = schema.replace(optional=True)
    if schema.type is Type.STRUCT:
        # The schema of a struct is that of its field, with whether it is optional.
        values = values.map(lambda own: Struct.of(optional, own.values))
    return optional, st.one_of(st.none(), values)


def _struct_of(name: str, fields: dict[str, Typed]) -> Typed:
    schema = struct({each: typed[0] for each, typed in fields.items()}, name=f"com.acme.{name}")
    values = st.tuples(*(typed[1] for typed in fields.values())).map(lambda own: Struct.of(schema, own))
    return schema, values


@st.composite
def structs(draw: st.DrawFn, *, optional: bool = True, nested: bool = True) -> tuple[Schema, Struct]:
    """Draw a struct schema and a value; names of structs and maps differ, as Avro requires."""
    count = 0

    def named(start: str) -> str:
        nonlocal count
        count += 1
        return f"{start}{count}"

    def typed(depth: int) -> Typed:
        kinds = ["primitive"] * 3 + (["array", "map", "struct"] if depth and nested else [])
        kind = draw(st.sampled_from(kinds))
        if kind == "array":
            element, values = draw(st.sampled_from(_PRIMITIVES))
            found = array(element), st.lists(values, max_size=3)
        elif kind == "map":
            key, keys = draw(st.sampled_from([(STRING, _TEXT), (INT32, st.integers(-9, 9))]))
            element, values = draw(st.sampled_from(_PRIMITIVES))
            schema = map_of(key, element, name=named("map_"))
            found = schema, st.dictionaries(keys, values, max_size=3)
        elif kind == "struct":
            found = _struct_of(named("Inner"), {each: typed(depth - 1) for each in field_names()})
        else:
            found = draw(st.sampled_from(_PRIMITIVES))
        return _optional(found) if optional and draw(st.booleans()) else found

    def field_names() -> list[str]:
        return draw(st.lists(_NAMES, min_size=1, max_size=4, unique=True))

    schema, values = _struct_of("Outer", {each: typed(2) for each in field_names()})
    return schema, draw(values)
