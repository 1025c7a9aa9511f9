"""Tags and top-level fields inside schemas.

Tags are inline annotations: the property `confluent:tags` of Avro and JSON Schema, the option
`(confluent.message_meta).tags` or `(confluent.field_meta).tags` of Protobuf. An entity is named by its path:
the record `ns.Record` (`sr_record`), or a field of it, `ns.Record.field` (`sr_field`); in JSON Schema
`object`, `object.field` and so on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from moldau.registry.state import errors
from moldau.registry.state.contracts import Json
from moldau.schemas.schema import InvalidSchema, ParsedSchema, SchemaType

if TYPE_CHECKING:
    from moldau.schemas.json import JsonSchema
    from moldau.schemas.protobuf import ProtobufSchema

_TAGS: Final = "confluent:tags"
_RECORD: Final = "sr_record"
_FIELD: Final = "sr_field"


def has_top_level_field(parsed: ParsedSchema, field: str) -> bool:
    """Return whether the record, object or first message has a field."""
    if parsed.schema_type == SchemaType.PROTOBUF:
        return _protobuf(parsed).has_top_level_field(field)
    tree = json.loads(parsed.canonical)
    if not isinstance(tree, dict):
        return False
    if parsed.schema_type == SchemaType.JSON:
        properties = tree.get("properties")
        return isinstance(properties, dict) and field in properties
    return any(each.get("name") == field for each in tree.get("fields", ()))


def _protobuf(parsed: ParsedSchema) -> ProtobufSchema:
    return cast("ProtobufSchema", parsed)


def _json(parsed: ParsedSchema) -> JsonSchema:
    return cast("JsonSchema", parsed)


def tags_of(parsed: ParsedSchema, wanted: Iterable[str]) -> list[Json]:
    """Return the tagged entities of a schema that have one of the tags (`*`: any)."""
    names = set(wanted)
    return [
        {"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": list(tags)}
        for kind, path, tags in _tagged(parsed)
        if "*" in names or not names.isdisjoint(tags)
    ]


def _tagged(parsed: ParsedSchema) -> Iterable[tuple[str, str, list[str]]]:
    """Return kind, path and tags of the entities that have tags."""
    if parsed.schema_type == SchemaType.PROTOBUF:
        return _protobuf(parsed).tags()
    if parsed.schema_type == SchemaType.JSON:
        return _json(parsed).tags()
    tree = json.loads(parsed.canonical)
    return [(kind, path, node[_TAGS]) for kind, path, node in _avro_entities(tree) if node.get(_TAGS)]


def change_tags(parsed: ParsedSchema, add: Iterable[Json], remove: Iterable[Json]) -> str:
    """Return the text of a schema with tags added and removed."""
    added, removed = _by_entity(add), _by_entity(remove)
    try:
        if parsed.schema_type == SchemaType.PROTOBUF:
            return _protobuf(parsed).with_tags(added, removed)
        if parsed.schema_type == SchemaType.JSON:
            return _json(parsed).with_tags(added, removed)
    except InvalidSchema as error:
        raise errors.invalid_schema(str(error)) from None
    tree = json.loads(parsed.canonical)
    found = set()
    for kind, path, node in _avro_entities(tree):
        entity = (kind, path)
        if entity not in added and entity not in removed:
            continue
        found.add(entity)
        tags = [*node.get(_TAGS, ()), *added.get(entity, ())]
        kept = [tag for tag in dict.fromkeys(tags) if tag not in removed.get(entity, ())]
        if kept:
            node[_TAGS] = kept
        else:
            node.pop(_TAGS, None)
    if missing := [path for kind, path in {**added, **removed} if (kind, path) not in found]:
        raise errors.invalid_schema(f"No matching path '{missing[0]}' found in the schema")
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


def _by_entity(entries: Iterable[Json]) -> dict[tuple[str, str], list[str]]:
    entities: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        try:
            entity = entry["schemaEntity"]
            key = (str(entity["entityType"]).lower(), str(entity["entityPath"]).removeprefix("."))
            entities.setdefault(key, []).extend(str(tag) for tag in entry.get("tags") or ())
        except (KeyError, TypeError):
            raise errors.invalid_schema(f"Invalid schema tag: {entry}") from None
    return entities


def _avro_entities(tree: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield records and their fields, the outer ones first."""
    stack = [(tree, "")]
    while stack:
        node, namespace = stack.pop()
        if isinstance(node, list):
            stack.extend((each, namespace) for each in reversed(node))
        elif isinstance(node, dict):
            kind = node.get("type")
            if kind in ("record", "error"):
                space = node.get("namespace", namespace)
                path = f"{space}.{node['name']}" if space and "." not in node["name"] else node["name"]
                yield _RECORD, path, node
                fields = node.get("fields", ())
                for field in fields:
                    yield _FIELD, f"{path}.{field['name']}", field
                stack.extend((field["type"], space) for field in reversed(fields))
            elif kind in ("array", "map"):
                stack.append((node.get("items" if kind == "array" else "values"), namespace))
            elif isinstance(kind, dict | list):
                stack.append((kind, namespace))
