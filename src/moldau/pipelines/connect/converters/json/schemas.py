"""Connect's schemas as JSON, the `schema` of an envelope."""

from __future__ import annotations

from typing import Any

from moldau.pipelines.connect.converters.json.reading import compiled_reader
from moldau.pipelines.connect.converters.json.writing import JsonWriters, json_string
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.numbers import wrap
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import with_default

_NAMES = {Type.FLOAT32: "float", Type.FLOAT64: "double"}
_TYPES = {_NAMES.get(kind, kind.value): kind for kind in Type}


def schema_text(schema: Schema | None, writers: JsonWriters, field: str | None = None) -> str:
    """Return the JSON of a schema; with the name of the field if it is one of a struct."""
    if schema is None:
        return "null"
    members = [f'"type":"{_NAMES.get(schema.type, schema.type.value)}"', *_parts(schema, writers)]
    members.append(f'"optional":{"true" if schema.optional else "false"}')
    if schema.name is not None:
        members.append(f'"name":{json_string(schema.name)}')
    if schema.version is not None:
        members.append(f'"version":{schema.version}')
    if schema.doc is not None:
        members.append(f'"doc":{json_string(schema.doc)}')
    if schema.parameters:
        pairs = (f"{json_string(key)}:{json_string(value)}" for key, value in schema.parameters.items())
        members.append(f'"parameters":{{{",".join(pairs)}}}')
    if schema.default is not None:
        members.append(f'"default":{writers.compiled(schema)(schema.default)}')
    if field is not None:
        members.append(f'"field":{json_string(field)}')
    return f"{{{','.join(members)}}}"


def _parts(schema: Schema, writers: JsonWriters) -> list[str]:
    if schema.type is Type.ARRAY:
        return [f'"items":{schema_text(schema.value_schema, writers)}']
    if schema.type is Type.MAP:
        keys, values = schema_text(schema.key_schema, writers), schema_text(schema.value_schema, writers)
        return [f'"keys":{keys}', f'"values":{values}']
    if schema.type is Type.STRUCT:
        fields = (schema_text(field.schema, writers, field.name) for field in schema.fields)
        return [f'"fields":[{",".join(fields)}]']
    return []


def read_schema(node: Any, replace_null_with_default: bool) -> Schema | None:
    """Return the schema of parsed JSON; null is no schema."""
    if node is None:
        return None
    kind = node.get("type") if isinstance(node, dict) else None
    if not isinstance(kind, str):
        raise DataError("Schema must contain 'type' field")
    if kind not in _TYPES:
        raise DataError(f"Unknown schema type: {kind}")
    version = node.get("version")
    schema = Schema(
        _TYPES[kind],
        optional=node.get("optional") is True,
        name=_text(node.get("name")),
        version=wrap(version, 32) if type(version) is int else None,
        doc=_text(node.get("doc")),
        parameters=_parameters(node.get("parameters")),
        **_read_parts(_TYPES[kind], node, replace_null_with_default),
    )
    if "default" not in node:
        return schema
    return with_default(schema, compiled_reader(schema, replace_null_with_default)(node["default"]))


def _text(node: Any) -> str | None:
    return node if isinstance(node, str) else None


def _parameters(node: Any) -> dict[str, str] | None:
    if not isinstance(node, dict):
        return None
    if not all(isinstance(value, str) for value in node.values()):
        raise DataError("Schema parameters must have string values.")
    return node


def _read_parts(kind: Type, node: dict[str, Any], replace: bool) -> dict[str, Any]:
    if kind is Type.ARRAY:
        if node.get("items") is None:
            raise DataError("Array schema did not specify the element type")
        return {"value_schema": read_schema(node["items"], replace)}
    if kind is Type.MAP:
        for name, meaning in (("keys", "key"), ("values", "value")):
            if node.get(name) is None:
                raise DataError(f"Map schema did not specify the {meaning} type")
        keys, values = read_schema(node["keys"], replace), read_schema(node["values"], replace)
        return {"key_schema": keys, "value_schema": values}
    if kind is Type.STRUCT:
        return {"fields": _fields(node.get("fields"), replace)}
    return {}


def _fields(nodes: Any, replace: bool) -> list[tuple[str, Schema]]:
    if not isinstance(nodes, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    fields = []
    for node in nodes:
        name = node.get("field") if isinstance(node, dict) else None
        if not isinstance(name, str):
            raise DataError("Struct schema's field name not specified properly")
        schema = read_schema(node, replace)
        if schema is not None:
            fields.append((name, schema))
    return fields
