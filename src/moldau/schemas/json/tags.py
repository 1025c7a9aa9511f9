"""Tags of objects and properties: the keyword `confluent:tags`.

An entity is a kind (`sr_record` or `sr_field`) and a path, such as `object.address.object.street` or
`object.definitions.Name.object`. The members of `oneof`, `anyof` and `allof` are numbered in an order that
does not depend on the text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from moldau.schemas import hashorder
from moldau.schemas.json import text
from moldau.schemas.json.model import (
    Anything,
    Array,
    Boolean,
    Combined,
    Conditional,
    Const,
    Empty,
    Enum,
    Not,
    Nothing,
    Null,
    Number,
    Object,
    Reference,
    Schema,
    String,
    referred,
)
from moldau.schemas.json.schema import JsonSchema
from moldau.schemas.schema import InvalidSchema
from moldau.schemas.trampoline import Recursion, run

KEYWORD: Final = "confluent:tags"
RECORD: Final = "sr_record"
FIELD: Final = "sr_field"

#: A kind and a path.
Entity = tuple[str, str]
#: Tags by entity, in the order in which they are to be changed.
Tags = Mapping[Entity, Collection[str]]

#: In the order of the numbers in a path.
_KINDS: Final = (
    *(Array, Boolean, Combined, Conditional, Const, Empty, Enum, Nothing, Not, Null, Number, Object),
    *(Reference, String, Anything),
)
#: Schemas that differ only further inside have the order of the text.
_COMPARED_LEVELS: Final = 4


def tagged_entities(schema: JsonSchema) -> list[tuple[str, str, list[str]]]:
    """Return kind, path and tags of everything that has tags."""
    walk = _Walk()
    run(walk.schema(schema.root, "", in_field=False))
    if isinstance(schema.root, Object):
        for path, definition in _definitions(schema.document):
            run(walk.schema(definition, f"object.{path}.", in_field=False))
    return walk.found


def _definitions(document: dict[str, Any]) -> Iterator[tuple[str, Schema]]:
    for keyword in ("definitions", "$defs"):
        definitions = document.get(keyword)
        for name, definition in definitions.items() if isinstance(definitions, dict) else ():
            if isinstance(definition, dict):
                root = {"$schema": document.get("$schema", ""), **_with_root_refs(definition)}
                try:
                    yield f"{keyword}.{name}", JsonSchema(root, {}).root
                except InvalidSchema:
                    continue


def _with_root_refs(json: dict[str, Any]) -> dict[str, Any]:
    """Return a copy whose references all refer to the root, so that it can be loaded alone."""
    copy = deepcopy(json)
    waiting: list[Any] = [copy]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "$ref" in value:
                value["$ref"] = "#"
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return copy


class _Walk:
    """Collects the tags of a schema and everything inside."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, list[str]]] = []
        self._visited: set[str] = set()

    def schema(self, schema: Schema, scope: str, in_field: bool) -> Recursion[None]:
        match schema:
            case Combined():
                for index, member in enumerate(sorted(schema.subschemas, key=_key)):
                    yield self.schema(member, f"{scope}{schema.criterion.lower()}.{index}.", False)
            case Array():
                if schema.all_items is not None:
                    yield self.schema(schema.all_items, f"{scope}array.", False)
            case Object():
                yield self._object(schema, f"{scope}object", in_field)
            case Conditional():
                for keyword, part in schema.parts:
                    yield self.schema(part, f"{scope}conditional.{keyword}.", False)
            case Not():
                yield self.schema(schema.schema, f"{scope}not.", False)

    def _object(self, schema: Object, path: str, in_field: bool) -> Recursion[None]:
        if path in self._visited:
            return
        self._visited.add(path)
        if not in_field:
            self._add(RECORD, path, schema)
        properties = schema.properties or {}
        for name in hashorder.in_grown_map(properties):
            self._add(FIELD, f"{path}.{name}", properties[name])
            yield self.schema(properties[name], f"{path}.{name}.", True)

    def _add(self, kind: str, path: str, schema: Schema) -> None:
        unknown = schema.annotations.unknown
        tags = text.read(unknown).get(KEYWORD) if unknown is not None else None
        if isinstance(tags, list) and tags:
            self.found.append((kind, path, [_text(tag) for tag in dict.fromkeys(map(_text, tags))]))


