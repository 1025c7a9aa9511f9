"""Upserts: the key of a record, and the last change of every key.

The key columns are taken from the value; what the value lacks, from the record's key. A record without
value deletes its key, as in a compacted topic; so does one whose change field says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from moldau.pipelines.connect.connectors.lake.rows.values import part_of
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.records import SinkRecord
from moldau.pipelines.connect.data.struct import Struct

_DELETES: Final = frozenset({"d", "delete"})


class Upsert(NamedTuple):
    """The key columns, and the field that tells deletes, if there is one."""

    columns: tuple[str, ...]
    change_field: str | None = None


def key_columns(configured: Sequence[str], record: SinkRecord) -> tuple[str, ...]:
    """Return the configured key columns, or else the fields of the record's key."""
    if configured:
        return tuple(configured)
    if isinstance(record.key, Struct):
        return tuple(field.name for field in record.key.schema.fields)
    if isinstance(record.key, dict) and record.key:
        return tuple(str(name) for name in record.key)
    raise DataError("The key of the record has no fields: name the key columns of the table (id-columns).")


def is_delete(record: SinkRecord, upsert: Upsert) -> bool:
    if record.value is None:
        return True
    if upsert.change_field is None:
        return False
    change = nested(record.value, upsert.change_field)
    return isinstance(change, str) and change.lower() in _DELETES


def nested(value: Any, path: str) -> Any:
    """Return a field of a struct or map by its path, with dots between the names."""
    for name in path.split("."):
        if not isinstance(value, (Struct, dict)):
            return None
        value = part_of(value, name)
    return value


def key_part(record: SinkRecord, column: str, columns: Sequence[str]) -> Any:
    """Return the value of a key column from the record's key."""
    if isinstance(record.key, (Struct, dict)):
        return part_of(record.key, column)
    return record.key if len(columns) == 1 else None


def key_of(record: SinkRecord, columns: Sequence[str]) -> tuple[Any, ...]:
    """Return the values of the key columns; `DataError` if one is missing."""
    found = []
    for name in columns:
        part = part_of(record.value, name) if isinstance(record.value, (Struct, dict)) else None
        part = key_part(record, name, columns) if part is None else part
        if part is None:
            raise DataError(f"The record has no value for the key column {name}.")
        found.append(part)
    return tuple(found)


class Deleted(NamedTuple):
    """Keys that were deleted, as rows of the key columns."""

    keys: pa.Table


class Changes(NamedTuple):
    """What a commit does to a table: `keys` are removed first, if it is an upsert, then `rows` are added."""

    rows: pa.Table
    keys: pa.Table | None = None


def last_changes(steps: Iterable[pa.Table | Deleted], schema: pa.Schema, columns: Sequence[str]) -> Changes:
    """Return the last row of every key, and all keys that changed."""
    tables = list(steps)
    rows = pa.concat_tables([schema.empty_table(), *(each for each in tables if isinstance(each, pa.Table))])
    last: dict[tuple[Any, ...], int | None] = {}
    position = 0
    for each in tables:
        keys = each.keys if isinstance(each, Deleted) else each.select(columns)
        values = zip(*(part.to_pylist() for part in keys.columns), strict=True)
        for key in values:
            # A dict keeps the first position of a key, which would change the order of the rows.
            last.pop(key, None)
            last[key] = None if isinstance(each, Deleted) else position
            position += not isinstance(each, Deleted)
    kept = pa.array([at for at in last.values() if at is not None], pa.int64())
    fields = pa.schema([schema.field(name) for name in columns])
    parts = zip(fields, zip(*last, strict=True), strict=True) if last else ()
    changed = [pa.array(list(values), field.type) for field, values in parts]
    keys = pa.Table.from_arrays(changed, schema=fields) if last else fields.empty_table()
    return Changes(rows.take(kept), keys)
