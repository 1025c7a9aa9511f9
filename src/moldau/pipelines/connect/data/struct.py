"""Structs, and the check that a value fits its schema."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError, SchemaBuilderError
from moldau.pipelines.connect.data.schema import Field, Schema, Type


class Struct:
    """A value of a struct schema. A field that was never set reads as its schema's default, or None."""

    __slots__ = ("schema", "values")

    def __init__(self, schema: Schema, /, **values: Any) -> None:
        if schema.type is not Type.STRUCT:
            raise DataError(f"Not a struct schema: {schema}")
        self.schema = schema
        self.values: list[Any] = [None] * len(schema.fields)
        for name, value in values.items():
            self.put(name, value)

    @classmethod
    def of(cls, schema: Schema, values: Iterable[Any]) -> Struct:
        """Return a struct of values in the order of the fields, each checked as by `put`."""
        struct = cls(schema)
        for field, value in zip(schema.fields, values, strict=True):
            validate_value(field.schema, value, field.name, is_field=True)
            struct.values[field.index] = value
        return struct

    def get(self, name: str) -> Any:
        """Return the value of a field, or the default of its schema if there is none."""
        return self.value_of(self.field(name))

    def value_of(self, field: Field) -> Any:
        value = self.values[field.index]
        return field.schema.default if value is None else value

    def get_without_default(self, name: str) -> Any:
        return self.values[self.field(name).index]

    def put(self, name: str, value: Any) -> Struct:
        """Set a field after checking the value; return the struct, for chained calls."""
        field = self.field(name)
        validate_value(field.schema, value, name, is_field=True)
        self.values[field.index] = value
        return self

    def validate(self) -> None:
        """Check that every field has a valid value, or may be without one."""
        for field, value in zip(self.schema.fields, self.values, strict=True):
            schema = field.schema
            if value is None and (schema.optional or schema.default is not None):
                continue
            validate_value(schema, value, field.name, is_field=True)

    def field(self, name: str) -> Field:
        field = self.schema.field(name)
        if field is None:
            raise DataError(f"{name} is not a valid field name")
        return field

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct):
            return NotImplemented
        return self.values == other.values and self.schema == other.schema

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        pairs = zip(self.schema.fields, self.values, strict=True)
        return f"Struct{{{','.join(f'{field.name}={value}' for field, value in pairs if value is not None)}}}"


_CLASSES: dict[Type, type] = {
    Type.INT8: int,
    Type.INT16: int,
    Type.INT32: int,
    Type.INT64: int,
    Type.FLOAT32: float,
    Type.FLOAT64: float,
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: bytes,
    Type.ARRAY: list,
    Type.MAP: dict,
    Type.STRUCT: Struct,
}
_LOGICAL_CLASSES: dict[str | None, type] = {
    logical.DECIMAL_NAME: Decimal,
    logical.DATE_NAME: datetime,
    logical.TIME_NAME: datetime,
    logical.TIMESTAMP_NAME: datetime,
}
_MAX_VALUES = {Type.INT8: 2**7 - 1, Type.INT16: 2**15 - 1, Type.INT32: 2**31 - 1, Type.INT64: 2**63 - 1}
_JAVA_CLASSES: dict[type, str] = {
    bool: "java.lang.Boolean",
    int: "java.lang.Long",
    float: "java.lang.Double",
    str: "java.lang.String",
    bytes: "[B",
    Decimal: "java.math.BigDecimal",
    datetime: "java.util.Date",
    list: "java.util.ArrayList",
    dict: "java.util.HashMap",
    Struct: "org.apache.kafka.connect.data.Struct",
}
_INFERRED: dict[type, Type] = {
    bool: Type.BOOLEAN,
    int: Type.INT64,
    float: Type.FLOAT64,
    str: Type.STRING,
    bytes: Type.BYTES,
    list: Type.ARRAY,
    dict: Type.MAP,
    Struct: Type.STRUCT,
}


def java_class(value: object) -> str:
    """Return the name of the Java class that holds such a value, which messages of Kafka Connect name."""
    return next(
        (_JAVA_CLASSES[one] for one in type(value).__mro__ if one in _JAVA_CLASSES), type(value).__name__
    )


def inferred_type(value: object) -> Type | None:
    """Return the type of a value without schema, or None if only a schema can tell it."""
    return next((_INFERRED[one] for one in type(value).__mro__ if one in _INFERRED), None)


def validate_value(schema: Schema, value: Any, location: str = "value", *, is_field: bool = False) -> None:
    """Check the value's type, its range and whether it may be null; errors name the location or field."""
    if value is None:
        if not schema.optional:
            where = _named(location, is_field)
            raise DataError(f"Invalid value: null used for required {where}, schema type: {schema.type}")
        return
    expected: Any = _LOGICAL_CLASSES.get(schema.name) or _CLASSES[schema.type]
    if type(value) is not expected and (not isinstance(value, expected) or type(value) is bool):
        raise DataError(_mismatch(schema, value, _named(location, is_field)))
    if expected is int:
        largest = _MAX_VALUES[schema.type]
        if not -largest - 1 <= value <= largest:
            where = _named(location, is_field)
            raise DataError(f"Invalid value: {value} is out of range for {where}, schema type: {schema.type}")
    elif not schema.type.is_primitive:
        _validate_parts(schema, value, _named(location, is_field))


def _named(location: str, is_field: bool) -> str:
    return f'field: "{location}"' if is_field else location


def _mismatch(schema: Schema, value: object, location: str) -> str:
    name = "" if schema.name is None else f' "{schema.name}"'
    found = f"class {java_class(value)} for {location}"
    return f"Invalid Java object for schema{name} with type {schema.type}: {found}"


def _validate_parts(schema: Schema, value: Any, location: str) -> None:
    if schema.type is Type.STRUCT:
        if value.schema != schema:
            raise DataError("Struct schemas do not match.")
        value.validate()
    elif schema.type is Type.ARRAY:
        where = f"element of array {location}"
        element = _present(schema.value_schema, where)
        for entry in value:
            validate_value(element, entry, where)
    else:
        keys, values = f"key of map {location}", f"value of map {location}"
        key_schema, value_schema = _present(schema.key_schema, keys), _present(schema.value_schema, values)
        for key, entry in value.items():
            validate_value(key_schema, key, keys)
            validate_value(value_schema, entry, values)


def _present(schema: Schema | None, location: str) -> Schema:
    if schema is None:
        raise DataError(f"No schema defined for {location}")
    return schema


def with_default(schema: Schema, default: Any) -> Schema:
    """Return the schema with a default value, which must be valid for it."""
    try:
        validate_value(schema, default)
    except DataError as invalid:
        raise SchemaBuilderError("Invalid default value") from invalid
    return schema.replace(default=default)
