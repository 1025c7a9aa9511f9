"""Values of Connect as JSON data, by functions that are made once per schema."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from moldau.pipelines.connect.converters.registry.json_schema import options as names
from moldau.pipelines.connect.converters.registry.json_schema.options import Options
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct, validate_value

Convert = Callable[[Any], Any]

#: The value of a required field that has none: it is left out.
_ABSENT: Final = object()
_ENCODED: Final[Mapping[str | None, Callable[[Schema, Any], int]]] = {
    logical.DATE_NAME: logical.date_to_days,
    logical.TIME_NAME: logical.time_to_millis,
    logical.TIMESTAMP_NAME: logical.timestamp_to_millis,
}
_DECODED: Final[Mapping[str | None, Callable[[Schema, int], datetime]]] = {
    logical.DATE_NAME: logical.date_from_days,
    logical.TIME_NAME: logical.time_from_millis,
    logical.TIMESTAMP_NAME: logical.timestamp_from_millis,
}
_INTEGERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_FLOATS: Final = (Type.FLOAT32, Type.FLOAT64)


def dumped(value: Any) -> str:
    """Return compact JSON; decimals are numbers with all their digits."""
    return "".join(_pieces(value))


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, Decimal):
        yield format(value, "f")
    elif isinstance(value, dict):
        yield "{"
        for number, (name, each) in enumerate(value.items()):
            yield f"{',' if number else ''}{json.dumps(name, ensure_ascii=False)}:"
            yield from _pieces(each)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for number, each in enumerate(value):
            if number:
                yield ","
            yield from _pieces(each)
        yield "]"
    else:
        yield json.dumps(value, ensure_ascii=False)


def checked_writer(schema: Schema, options: Options) -> Convert:
    """Return the function that makes JSON data of a value after checking it."""
    convert = writer(schema, options)

    def checked(value: Any) -> Any:
        if value is not None:
            validate_value(schema, value)
        found = convert(value)
        if found is _ABSENT:
            raise DataError("Found null value for non-optional schema")
        return found

    return checked


def writer(schema: Schema, options: Options) -> Convert:
    convert = _present_writer(schema, options)
    missing = None if schema.optional else _ABSENT
    if schema.default is not None and not options.ignore_defaults:
        missing = convert(schema.default)
    return lambda value: missing if value is None else convert(value)


def _present_writer(schema: Schema, options: Options) -> Convert:
    if schema.name == logical.DECIMAL_NAME:
        if options.numeric_decimals:
            return lambda value: value
        return lambda value: _text(logical.decimal_to_bytes(schema, value))
    if schema.name in _ENCODED:
        encode = _ENCODED[schema.name]
        return lambda value: encode(schema, value)
    if schema.type is Type.BYTES:
        return _text
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        element = writer(schema.value_schema, options)
        return lambda value: [_null_if_absent(element(each)) for each in value]
    if schema.type is Type.MAP and schema.key_schema is not None and schema.value_schema is not None:
        return _map_writer(schema, schema.key_schema, schema.value_schema, options)
    if schema.type is Type.STRUCT:
        return _union_writer(schema, options) if names.is_union(schema) else _struct_writer(schema, options)
    return lambda value: value


def _map_writer(schema: Schema, key: Schema, value: Schema, options: Options) -> Convert:
    name, entry = writer(key, options), writer(value, options)
    if names.has_text_keys(schema):
        return lambda pairs: {one: _null_if_absent(entry(other)) for one, other in pairs.items()}
    return lambda pairs: [
        {names.KEY: _null_if_absent(name(one)), names.VALUE: _null_if_absent(entry(other))}
        for one, other in pairs.items()
    ]


def _struct_writer(schema: Schema, options: Options) -> Convert:
    fields = [(each.name, each.index, writer(each.schema, options)) for each in schema.fields]

    def convert(value: Struct) -> dict[str, Any]:
        found = {}
        for name, index, of_field in fields:
            each = of_field(value.values[index])
            if each is not _ABSENT:
                found[name] = each
        return found

    return convert


def _union_writer(schema: Schema, options: Options) -> Convert:
    members = [(each.index, writer(each.schema, options)) for each in schema.fields]

    def convert(value: Struct) -> Any:
        for index, of_member in members:
            if value.values[index] is not None:
                return of_member(value.values[index])
        return None

    return convert


def _null_if_absent(value: Any) -> Any:
    return None if value is _ABSENT else value


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def reader(schema: Schema | None) -> Convert:
    """Return the function that makes Connect's values of JSON data."""
    if schema is None:
        return lambda value: value
    convert = _present_reader(schema)

    def read(value: Any) -> Any:
        if value is not None:
            return convert(value)
        if schema.default is not None:
            return schema.default
        if schema.optional:
            return None
        raise DataError(f"Invalid null value for required {schema.type} field")

    return read