def _text(tag: Any) -> str:
    return tag if isinstance(tag, str) else text.write(tag)


def _key(schema: Schema, level: int = 0) -> tuple[Any, ...]:
    """Return what schemas are ordered by: kind, title, description, default, contents."""
    notes = (schema.annotations.title, schema.annotations.description, schema.annotations.default)
    head = (_KINDS.index(type(schema)), *((note is not None, note or "") for note in notes))
    if level == _COMPARED_LEVELS:
        return head
    inner = level + 1
    match schema:
        case Const():
            return (*head, schema.value)
        case Enum():
            return (*head, len(schema.values), sorted(schema.values))
        case Combined():
            members = sorted(_key(member, inner) for member in schema.subschemas)
            return (*head, schema.criterion, len(members), members)
        case Not():
            return (*head, _key(schema.schema, inner))
        case Conditional():
            return (*head, [_key(part, inner) for _, part in schema.parts])
        case Object():
            names, required = sorted(schema.properties or {}), sorted(schema.required)
            return (*head, len(names), names, len(required), required)
        case Array() if schema.all_items is not None:
            return (*head, _key(schema.all_items, inner))
        case Reference() if referred(schema) is not schema:
            return (*head, _key(referred(schema), inner))
    return head


def with_tags(document: Any, added: Tags, removed: Tags) -> str:
    """Return the text with tags added, then others removed; raise `InvalidSchema` for an unknown entity."""
    document = deepcopy(document)
    for entity in dict.fromkeys((*added, *removed)):
        kind, path = entity
        node = _find(document, kind, path.split("."))
        if not isinstance(node, dict):
            raise InvalidSchema(f"No matching path '{path}' found in the schema")
        present = node.get(KEYWORD)
        tags = dict.fromkeys(
            [*map(_text, present if isinstance(present, list) else ()), *added.get(entity, ())]
        )
        kept = [tag for tag in tags if tag not in set(removed.get(entity, ()))]
        if kept:
            node[KEYWORD] = kept
        else:
            node.pop(KEYWORD, None)
    return text.write(document)


def _find(node: Any, kind: str, names: list[str]) -> Any:
    """Follow a path; return None if there is nothing."""
    names = names[::-1]
    while names and isinstance(node, dict):
        match names.pop():
            case "object":
                if not names:
                    return node if kind == RECORD else None
                definitions = names.pop() if names[-1] in ("definitions", "$defs") else "properties"
                node = _named(node.get(definitions), names)
                if not names:
                    return node
            case "array":
                node = node.get("items")
            case "anyof" | "allof" | "oneof" as criterion:
                node = _member(node, f"{criterion[:3]}Of", names)
            case "not":
                node = node.get("not")
            case _:
                return None
    return None


def _named(nodes: Any, names: list[str]) -> Any:
    """Return the property or definition; its name may contain dots."""
    name = names.pop() if names else ""
    while names and isinstance(nodes, dict) and name not in nodes:
        name = f"{name}.{names.pop()}"
    return nodes.get(name) if isinstance(nodes, dict) else None


def _member(node: dict[str, Any], keyword: str, names: list[str]) -> Any:
    index = names.pop() if names else ""
    members = node.get(keyword)
    if isinstance(members, list):
        ordered = sorted(members, key=_raw_key)
        return ordered[int(index)] if index.isdecimal() and int(index) < len(ordered) else None
    if keyword == "allOf" and names and names[-1] == "conditional":
        names.pop()
        return node.get(names.pop()) if names else None
    # A list of types, or keywords of several kinds: the members are in the node itself.
    return node


def _raw_key(json: Any) -> tuple[Any, ...]:
    if not isinstance(json, dict):
        return (_KINDS.index(Anything if json else Nothing),)
    try:
        return _key(JsonSchema(json, {}).root)
    except InvalidSchema:
        return (_KINDS.index(Reference),)
