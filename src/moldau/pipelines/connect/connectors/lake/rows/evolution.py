"""How the columns of a table follow the records: added columns, wider types, optional columns.

Nothing else changes: columns are never removed, renamed or narrowed. A record whose type differs in any
other way is converted to the type of the column (see `values`), or refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Evolution:
    """Which changes are allowed. The columns of the key stay required."""

    enabled: bool
    force_optional: bool = False
    widens: bool = True
    key: frozenset[str] = frozenset()


def created(record: pa.Schema, rules: Evolution) -> pa.Schema:
    """Return the columns of a new table for such records."""
    optional = rules.force_optional
    return pa.schema(
        [
            field.with_nullable(field.name not in rules.key and (optional or field.nullable))
            for field in record
        ]
    )


def evolved(table: pa.Schema, record: pa.Schema, rules: Evolution) -> pa.Schema:
    """Return the columns of the table for its rows and such records; the same object if nothing changes."""
    if not rules.enabled:
        return table
    fields = _merged(list(table), list(record), rules.key, rules.widens)
    return table if fields == list(table) else pa.schema(fields)


def optional(table: pa.Schema, name: str) -> pa.Schema:
    """Return the columns with one that may be null."""
    index = table.get_field_index(name)
    return table.set(index, table.field(index).with_nullable(True))


def widened(table: pa.DataType, record: pa.DataType) -> pa.DataType:
    """Return a type for the values of both, if the formats allow the change; else the table's."""
    if table == record:
        return table
    if pa.types.is_int32(table) and pa.types.is_int64(record):
        return record
    if pa.types.is_float32(table) and pa.types.is_float64(record):
        return record
    if pa.types.is_decimal(table) and pa.types.is_decimal(record) and table.scale == record.scale:
        return table if table.precision >= record.precision else record
    if pa.types.is_struct(table) and pa.types.is_struct(record):
        return pa.struct(_merged(list(table), list(record), frozenset(), True))
    if pa.types.is_list(table) and pa.types.is_list(record):
        return pa.list_(_element(table.value_field, record.value_field))
    if pa.types.is_map(table) and pa.types.is_map(record):
        return pa.map_(table.key_type, _element(table.item_field, record.item_field))
    return table


def _element(table: pa.Field, record: pa.Field) -> pa.Field:
    nullable = table.nullable or record.nullable
    return pa.field(table.name, widened(table.type, record.type), nullable=nullable)


def _merged(
    table: list[pa.Field], record: list[pa.Field], key: frozenset[str], widens: bool
) -> list[pa.Field]:
    given = {field.name: field for field in record}
    known = {field.name for field in table}
    fields = []
    for field in table:
        other = given.get(field.name)
        nullable = field.nullable or ((other is None or other.nullable) and field.name not in key)
        kind = field.type if other is None or not widens else widened(field.type, other.type)
        fields.append(pa.field(field.name, kind, nullable=nullable))
    return fields + [field.with_nullable(True) for field in record if field.name not in known]
