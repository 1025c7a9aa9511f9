"""JSON Schemas of Connect schemas, as Confluent's converter makes them."""

from __future__ import annotations

from typing import Any, Final

from moldau.pipelines.connect.converters.registry.json_schema import options as names
from moldau.pipelines.connect.converters.registry.json_schema.options import TYPES, Options
from moldau.pipelines.connect.converters.registry.json_schema.values import dumped, writer
from moldau.pipelines.connect.converters.registry.names import parameters_of
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import Schema, Type

#: The order of these properties in Confluent's texts.
_ORDER: Final = (names.CONNECT_VERSION, names.CONNECT_INDEX, names.CONNECT_TYPE, names.CONNECT_PARAMETERS)


def schema_text(schema: Schema, options: Options) -> str:
    return dumped(_node(schema, options, None))


def _node(schema: Schema, options: Options, index: int | None) -> dict[str, Any]:
    if schema.optional and not names.is_union(schema):
        required = schema.replace(optional=False)
        return _one_of([{"type": "null"}, _node(required, options, None)], index)
    if names.is_union(schema):
        members = [_node(each.schema.replace(optional=False), options, each.index) for each in schema.fields]
        return _one_of([{"type": "null"}, *members] if schema.optional else members, index)
    node: dict[str, Any] = {}
    if schema.name is not None:
        node["title"] = schema.name
    if schema.doc is not None:
        node["description"] = schema.doc
    if schema.default is not None:
        node["default"] = writer(schema, options)(schema.default)
    return node | _body(schema, options) | _properties(schema, options, index)


def _one_of(members: list[dict[str, Any]], index: int | None) -> dict[str, Any]:
    return {"oneOf": members} if index is None else {"oneOf": members, names.CONNECT_INDEX: index}


def _body(schema: Schema, options: Options) -> dict[str, Any]:
    if names.is_enum(schema):
        start = f"{names.ENUM}."
        symbols = [each.removeprefix(start) for each in parameters_of(schema) if each.startswith(start)]
        return {"enum": [None if each == names.NULL_MARKER else each for each in symbols]}
    if schema.type is Type.STRUCT:
        fields = {each.name: _node(each.schema, options, each.index) for each in schema.fields}
        found: dict[str, Any] = {"type": "object", "properties": fields}
        return found if options.additional_properties else {**found, "additionalProperties": False}
    if schema.type is Type.ARRAY:
        return {"type": "array", "items": _node(_present(schema.value_schema), options, None)}
    if schema.type is Type.MAP:
        value = _present(schema.value_schema)
        if names.has_text_keys(schema):
            return {"type": "object", "additionalProperties": _node(value, options, None)}
        entry = {
            names.KEY: _node(_present(schema.key_schema), options, 0),
            names.VALUE: _node(value, options, 1),
        }
        return {"type": "array", "items": {"type": "object", "properties": entry}}
    if schema.name == logical.DECIMAL_NAME and options.numeric_decimals:
        return {"type": "number"}
    return {"type": TYPES[schema.type][0]}


def _properties(schema: Schema, options: Options, index: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    connect_type = None if names.is_enum(schema) else TYPES[schema.type][1]
    if connect_type is not None:
        found[names.CONNECT_TYPE] = connect_type
    if schema.version is not None:
        found[names.CONNECT_VERSION] = schema.version
    parameters = {
        name: each for name, each in parameters_of(schema).items() if not name.startswith(names.NAMESPACE)
    }
    if parameters:
        found[names.CONNECT_PARAMETERS] = parameters
    if index is not None:
        found[names.CONNECT_INDEX] = index
    return {name: found[name] for name in _ORDER if name in found}


def _present(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("Arrays and maps need the schema of their elements to be written as JSON Schema.")
    return schema
