"""Whether the default value of a field is valid, as Java's Avro decides for new schemas.

A type that is defined later counts as a record without fields, so a field of it accepts only an object.
"""

from __future__ import annotations

from typing import Any

from moldau.schemas.avro.printer import written
from moldau.schemas.avro.text import write
from moldau.schemas.avro.tree import MISSING, Array, Field, Map, Record, Type, Union, Unresolved
from moldau.schemas.schema import InvalidSchema

_RANGES = {"int": 2**31, "long": 2**63}
_TEXTS = frozenset({"string", "bytes", "enum", "fixed"})
_NUMBERS = frozenset({"float", "double"})


def default_problem(record: Record, field: Field) -> str | None:
    """Return what is wrong with the default value of a field of `record`."""
    try:
        if _valid(field.type, field.default, (record,)):
            return None
    except InvalidSchema as error:
        return str(error)
    return f"Invalid default for field {field.name}: {write(field.default)} not a {written(field.type)}"


def _valid(node: Type, value: Any, open_records: tuple[Record, ...]) -> bool:
    kind = node.kind
    if kind in _TEXTS:
        return isinstance(value, str)
    if kind in _RANGES:
        return type(value) is int and -_RANGES[kind] <= value < _RANGES[kind]
    if kind in _NUMBERS:
        return type(value) in (int, float)
    match node:
        case Array():
            return isinstance(value, list) and all(_valid(node.items, item, open_records) for item in value)
        case Map():
            return isinstance(value, dict) and all(
                _valid(node.values, item, open_records) for item in value.values()
            )
        case Union():
            return value is not MISSING and any(
                _valid(branch, value, open_records) for branch in node.branches
            )
        case Unresolved():
            return isinstance(value, dict)
        case Record():
            return isinstance(value, dict) and _valid_record(node, value, open_records)
    return isinstance(value, bool) if kind == "boolean" else value is None


def _valid_record(record: Record, value: dict[str, Any], open_records: tuple[Record, ...]) -> bool:
    """Check the fields; the defaults of a record must not contain the record itself."""
    if record in open_records:
        raise InvalidSchema("Schema fields not set yet")
    inner = (*open_records, record)
    for field in record.fields:
        if field.name in value:
            # A value is finite, so a record may occur in it again.
            if not _valid(field.type, value[field.name], open_records):
                return False
        elif not _valid(field.type, field.default, inner):
            return False
    return True
