"""JSON to values. A reader is compiled once per schema; data without schema has the types of JSON.

As in Kafka, a value of another JSON type is not an error by itself: a number reads as 0 from text, a boolean
as false, a string as null.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError, SerializationError
from moldau.pipelines.connect.data.numbers import float32, wrap
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct

Reader = Callable[[Any], Any]

_STRINGS_AND_ZEROS = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![0-9.eE+])0+(?=[0-9])', re.DOTALL)
_BLANKS = re.compile(r"[\x00-\x20]+")


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"Unrecognized token '{text}'")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
#: Keeps the digits of fractions, which Decimal fields need.
_EXACT_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=Decimal)


def parse_json(data: bytes, *, exact: bool = False) -> Any:
    """Parse the first JSON value of the bytes, as Jackson does; nothing but blanks is null."""
    try:
        text = data.decode(json.detect_encoding(data))
        return parse_text(text, 0, exact=exact)[0]
    except (ValueError, RecursionError) as error:
        raise SerializationError(str(error)) from None


def parse_text(text: str, begin: int, *, exact: bool = False) -> tuple[Any, int]:
    """Parse one value; return it and the position after it. Numbers may have leading zeros (KIP-1004)."""
    decoder = _EXACT_DECODER if exact else _DECODER
    while begin < len(text) and text[begin] in " \t\r\n":
        begin += 1
    if begin == len(text):
        return None, begin
    try:
        value, end = decoder.raw_decode(text, begin)
        if _is_complete(value, text, end):
            return value, end
    except json.JSONDecodeError:
        if _STRINGS_AND_ZEROS.search(text, begin) is None:
            raise
    unpadded = _STRINGS_AND_ZEROS.sub(lambda found: found[0] if found[0][0] == '"' else "", text[begin:])
    value, end = decoder.raw_decode(unpadded)
    if not _is_complete(value, unpadded, end):
        raise ValueError(f"Unexpected character ('{unpadded[end]}')")
    return value, end + len(text) - len(unpadded)


def _is_complete(value: Any, text: str, end: int) -> bool:
    """Return whether the value ends here: a number or literal that continues is not one."""
    if end == len(text) or isinstance(value, (str, list, dict)):
        return True
    return not (text[end].isalnum() or text[end] in "._$")


def node_type(value: Any) -> str:
    """Return the name that Jackson has for the type of a JSON value."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, (int, float, Decimal)):
        return "NUMBER"
    return "STRING" if isinstance(value, str) else "ARRAY" if isinstance(value, list) else "OBJECT"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _integer(bits: int) -> Reader:
    half = 1 << (bits - 1)

    def read(value: Any) -> int:
        if type(value) is int:
            return value if -half <= value < half else wrap(value, bits)
        return wrap(int(value), bits) if _is_number(value) else 0

    return read


def _double(value: Any) -> float:
    """Java reads the number as decimal first, which has no negative zero."""
    return float(value) + 0.0 if _is_number(value) else 0.0


def _binary(value: Any) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return b64decode(_BLANKS.sub("", value), validate=True)
    except ValueError as error:
        raise DataError("Invalid bytes field") from error


_PRIMITIVES: dict[Type, Reader] = {
    Type.INT8: _integer(8),
    Type.INT16: _integer(16),
    Type.INT32: _integer(32),
    Type.INT64: _integer(64),
    Type.FLOAT32: lambda value: float32(_double(value)),
    Type.FLOAT64: _double,
    Type.BOOLEAN: lambda value: value is True,
    Type.STRING: lambda value: value if isinstance(value, str) else None,
    Type.BYTES: _binary,
}


def compiled_reader(schema: Schema, replace_null_with_default: bool) -> Reader:
    """Return a function that converts parsed JSON to values of the schema."""
    read = _of_value(schema, replace_null_with_default)
    if schema.default is not None and replace_null_with_default:
        default = schema.default
        return lambda value: default if value is None else read(value)
    if schema.optional:
        return lambda value: None if value is None else read(value)
    return lambda value: _missing(schema.type) if value is None else read(value)


def _missing(kind: Type) -> Any:
    raise DataError(f"Invalid null value for required {kind} field")


def _of_value(schema: Schema, replace: bool) -> Reader:
    if schema.name == logical.DECIMAL_NAME:
        return lambda value: _decimal(schema, value)
    if schema.name in _DATES:
        return _date(schema)
    if schema.type is Type.STRUCT:
        return _struct(schema, replace)
    if schema.type is Type.ARRAY:
        return _array(schema, replace)
    if schema.type is Type.MAP:
        return _map(schema, replace)
    return _PRIMITIVES[schema.type]


