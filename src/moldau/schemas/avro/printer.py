"""Write a schema as Java's `Schema.toString`: the canonical text of the registry.

The first occurrence of a named type is its definition, every other one its name. This is not Avro's Parsing
Canonical Form: documentation, defaults, aliases and unknown properties stay.

The first occurrences of records can nest deeper than the Python stack, because the text of a reference, or a
use before the definition, may contain a chain of them. So a stack has the parts that are not written yet.
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

#: A part of the text: as it is written, or a type to write within a namespace.
Part = str | tuple[Type, str | None]


def written(node: Type, known: Iterable[str] = ()) -> str:
    """Return the text of a schema; the types named in `known` are written as references."""
    names, texts = set(known), list[str]()
    parts: list[Part] = [(node, None)]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            texts.append(part)
            continue
        one, namespace = part
        if isinstance(one, Primitive):
            texts.append(_primitive(one))
        else:
            parts += reversed(_parts(one, names, namespace))
    return "".join(texts)


def _primitive(node: Primitive) -> str:
    if not node.properties:
        return f'"{node.kind}"'
    return f'{{"type":"{node.kind}"{_properties(node.properties)}}}'


def _parts(
    node: Array | Map | Union | Record | Enum | Fixed | Unresolved, known: set[str], namespace: str | None
) -> list[Part]:
    if isinstance(node, Union):
        branches: list[Part] = ["["]
        for branch in node.branches:
            branches += ((branch, namespace), ",")
        return [*(branches[:-1] if node.branches else branches), "]"]
    if isinstance(node, Array):
        return ['{"type":"array","items":', (node.items, namespace), f"{_properties(node.properties)}}}"]
    if isinstance(node, Map):
        return ['{"type":"map","values":', (node.values, namespace), f"{_properties(node.properties)}}}"]
    if isinstance(node, Unresolved):
        return [quoted(node.full)]
    if node.name.full in known:
        return [quoted(node.name.within(namespace))]
    known.add(node.name.full)
    return _definition(node, namespace)


def _definition(node: Record | Enum | Fixed, namespace: str | None) -> list[Part]:
    kind = "error" if isinstance(node, Record) and node.is_error else node.kind
    doc = "" if node.doc is None else f',"doc":{quoted(node.doc)}'
    return [
        f'{{"type":"{kind}"{_name(node.name, namespace)}{doc}',
        *_body(node),
        f"{_properties(node.properties)}{_aliases(node)}}}",
    ]


def _name(name: Name, namespace: str | None) -> str:
    if name.namespace == namespace:
        return f',"name":{quoted(name.simple)}'
    return f',"name":{quoted(name.simple)},"namespace":{quoted(name.namespace or "")}'


def _body(node: Record | Enum | Fixed) -> list[Part]:
    if isinstance(node, Fixed):
        return [f',"size":{node.size}']
    if isinstance(node, Enum):
        symbols = ",".join(map(quoted, node.symbols))
        default = "" if node.default is None else f',"default":{quoted(node.default)}'
        return [f',"symbols":[{symbols}]{default}']
    parts: list[Part] = []
    text = ',"fields":['
    for field in node.fields:
        text += f'{{"name":{quoted(field.name)},"type":'
        if isinstance(field.type, Primitive):
            text += _primitive(field.type)
        else:
            parts += (text, (field.type, node.name.namespace))
            text = ""
        text += f"{_rest(field)},"
    return [*parts, f"{text.removesuffix(',')}]"]


def _rest(field: Field) -> str:
    """Return the text of a field after its type."""
    text = "" if field.doc is None else f',"doc":{quoted(field.doc)}'
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
