"""Which logical types Java's Avro recognises; invalid ones are ordinary properties."""

from __future__ import annotations

import math
from typing import TypeVar

from moldau.schemas.avro.tree import Array, Fixed, Record, Type, Union, Unresolved

#: The logical types without parameters, and the types they annotate.
_ANNOTATED = {
    "big-decimal": "bytes",
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
}
_UUID_BYTES = 16
_DURATION_BYTES = 12

Container = TypeVar("Container", Array, Record)


def logical_type(node: Type) -> str | None:
    """Return the name of the logical type of a schema if it is valid there."""
    if isinstance(node, Union | Unresolved):
        return None
    name = node.properties.get("logicalType")
    if not isinstance(name, str):
        return None
    match name:
        case "decimal":
            valid = _is_decimal(node)
        case "uuid":
            valid = node.kind == "string" or (isinstance(node, Fixed) and node.size == _UUID_BYTES)
        case "duration":
            valid = isinstance(node, Fixed) and node.size == _DURATION_BYTES
        case "map":
            valid = isinstance(node, Array) and _is_entry(node.items)
        case "variant":
            valid = isinstance(node, Record) and _is_variant(node)
        case _:
            valid = _ANNOTATED.get(name) == node.kind
    return name if valid else None


def with_logical_type_first(node: Container) -> Container:
    """Move the logical type before the other properties, as Java does when it copies arrays and records."""
    if len(node.properties) > 1 and "logicalType" in node.properties and logical_type(node):
        rest = {key: value for key, value in node.properties.items() if key != "logicalType"}
        node.properties = {"logicalType": node.properties["logicalType"], **rest}
    return node


def _is_decimal(node: Type) -> bool:
    if isinstance(node, Union | Unresolved):
        return False
    precision = node.properties.get("precision")
    scale = node.properties.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 < precision < 2**31:
        return False
    if isinstance(node, Fixed) and precision > math.floor(math.log10(2) * (8 * node.size - 1)):
        return False
    return (isinstance(node, Fixed) or node.kind == "bytes") and 0 <= scale <= precision


def _is_entry(node: Type) -> bool:
    return isinstance(node, Record) and [field.name for field in node.fields] == ["key", "value"]


def _is_variant(record: Record) -> bool:
    fields = {field.name: field.type.kind for field in record.fields}
    return fields == {"metadata": "bytes", "value": "bytes"}