def _of_part(schema: Schema | None, replace: bool) -> Reader:
    return read_schemaless if schema is None else compiled_reader(schema, replace)


def _decimal(schema: Schema, value: Any) -> Decimal:
    if _is_number(value):
        return Decimal(value)
    if not isinstance(value, str):
        raise DataError(
            "Invalid type for Decimal, underlying representation should be numeric or bytes"
            f" but was {node_type(value)}"
        )
    try:
        unscaled = _binary(value)
        if not unscaled:
            raise DataError("Zero length BigInteger")
        return logical.decimal_from_bytes(schema, unscaled)
    except DataError as error:
        raise DataError("Invalid bytes for Decimal field") from error


_DATES: dict[str | None, tuple[str, int, Callable[[Schema, int], Any]]] = {
    logical.DATE_NAME: ("Date", 32, logical.date_from_days),
    logical.TIME_NAME: ("Time", 32, logical.time_from_millis),
    logical.TIMESTAMP_NAME: ("Timestamp", 64, logical.timestamp_from_millis),
}


def _date(schema: Schema) -> Reader:
    name, bits, decode = _DATES[schema.name]
    wanted = "integer" if bits == 32 else "integral"

    def read(value: Any) -> Any:
        if type(value) is not int or (bits == 32 and wrap(value, 32) != value):
            raise DataError(
                f"Invalid type for {name}, underlying representation should be {wanted}"
                f" but was {node_type(value)}"
            )
        return decode(schema, wrap(value, 64))

    return read


def _struct(schema: Schema, replace: bool) -> Reader:
    fields = [(field.name, compiled_reader(field.schema, replace)) for field in schema.fields]

    def read(value: Any) -> Struct:
        if not isinstance(value, dict):
            raise DataError(f"Structs should be encoded as JSON objects, but found {node_type(value)}")
        struct = Struct(schema)
        struct.values = [convert(value.get(name)) for name, convert in fields]
        struct.validate()
        return struct

    return read


def _array(schema: Schema, replace: bool) -> Reader:
    element = _of_part(schema.value_schema, replace)

    def read(value: Any) -> list[Any]:
        if isinstance(value, dict):
            value = list(value.values())
        return [element(entry) for entry in value] if isinstance(value, list) else []

    return read


def _map(schema: Schema, replace: bool) -> Reader:
    key_schema = schema.key_schema
    key_of, value_of = _of_part(key_schema, replace), _of_part(schema.value_schema, replace)
    if key_schema is not None and key_schema.type is Type.STRING:
        return lambda value: {key: value_of(one) for key, one in _object(value).items()}
    return lambda value: {key_of(key): value_of(one) for key, one in _tuples(value)}


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(
            f"Maps with string fields should be encoded as JSON objects, but found {node_type(value)}"
        )
    return value


def _tuples(value: Any) -> list[list[Any]]:
    if not isinstance(value, list):
        raise DataError(
            "Maps with non-string fields should be encoded as JSON array of tuples,"
            f" but found {node_type(value)}"
        )
    for entry in value:
        if not isinstance(entry, list):
            raise DataError(f"Found invalid map entry instead of array tuple: {node_type(entry)}")
        if len(entry) != 2:
            raise DataError(f"Found invalid map entry, expected length 2 but found :{len(entry)}")
    return value


def read_schemaless(value: Any) -> Any:
    """Return parsed JSON as Connect's value: integers have 64 bits."""
    if isinstance(value, dict):
        return {key: read_schemaless(one) for key, one in value.items()}
    if isinstance(value, list):
        return [read_schemaless(entry) for entry in value]
    if type(value) is int:
        return wrap(value, 64)
    return _double(value) if isinstance(value, (float, Decimal)) else value


def has_decimals(schema: Schema | None) -> bool:
    """Return whether values of the schema need the exact digits of fractions."""
    if schema is None:
        return False
    if schema.name == logical.DECIMAL_NAME:
        return True
    if schema.type is Type.STRUCT:
        return any(has_decimals(field.schema) for field in schema.fields)
    if schema.type is Type.MAP:
        return has_decimals(schema.key_schema) or has_decimals(schema.value_schema)
    return schema.type is Type.ARRAY and has_decimals(schema.value_schema)
