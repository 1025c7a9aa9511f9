"""Visit the primitive fields of a value by its schema, for rules on fields.

Tags of a field are those in the schema (`confluent:tags`; Avro and JSON Schema) and those of the schema's
metadata, whose paths may contain `*` (a part of a name) and `**`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from moldau.client.registry.rules.messages import is_map, is_repeated, with_sign
from moldau.client.registry.rules.rule import Field, FieldTransform
from moldau.client.registry.types import Schema

_JSON_TYPES = {"string": "STRING", "integer": "INT", "number": "DOUBLE", "boolean": "BOOLEAN"}
_AVRO_TYPES = frozenset({"string", "bytes", "int", "long", "float", "double", "boolean", "null"})


class MetadataTags:
    def __init__(self, schema: Schema) -> None:
        tags = (schema.metadata or {}).get("tags") or {}
        self._patterns = [(_pattern(path), frozenset(names)) for path, names in tags.items()]

    def of(self, full_name: str) -> frozenset[str]:
        found = (names for pattern, names in self._patterns if pattern.fullmatch(full_name))
        return frozenset().union(*found)


@lru_cache(maxsize=1000)
def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*|\*|\?)", path)
    return re.compile("".join({"**": ".*", "*": r"[^.]*", "?": "[^.]"}.get(p, re.escape(p)) for p in parts))


class AvroWalk:
    def __init__(self, schema: Any, named: Mapping[str, Any], tags: MetadataTags) -> None:
        self._schema = schema
        self._named = named
        self._tags = tags

    def __call__(self, transform: FieldTransform, value: Any) -> Any:
        return self._visit(self._schema, value, transform, None)

    def _visit(self, schema: Any, value: Any, transform: FieldTransform, field: Field | None) -> Any:
        if isinstance(schema, list):
            branch = self._branch(schema, value)
            return value if branch is None else self._visit(branch, value, transform, field)
        if isinstance(schema, str) and schema in self._named:
            schema = self._named[schema]
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind == "record" and isinstance(value, dict):
            return self._record(schema, value, transform)
        if kind == "array" and isinstance(value, list):
            return [self._visit(schema["items"], one, transform, field) for one in value]
        if kind == "map" and isinstance(value, dict):
            return {n: self._visit(schema["values"], one, transform, field) for n, one in value.items()}
        if field is None or kind not in _AVRO_TYPES:
            return value
        return transform(field._replace(type_name=str(kind).upper()), value)

    def _record(self, schema: Any, value: dict[str, Any], transform: FieldTransform) -> dict[str, Any]:
        changed = dict(value)
        for one in schema["fields"]:
            name = one["name"]
            if name in value:
                full_name = f"{schema['name']}.{name}"
                tags = frozenset(one.get("confluent:tags") or ()) | self._tags.of(full_name)
                field = Field(full_name, name, "", tags, value)
                changed[name] = self._visit(one["type"], value[name], transform, field)
        return changed

    def _branch(self, union: list[Any], value: Any) -> Any:
        from fastavro.validation import validate

        for branch in union:
            if validate(value, branch, raise_errors=False, strict=False):
                return branch
        return None


class JsonWalk:
    def __init__(self, schema: Any, tags: MetadataTags) -> None:
        self._schema = schema
        self._tags = tags

    def __call__(self, transform: FieldTransform, value: Any) -> Any:
        return self._visit(self._schema, value, transform, "$", None)

    def _visit(
        self, schema: Any, value: Any, transform: FieldTransform, path: str, field: Field | None
    ) -> Any:
        if not isinstance(schema, dict):
            return value
        for part in [*schema.get("allOf", ()), *schema.get("anyOf", ()), *schema.get("oneOf", ())]:
            value = self._visit(part, value, transform, path, field)
        if isinstance(value, dict):
            return self._object(schema, value, transform, path)
        if isinstance(value, list):
            return [self._visit(schema.get("items"), one, transform, path, field) for one in value]
        kind = schema.get("type")
        kinds = kind if isinstance(kind, list) else [kind]
        known = next((_JSON_TYPES[one] for one in kinds if one in _JSON_TYPES), None)
        if field is None or known is None or value is None:
            return value
        return transform(field._replace(type_name=known), value)

    def _object(
        self, schema: Any, value: dict[str, Any], transform: FieldTransform, path: str
    ) -> dict[str, Any]:
        changed = dict(value)
        for name, part in (schema.get("properties") or {}).items():
            if name in value and isinstance(part, dict):
                full_name = f"{path}.{name}"
                tags = frozenset(part.get("confluent:tags") or ()) | self._tags.of(full_name)
                field = Field(full_name, name, "", tags, value)
                changed[name] = self._visit(part, value[name], transform, full_name, field)
        return changed


class ProtobufWalk:
    """Visits a copy of a message. Fields that are not set are not visited."""

    def __init__(self, tags: MetadataTags) -> None:
        self._tags = tags

    def __call__(self, transform: FieldTransform, value: Any) -> Any:
        changed = type(value)()
        changed.CopyFrom(value)
        self._visit(changed, transform)
        return changed

    def _visit(self, message: Any, transform: FieldTransform) -> None:
        for field, data in message.ListFields():
            if is_map(field):
                for one in data.values():
                    if hasattr(one, "ListFields"):
                        self._visit(one, transform)
            elif field.message_type is not None:
                for one in data if is_repeated(field) else [data]:
                    self._visit(one, transform)
            else:
                self._scalar(message, field, data, transform)

    def _scalar(self, message: Any, field: Any, data: Any, transform: FieldTransform) -> None:
        described = Field(
            field.full_name, field.name, _type_name(field), self._tags.of(field.full_name), message
        )
        if is_repeated(field):
            data[:] = [transform(described, with_sign(field, one)) for one in data]
        else:
            setattr(message, field.name, transform(described, with_sign(field, data)))


def _type_name(field: Any) -> str:
    names = {
        field.CPPTYPE_INT32: "INT",
        field.CPPTYPE_UINT32: "LONG",
        field.CPPTYPE_INT64: "LONG",
        field.CPPTYPE_UINT64: "LONG",
        field.CPPTYPE_DOUBLE: "DOUBLE",
        field.CPPTYPE_FLOAT: "FLOAT",
        field.CPPTYPE_BOOL: "BOOLEAN",
        field.CPPTYPE_ENUM: "ENUM",
    }
    return names.get(field.cpp_type) or ("BYTES" if field.type == field.TYPE_BYTES else "STRING")
