"""The normal form of a schema, for `normalize=true`.

Properties, aliases and the keys of JSON values are sorted, logical types precede other properties, an empty
documentation of a named type is dropped, and a default has the type of its field: 1 becomes 1.0 for a
double. As in Confluent's registry, the default of a union is read with its first branch; a default of
another branch has no normal form and is dropped if it is text.
"""

from __future__ import annotations

from typing import Any

from moldau.schemas.avro.logical import logical_type
from moldau.schemas.avro.printer import written
from moldau.schemas.avro.tree import (
    MISSING,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Properties,
    Record,
    Type,
    Union,
    Unresolved,
)
from moldau.schemas.float32 import shortest
from moldau.schemas.schema import InvalidSchema

_DECIMAL = ("precision", "scale")


def normal_form(node: Type, known: set[str]) -> Any:
    """Return the JSON value of the normalized schema; the types named in `known` are references."""
    return _normal(node, set(known))


def _normal(node: Type, known: set[str]) -> Any:
    match node:
        case Union():
            return [_normal(branch, known) for branch in node.branches]
        case Array():
            return {"type": "array", "items": _normal(node.items, known), **_properties(node)}
        case Map():
            return {"type": "map", "values": _normal(node.values, known), **_properties(node)}
        case Primitive():
            return {"type": node.kind, **_properties(node)} if node.properties else node.kind
        case Unresolved():
            return node.full
    if node.name.full in known:
        return node.name.full
    known.add(node.name.full)
    return _definition(node, known)


def _definition(node: Named, known: set[str]) -> dict[str, Any]:
    value: dict[str, Any] = {"name": node.name.full, "type": node.kind}
    match node:
        case Record():
            value["fields"] = [_field(field, known) for field in node.fields]
        case Enum():
            value["symbols"] = node.symbols
            if node.default is not None:
                value["default"] = node.default
        case Fixed():
            value["size"] = node.size
    if node.doc:
        value["doc"] = node.doc
    if node.aliases:
        value["aliases"] = sorted(
            alias.full if alias.namespace or not node.name.namespace else f".{alias.simple}"
            for alias in node.aliases
        )
    return {**value, **_properties(node)}


def _field(field: Field, known: set[str]) -> dict[str, Any]:
    value: dict[str, Any] = {"name": field.name, "type": _normal(field.type, known), "order": field.order}
    if field.doc is not None:
        value["doc"] = field.doc
    if field.aliases:
        value["aliases"] = sorted(field.aliases)
    if field.default is not MISSING:
        default = _default(field.default, field.type)
        if default is not MISSING:
            value["default"] = _sorted(default)
    return {**value, **_sorted(field.properties)}


def _properties(node: Primitive | Array | Map | Named) -> Properties:
    properties = node.properties
    if not properties:
        return {}
    first: Properties = {}
    if logical := logical_type(node):
        first["logicalType"] = logical
        if logical == "decimal":
            first.update((key, properties[key]) for key in _DECIMAL if properties.get(key))
    return {**first, **_sorted(properties)}


def _sorted(value: Any) -> Any:
    """Sort the keys of all objects like Java's strings, by UTF-16 units."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return {key: _sorted(value[key]) for key in keys}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _default(value: Any, node: Type) -> Any:
    """Return a default in the type of its schema, or MISSING if it has no value there."""
    if isinstance(node, Union):
        return _default(value, node.branches[0]) if node.branches else MISSING
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value, node)
    if isinstance(value, str):
        if node.kind in ("bytes", "fixed"):
            return value.encode("latin-1", "replace").decode("latin-1")
        return value if node.kind in ("string", "enum") else MISSING
    if isinstance(value, list):
        return [_item(item, node) for item in value]
    return {key: _member(key, item, node) for key, item in value.items()}


def _number(value: int | float, node: Type) -> Any:
    if node.kind == "double":
        return float(value)
    if node.kind == "float":
        return shortest(float(value))
    fits = isinstance(value, int) and -(2**63) <= value < 2**63
    return value if fits and node.kind in ("int", "long") else MISSING


def _item(value: Any, node: Type) -> Any:
    if not isinstance(node, Array):
        raise InvalidSchema(f"Not an array: {written(node)}")
    return _present(_default(value, node.items))


def _member(key: str, value: Any, node: Type) -> Any:
    if isinstance(node, Map):
        return _present(_default(value, node.values))
    if isinstance(node, Record):
        if key not in node.by_name:
            raise InvalidSchema(f"The default of record {node.name.full} has no field {key}")
        return _present(_default(value, node.by_name[key].type))
    return value


def _present(value: Any) -> Any:
    if value is MISSING:
        raise InvalidSchema("A default contains a value of another type than its schema")
    return value
