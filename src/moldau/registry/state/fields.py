"""Tags and top-level fields inside schemas.

Tags are inline annotations: the property `confluent:tags` of Avro and JSON Schema, the option
`(confluent.message_meta).tags` or `(confluent.field_meta).tags` of Protobuf. An entity is named by its path:
the record `ns.Record` (`sr_record`), or a field of it, `ns.Record.field` (`sr_field`); in JSON Schema
`object`, `object.field` and so on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from moldau.registry.state import errors
from moldau.registry.state.contracts import Json
from moldau.schemas.schema import ParsedSchema, SchemaType

_TAGS: Final = "confluent:tags"
_RECORD: Final = "sr_record"
_FIELD: Final = "sr_field"


def has_top_level_field(parsed: ParsedSchema, field: str) -> bool:
    """Return whether the record, object or first message has a field."""
    if parsed.schema_type == SchemaType.PROTOBUF:
        return field in _protobuf_fields(parsed)
    tree = json.loads(parsed.canonical)
    if not isinstance(tree, dict):
        return False
    if parsed.schema_type == SchemaType.JSON:
        return field in tree.get("properties", {})
    return any(each.get("name") == field for each in tree.get("fields", ()))


def _protobuf_fields(parsed: ParsedSchema) -> frozenset[str]:
    fields: frozenset[str] = getattr(parsed, "top_level_fields", frozenset())
    return fields


def tags_of(parsed: ParsedSchema, wanted: Iterable[str]) -> list[Json]:
    """Return the tagged entities of a schema that have one of the tags (`*`: any)."""
    names = set(wanted)
    if parsed.schema_type == SchemaType.PROTOBUF:
        tagged = _protobuf_tags(parsed)
    else:
        tagged = (
            (kind, path, node[_TAGS])
            for kind, path, node in _entities(parsed.schema_type, json.loads(parsed.canonical))
            if node.get(_TAGS)
        )
    return [
        {"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": list(tags)}
        for kind, path, tags in tagged
        if "*" in names or not names.isdisjoint(tags)
    ]


def _protobuf_tags(parsed: ParsedSchema) -> Iterator[tuple[str, str, list[str]]]:
    tagged: Any = getattr(parsed, "tags", None)
    if callable(tagged):
        yield from tagged()


def change_tags(parsed: ParsedSchema, add: Iterable[Json], remove: Iterable[Json]) -> str:
    """Return the text of a schema with tags added and removed."""
    added, removed = _by_entity(add), _by_entity(remove)
    if parsed.schema_type == SchemaType.PROTOBUF:
        changed: Any = getattr(parsed, "with_tags", None)
        if not callable(changed):
            raise errors.invalid_schema("Tags of Protobuf schemas cannot be changed.")
        text: str = changed(added, removed)
        return text
    tree = json.loads(parsed.canonical)
    found = set()
    for kind, path, node in _entities(parsed.schema_type, tree):
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
            key = (str(entity["entityType"]).lower(), str(entity["entityPath"]))
            entities.setdefault(key, []).extend(str(tag) for tag in entry.get("tags") or ())
        except (KeyError, TypeError):
            raise errors.invalid_schema(f"Invalid schema tag: {entry}") from None
    return entities


def _entities(schema_type: str, tree: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    return _avro_entities(tree) if schema_type == SchemaType.AVRO else _json_entities(tree)


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


def _json_entities(tree: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield objects and their properties, the outer ones first."""
    stack: list[tuple[Any, str]] = [(tree, "")]
    while stack:
        node, prefix = stack.pop()
        if not isinstance(node, dict):
            continue
        properties = node.get("properties")
        if isinstance(properties, dict):
            path = f"{prefix}object"
            yield _RECORD, path, node
            for name, field in properties.items():
                if isinstance(field, dict):
                    yield _FIELD, f"{path}.{name}", field
            stack.extend((field, f"{path}.{name}.") for name, field in reversed(properties.items()))
        if isinstance(node.get("items"), dict):
            stack.append((node["items"], f"{prefix}array."))
        for keyword in ("allOf", "anyOf", "oneOf"):
            if isinstance(node.get(keyword), list):
                stack.extend(
                    (each, f"{prefix}{keyword}.{index}.")
                    for index, each in reversed(list(enumerate(node[keyword])))
                )
        for keyword in ("definitions", "$defs"):
            if isinstance(node.get(keyword), dict):
                stack.extend((each, f"{prefix}{keyword}.{name}.") for name, each in node[keyword].items())
