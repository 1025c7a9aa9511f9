"""Write a schema as Java's `Schema.toString`: the canonical text of the registry.

The first occurrence of a named type is its definition, every other one its name. This is not Avro's Parsing
Canonical Form: documentation, defaults, aliases and unknown properties stay.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.schemas.avro.text import quoted, write
from moldau.schemas.avro.tree import (
    MISSING,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Name,
    Primitive,
    Properties,
    Record,
    Type,
    Union,
    Unresolved,
)


def written(node: Type, known: Iterable[str] = ()) -> str:
    """Return the text of a schema; the types named in `known` are written as references."""
    return _write(node, set(known), None)


def _write(node: Type, known: set[str], namespace: str | None) -> str:
    if isinstance(node, Primitive):
        if not node.properties:
            return f'"{node.kind}"'
        return f'{{"type":"{node.kind}"{_properties(node.properties)}}}'
    if isinstance(node, Union):
        return "[" + ",".join([_write(branch, known, namespace) for branch in node.branches]) + "]"
    if isinstance(node, Array):
        items = _write(node.items, known, namespace)
        return f'{{"type":"array","items":{items}{_properties(node.properties)}}}'
    if isinstance(node, Map):
        values = _write(node.values, known, namespace)
        return f'{{"type":"map","values":{values}{_properties(node.properties)}}}'
    if isinstance(node, Unresolved):
        return quoted(node.full)
    if node.name.full in known:
        return quoted(node.name.within(namespace))
    known.add(node.name.full)
    return _definition(node, known, namespace)


def _definition(node: Record | Enum | Fixed, known: set[str], namespace: str | None) -> str:
    kind = "error" if isinstance(node, Record) and node.is_error else node.kind
    doc = "" if node.doc is None else f',"doc":{quoted(node.doc)}'
    return (
        f'{{"type":"{kind}"{_name(node.name, namespace)}{doc}{_body(node, known)}'
        f"{_properties(node.properties)}{_aliases(node)}}}"
    )


def _name(name: Name, namespace: str | None) -> str:
    if name.namespace == namespace:
        return f',"name":{quoted(name.simple)}'
    return f',"name":{quoted(name.simple)},"namespace":{quoted(name.namespace or "")}'


def _body(node: Record | Enum | Fixed, known: set[str]) -> str:
    if isinstance(node, Fixed):
        return f',"size":{node.size}'
    if isinstance(node, Enum):
        symbols = ",".join(map(quoted, node.symbols))
        default = "" if node.default is None else f',"default":{quoted(node.default)}'
        return f',"symbols":[{symbols}]{default}'
    namespace = node.name.namespace
    return ',"fields":[' + ",".join([_field(field, known, namespace) for field in node.fields]) + "]"


def _field(field: Field, known: set[str], namespace: str | None) -> str:
    text = f'{{"name":{quoted(field.name)},"type":{_write(field.type, known, namespace)}'
    if field.doc is not None:
        text += f',"doc":{quoted(field.doc)}'
    if field.default is not MISSING:
        text += f',"default":{write(field.default)}'
    if field.order != "ascending":
        text += f',"order":"{field.order}"'
    if field.aliases:
        text += ',"aliases":[' + ",".join(map(quoted, field.aliases)) + "]"
    return f"{text}{_properties(field.properties)}}}"


def _properties(properties: Properties) -> str:
    if not properties:
        return ""
    return "".join([f",{quoted(key)}:{write(value)}" for key, value in properties.items()])


def _aliases(node: Record | Enum | Fixed) -> str:
    if not node.aliases:
        return ""
    texts = [quoted(alias.within(node.name.namespace)) for alias in node.aliases]
    return ',"aliases":[' + ",".join(texts) + "]"
