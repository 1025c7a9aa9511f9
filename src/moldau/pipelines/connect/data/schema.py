"""Connect's schemas: immutable, hashable, compared by content.

A schema is the key of the caches that converters and transformations keep, so its hash is computed once, and
an equality check of the same object costs nothing. Schemas are derived with `replace`, never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

from moldau.pipelines.connect.data.errors import DataError, SchemaBuilderError


class Type(Enum):
    """The types of values; the value is the name in JSON schemas, `name` the one in messages."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    def __str__(self) -> str:
        return self.name

    @property
    def is_primitive(self) -> bool:
        return self not in _COMPOSED


_COMPOSED = frozenset({Type.ARRAY, Type.MAP, Type.STRUCT})


class Field:
    """A field of a struct: its name, its position and its schema."""

    __slots__ = ("index", "name", "schema")

    def __init__(self, name: str, index: int, schema: Schema) -> None:
        self.name = name
        self.index = index
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Field):
            return NotImplemented
        return self.index == other.index and self.name == other.name and self.schema == other.schema

    def __hash__(self) -> int:
        return hash((self.name, self.index, self.schema))

    def __repr__(self) -> str:
        return f"Field{{name={self.name}, index={self.index}, schema={self.schema}}}"


class Schema:
    """The type of a value, whether it may be null, its default, and its name, version, doc and parameters.

    `fields` is given for structs as pairs of name and schema; `key_schema` for maps, `value_schema` for maps
    and arrays. A map or array that was inferred from data without common type has `None` there.
    """

    __slots__ = (
        "_by_name",
        "_fields",
        "_hash",
        "_key_schema",
        "_value_schema",
        "default",
        "doc",
        "name",
        "optional",
        "parameters",
        "type",
        "version",
    )

    def __init__(
        self,
        type: Type,
        *,
        optional: bool = False,
        default: Any = None,
        name: str | None = None,
        version: int | None = None,
        doc: str | None = None,
        parameters: Mapping[str, str] | None = None,
        fields: Iterable[tuple[str, Schema]] = (),
        key_schema: Schema | None = None,
        value_schema: Schema | None = None,
    ) -> None:
        self.type = type
        self.optional = optional
        self.default = default
        self.name = name
        self.version = version
        self.doc = doc
        self.parameters = MappingProxyType(dict(parameters)) if parameters else None
        self._fields = tuple(Field(field, index, schema) for index, (field, schema) in enumerate(fields))
        self._by_name = {field.name: field for field in self._fields}
        self._key_schema = key_schema
        self._value_schema = value_schema
        self._hash: int | None = None
        self._check_fields()

    def _check_fields(self) -> None:
        if self._fields and self.type is not Type.STRUCT:
            raise SchemaBuilderError(f"Cannot create fields on type {self.type}")
        if "" in self._by_name:
            raise SchemaBuilderError("fieldName cannot be null.")
        if len(self._by_name) != len(self._fields):
            twice = next(field.name for field in self._fields if self._by_name[field.name] is not field)
            raise SchemaBuilderError(f"Cannot create field because of field name duplication {twice}")

    @property
    def fields(self) -> tuple[Field, ...]:
        if self.type is not Type.STRUCT:
            raise DataError("Cannot list fields on non-struct type")
        return self._fields

    def field(self, name: str) -> Field | None:
        if self.type is not Type.STRUCT:
            raise DataError("Cannot look up fields on non-struct type")
        return self._by_name.get(name)

    @property
    def key_schema(self) -> Schema | None:
        if self.type is not Type.MAP:
            raise DataError("Cannot look up key schema on non-map type")
        return self._key_schema

    @property
    def value_schema(self) -> Schema | None:
        if self.type is not Type.MAP and self.type is not Type.ARRAY:
            raise DataError("Cannot look up value schema on non-array and non-map type")
        return self._value_schema

    def replace(self, **changes: Any) -> Schema:
        """Return a schema that differs in these properties, named as in the constructor."""
        properties: dict[str, Any] = {
            "type": self.type,
            "optional": self.optional,
            "default": self.default,
            "name": self.name,
            "version": self.version,
            "doc": self.doc,
            "parameters": self.parameters,
            "fields": [(field.name, field.schema) for field in self._fields],
            "key_schema": self._key_schema,
            "value_schema": self._value_schema,
        }
        return Schema(**(properties | changes))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Schema) or hash(self) != hash(other):
            return False
        return self._properties() == other._properties() and self.default == other.default

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._properties())
        return self._hash

    def _properties(self) -> tuple[object, ...]:
        """Everything but the default, whose value need not be hashable."""
        parameters = frozenset(self.parameters.items()) if self.parameters else None
        described = (self.type, self.optional, self.name, self.version, self.doc, parameters)
        return (*described, self._fields, self._key_schema, self._value_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (
            self.type,
            self.optional,
            self.default,
            self.name,
            self.version,
            self.doc,
            dict(self.parameters) if self.parameters else None,
            [(field.name, field.schema) for field in self._fields],
            self._key_schema,
            self._value_schema,
        )

    def __repr__(self) -> str:
        return f"Schema{{{self.name}:{self.type}}}" if self.name is not None else f"Schema{{{self.type}}}"


def _restored(type: Type, optional: bool, default: Any, name: str | None, *others: Any) -> Schema:
    version, doc, parameters, fields, key_schema, value_schema = others
    return Schema(
        type,
        optional=optional,
        default=default,
        name=name,
        version=version,
        doc=doc,
        parameters=parameters,
        fields=fields,
        key_schema=key_schema,
        value_schema=value_schema,
    )


INT8 = Schema(Type.INT8)
INT16 = Schema(Type.INT16)
INT32 = Schema(Type.INT32)
INT64 = Schema(Type.INT64)
FLOAT32 = Schema(Type.FLOAT32)
FLOAT64 = Schema(Type.FLOAT64)
BOOLEAN = Schema(Type.BOOLEAN)
STRING = Schema(Type.STRING)
BYTES = Schema(Type.BYTES)
OPTIONAL_INT8 = Schema(Type.INT8, optional=True)
OPTIONAL_INT16 = Schema(Type.INT16, optional=True)
OPTIONAL_INT32 = Schema(Type.INT32, optional=True)
OPTIONAL_INT64 = Schema(Type.INT64, optional=True)
OPTIONAL_FLOAT32 = Schema(Type.FLOAT32, optional=True)
OPTIONAL_FLOAT64 = Schema(Type.FLOAT64, optional=True)
OPTIONAL_BOOLEAN = Schema(Type.BOOLEAN, optional=True)
OPTIONAL_STRING = Schema(Type.STRING, optional=True)
OPTIONAL_BYTES = Schema(Type.BYTES, optional=True)


def array(value_schema: Schema, **properties: Any) -> Schema:
    """Return the schema of a list of such values; `properties` as in `Schema`."""
    return Schema(Type.ARRAY, value_schema=value_schema, **properties)


def map_of(key_schema: Schema, value_schema: Schema, **properties: Any) -> Schema:
    """Return the schema of a dict; `properties` as in `Schema`."""
    return Schema(Type.MAP, key_schema=key_schema, value_schema=value_schema, **properties)


def struct(fields: Mapping[str, Schema] | Iterable[tuple[str, Schema]], **properties: Any) -> Schema:
    """Return the schema of a struct with these fields, in this order; `properties` as in `Schema`."""
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    return Schema(Type.STRUCT, fields=pairs, **properties)
