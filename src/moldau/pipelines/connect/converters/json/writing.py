"""Values to JSON text. A writer is compiled once per schema; data without schema has types of its own."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from moldau.base.java_numbers import java_double, java_float
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.numbers import Float32
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct, java_class

Writer = Callable[[Any], str]

#: Control characters whose code has letters, which Jackson writes in capitals.
_CAPITALS = re.compile(r"[\x0b\x0e\x0f\x1a-\x1f]")


def json_string(text: str) -> str:
    """Return the text as JSON string; only control characters, quotes and backslashes are escaped."""
    if _CAPITALS.search(text) is None:
        return str(encode_basestring(text))
    parts = re.split(f"({_CAPITALS.pattern})", text)
    escaped = (
        f"\\u{ord(part):04X}" if index % 2 else encode_basestring(part)[1:-1]
        for index, part in enumerate(parts)
    )
    return f'"{"".join(escaped)}"'


def _float_text(value: float) -> str:
    text = java_double(value)
    return text if text[-1].isdigit() else f'"{text}"'


def _float32_text(value: float) -> str:
    text = java_float(value)
    return text if text[-1].isdigit() else f'"{text}"'


def _bytes_text(value: bytes) -> str:
    return f'"{b64encode(value).decode()}"'


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"


_PRIMITIVES: dict[Type, tuple[type, Writer]] = {
    Type.INT8: (int, int.__repr__),
    Type.INT16: (int, int.__repr__),
    Type.INT32: (int, int.__repr__),
    Type.INT64: (int, int.__repr__),
    Type.FLOAT32: (float, _float32_text),
    Type.FLOAT64: (float, _float_text),
    Type.BOOLEAN: (bool, _boolean_text),
    Type.STRING: (str, json_string),
    Type.BYTES: (bytes, _bytes_text),
}


class JsonWriters:
    """Compiles writers; the options are those of the converter."""

    def __init__(self, *, numeric_decimals: bool, replace_null_with_default: bool) -> None:
        self._numeric_decimals = numeric_decimals
        self._replace_null_with_default = replace_null_with_default

    def compiled(self, schema: Schema) -> Writer:
        """Return a function that writes values of this schema."""
        write = self._of_value(schema)
        if schema.default is not None and self._replace_null_with_default:
            default = write(schema.default)
            return lambda value: default if value is None else write(value)
        if schema.optional:
            return lambda value: "null" if value is None else write(value)
        return lambda value: _missing() if value is None else write(value)

    def _of_value(self, schema: Schema) -> Writer:
        if schema.name in _LOGICAL:
            return self._logical(schema)
        if schema.type is Type.STRUCT:
            return self._struct(schema)
        if schema.type is Type.ARRAY:
            return self._array(schema)
        if schema.type is Type.MAP:
            return self._map(schema)
        return _primitive(schema.type)

    def _logical(self, schema: Schema) -> Writer:
        if schema.name == logical.DECIMAL_NAME:
            return _numeric_decimal if self._numeric_decimals else _encoded_decimal(schema)
        name, encode = _DATES[str(schema.name)]

        def write(value: Any) -> str:
            if not isinstance(value, datetime):
                raise DataError(f"Invalid type for {name}, expected Date but was class {java_class(value)}")
            return str(encode(schema, value))

        return write

    def _struct(self, schema: Schema) -> Writer:
        fields = [(f"{json_string(field.name)}:", self.compiled(field.schema)) for field in schema.fields]

        def write(value: Any) -> str:
            if not isinstance(value, Struct):
                raise _mismatch(Type.STRUCT, value)
            if value.schema is not schema and value.schema != schema:
                raise DataError("Mismatching schema.")
            pairs = zip(fields, value.values, strict=True)
            return f"{{{','.join([name + field(one) for (name, field), one in pairs])}}}"

        return write

    def _array(self, schema: Schema) -> Writer:
        element = self._of_part(schema.value_schema)

        def write(value: Any) -> str:
            if not isinstance(value, list):
                raise _mismatch(Type.ARRAY, value)
            return f"[{','.join([element(entry) for entry in value])}]"

        return write

    def _map(self, schema: Schema) -> Writer:
        key_schema, value_of = schema.key_schema, self._of_part(schema.value_schema)
        key_of = self._of_part(key_schema)
        as_object = key_schema is not None and key_schema.type is Type.STRING

        def write(value: Any) -> str:
            if not isinstance(value, dict):
                raise _mismatch(Type.MAP, value)
            if as_object:
                return f"{{{','.join([f'{key_of(key)}:{value_of(one)}' for key, one in value.items()])}}}"
            return f"[{','.join([f'[{key_of(key)},{value_of(one)}]' for key, one in value.items()])}]"

        return write

    def _of_part(self, schema: Schema | None) -> Writer:
        return write_schemaless if schema is None else self.compiled(schema)


def _missing() -> str:
    raise DataError("Conversion error: null value for field that is required and has no default value")


def _mismatch(kind: Type, value: object) -> DataError:
    return DataError(f"Invalid type for {kind}: class {java_class(value)}")


def _primitive(kind: Type) -> Writer:
    expected, text = _PRIMITIVES[kind]

    def write(value: Any) -> str:
        if not isinstance(value, expected) or (isinstance(value, bool) and expected is int):
            shown = "bytes type" if kind is Type.BYTES else kind
            raise DataError(f"Invalid type for {shown}: class {java_class(value)}")
        return text(value)

    return write


_DATES = {
    logical.DATE_NAME: ("Date", logical.date_to_days),
    logical.TIME_NAME: ("Time", logical.time_to_millis),
    logical.TIMESTAMP_NAME: ("Timestamp", logical.timestamp_to_millis),
}
_LOGICAL = frozenset({logical.DECIMAL_NAME, *_DATES})


def _decimal(value: Any) -> Decimal:
    if not isinstance(value, Decimal):
        raise DataError(f"Invalid type for Decimal, expected BigDecimal but was class {java_class(value)}")
    logical.scale_of(value)
    return value


def _numeric_decimal(value: Any) -> str:
    return str(_decimal(value))


def _encoded_decimal(schema: Schema) -> Writer:
    return lambda value: _bytes_text(logical.decimal_to_bytes(schema, _decimal(value)))


def write_schemaless(value: Any) -> str:
    """Return the JSON of a value without schema."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return json_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, Float32):
        return _float32_text(value)
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, dict):
        return _schemaless_map(value)
    if isinstance(value, list):
        return f"[{','.join([write_schemaless(entry) for entry in value])}]"
    if isinstance(value, bytes):
        return _bytes_text(value)
    if isinstance(value, Struct):
        raise DataError("Mismatching schema.")
    raise DataError(f"Java class class {java_class(value)} does not have corresponding schema type.")


def _schemaless_map(value: dict[Any, Any]) -> str:
    if all(isinstance(key, str) for key in value):
        return (
            f"{{{','.join([f'{json_string(key)}:{write_schemaless(one)}' for key, one in value.items()])}}}"
        )
    return (
        f"[{','.join([f'[{write_schemaless(key)},{write_schemaless(one)}]' for key, one in value.items()])}]"
    )