def _present_reader(schema: Schema) -> Convert:
    if schema.name == logical.DECIMAL_NAME:
        return lambda value: _decimal(schema, value)
    if schema.name in _DECODED:
        decode = _DECODED[schema.name]
        return lambda value: decode(schema, _checked(schema, value, int))
    if schema.type is Type.STRUCT:
        return _union_reader(schema) if names.is_union(schema) else _struct_reader(schema)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        element = reader(schema.value_schema)
        return lambda value: [element(each) for each in _checked(schema, value, list)]
    if schema.type is Type.MAP and schema.key_schema is not None and schema.value_schema is not None:
        return _map_reader(schema, schema.key_schema, schema.value_schema)
    return _primitive_reader(schema)


def _primitive_reader(schema: Schema) -> Convert:
    if schema.type is Type.BYTES:
        return lambda value: _bytes(_checked(schema, value, str))
    if schema.type in _FLOATS:
        return lambda value: float(_checked(schema, value, int, float, Decimal))
    if schema.type in _INTEGERS:
        return lambda value: _integer(schema, value)
    expected = bool if schema.type is Type.BOOLEAN else str
    return lambda value: _checked(schema, value, expected)


def _integer(schema: Schema, value: Any) -> int:
    if isinstance(value, float | Decimal) and value == int(value):
        value = int(value)
    value = _checked(schema, value, int)
    validate_value(schema, value)
    return int(value)


def _checked(schema: Schema, value: Any, *expected: type) -> Any:
    if isinstance(value, expected) and (bool in expected or not isinstance(value, bool)):
        return value
    raise DataError(f"Invalid type for {schema.type}: {type(value).__name__}")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise DataError(f"Invalid bytes field: {error}") from error


def _decimal(schema: Schema, value: Any) -> Decimal:
    if isinstance(value, str):
        return logical.decimal_from_bytes(schema, _bytes(value))
    return Decimal(_checked(schema, value, int, float, Decimal))


def _map_reader(schema: Schema, key: Schema, value: Schema) -> Convert:
    name, entry = reader(key), reader(value)
    if names.has_text_keys(schema):
        return lambda pairs: {one: entry(other) for one, other in _checked(schema, pairs, dict).items()}

    def convert(pairs: Any) -> dict[Any, Any]:
        found = {}
        for each in _checked(schema, pairs, list):
            if not isinstance(each, dict) or each.keys() != {names.KEY, names.VALUE}:
                raise DataError("Maps with non-string fields must be arrays of objects with key and value")
            found[name(each[names.KEY])] = entry(each[names.VALUE])
        return found

    return convert


def _struct_reader(schema: Schema) -> Convert:
    fields = [(each.name, each, reader(each.schema)) for each in schema.fields]

    def convert(value: Any) -> Struct:
        given = _checked(schema, value, dict)
        found = Struct(schema)
        for name, field, of_field in fields:
            # A property that is absent is no error here: schemas seldom list those that are required.
            found.values[field.index] = of_field(given[name]) if name in given else field.schema.default
        return found

    return convert


def _union_reader(schema: Schema) -> Convert:
    members = [(each, reader(each.schema)) for each in schema.fields]

    def convert(value: Any) -> Struct:
        best, most = None, 0
        for field, of_member in members:
            if _is_instance(field.schema, value):
                best = (field, of_member)
                break
            matching = _matching_fields(field.schema, value)
            if matching > most:
                best, most = (field, of_member), matching
        if best is None:
            raise DataError("Did not find matching oneof field for data")
        found = Struct(schema)
        found.values[best[0].index] = best[1](value)
        return found

    return convert


def _is_instance(schema: Schema, value: Any) -> bool:
    if isinstance(value, bool):
        return schema.type is Type.BOOLEAN
    if schema.type in _INTEGERS:
        return isinstance(value, int)
    if schema.type in _FLOATS:
        return isinstance(value, int | float | Decimal)
    if schema.type is Type.STRING:
        return isinstance(value, str)
    if schema.type is Type.ARRAY:
        return isinstance(value, list)
    return schema.type is Type.MAP and isinstance(value, dict | list)


def _matching_fields(schema: Schema, value: Any) -> int:
    """Return how many fields of a struct an object has, with those inside them."""
    if schema.type is not Type.STRUCT or not isinstance(value, dict):
        return 0
    common = [each for each in schema.fields if each.name in value]
    return len(common) + sum(_matching_fields(each.schema, value[each.name]) for each in common)
