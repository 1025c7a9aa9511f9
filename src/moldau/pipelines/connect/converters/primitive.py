"""Converters of strings, bytes, booleans and numbers."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import ConfigDef, ConfigType, Importance, Width
from moldau.pipelines.connect.converters.interface import (
    Converter,
    RawHeaders,
    converter_config,
    converter_type,
)
from moldau.pipelines.connect.data import schema as schemas
from moldau.pipelines.connect.data.errors import ConfigError, DataError, SerializationError
from moldau.pipelines.connect.data.headers import SchemaAndValue
from moldau.pipelines.connect.data.numbers import Float32
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import java_class
from moldau.pipelines.connect.data.values.text import to_string


class StringConverter(Converter):
    """Text: any value is written as Java prints it, and read as a string."""

    config: ClassVar[ConfigDef] = converter_config().define(
        "converter.encoding",
        ConfigType.STRING,
        "UTF-8",
        Importance.HIGH,
        "The character encoding of the text.",
        width=Width.MEDIUM,
        display_name="Encoding",
    )

    def __init__(self) -> None:
        self._encoding = "utf-8"

    def configure(self, config: Mapping[str, Any], is_key: bool = False) -> None:
        encoding = self.config.parse(converter_type(config, is_key))["converter.encoding"]
        try:
            self._encoding = codecs.lookup(encoding).name
        except LookupError:
            raise ConfigError.invalid("converter.encoding", encoding, "Unknown character encoding") from None

    def from_connect(
        self, topic: str, headers: RawHeaders, schema: Schema | None, value: Any
    ) -> bytes | None:
        if value is None:
            return None
        text = value if isinstance(value, str) else to_string(schema, value)
        return text.encode(self._encoding, "replace")

    def to_connect(self, topic: str, headers: RawHeaders, data: bytes | None) -> SchemaAndValue:
        text = None if data is None else data.decode(self._encoding, "replace")
        return SchemaAndValue(schemas.OPTIONAL_STRING, text)


class ByteArrayConverter(Converter):
    """Bytes as they are."""

    config: ClassVar[ConfigDef] = converter_config()

    def configure(self, config: Mapping[str, Any], is_key: bool = False) -> None:
        """Nothing to configure."""

    def from_connect(
        self, topic: str, headers: RawHeaders, schema: Schema | None, value: Any
    ) -> bytes | None:
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type}")
        if value is not None and not isinstance(value, bytes):
            raise DataError(
                f"ByteArrayConverter is not compatible with objects of type class {java_class(value)}"
            )
        return value

    def to_connect(self, topic: str, headers: RawHeaders, data: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(schemas.OPTIONAL_BYTES, data)


class BooleanConverter(Converter):
    """One byte, 0 or 1."""

    config: ClassVar[ConfigDef] = converter_config()

    def configure(self, config: Mapping[str, Any], is_key: bool = False) -> None:
        self.config.parse(converter_type(config, is_key))

    def from_connect(
        self, topic: str, headers: RawHeaders, schema: Schema | None, value: Any
    ) -> bytes | None:
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(f"Invalid schema type for BooleanConverter: {schema.type}")
        if value is None:
            return None
        if not isinstance(value, bool):
            raise DataError(
                f"BooleanConverter is not compatible with objects of type class {java_class(value)}"
            )
        return b"\x01" if value else b"\x00"

    def to_connect(self, topic: str, headers: RawHeaders, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return SchemaAndValue(schemas.OPTIONAL_BOOLEAN, None)
        if data not in (b"\x00", b"\x01"):
            raise DataError("Failed to deserialize boolean: ") from SerializationError(
                "A boolean is one byte, 0 or 1"
            )
        return SchemaAndValue(schemas.OPTIONAL_BOOLEAN, data == b"\x01")


class _NumberConverter(Converter):
    """A number in big-endian bytes."""

    config: ClassVar[ConfigDef] = converter_config()
    schema: ClassVar[Schema]
    name: ClassVar[str]
    layout: ClassVar[struct.Struct]
    kind: ClassVar[type] = int

    def configure(self, config: Mapping[str, Any], is_key: bool = False) -> None:
        self.config.parse(converter_type(config, is_key))

    def from_connect(
        self, topic: str, headers: RawHeaders, schema: Schema | None, value: Any
    ) -> bytes | None:
        if value is None:
            return None
        fits = isinstance(value, self.kind) and not isinstance(value, bool)
        if not fits or (schema is not None and schema.type is not self.schema.type):
            raise DataError(f"Failed to serialize to {self.name} (was class {java_class(value)}): ")
        try:
            return self.layout.pack(value)
        except (struct.error, OverflowError) as error:
            raise DataError(f"Failed to serialize to {self.name}: {error}") from None

    def to_connect(self, topic: str, headers: RawHeaders, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return SchemaAndValue(self.schema, None)
        if len(data) != self.layout.size:
            raise DataError(f"Failed to deserialize {self.name}: ") from SerializationError(
                f"Size of data received is not {self.layout.size}"
            )
        (value,) = self.layout.unpack(data)
        return SchemaAndValue(self.schema, Float32(value) if self.layout.format == ">f" else value)


class ShortConverter(_NumberConverter):
    schema = schemas.OPTIONAL_INT16
    name = "short"
    layout = struct.Struct(">h")


class IntegerConverter(_NumberConverter):
    schema = schemas.OPTIONAL_INT32
    name = "integer"
    layout = struct.Struct(">i")


class LongConverter(_NumberConverter):
    schema = schemas.OPTIONAL_INT64
    name = "long"
    layout = struct.Struct(">q")


class FloatConverter(_NumberConverter):
    schema = schemas.OPTIONAL_FLOAT32
    name = "float"
    layout = struct.Struct(">f")
    kind = float


class DoubleConverter(_NumberConverter):
    schema = schemas.OPTIONAL_FLOAT64
    name = "double"
    layout = struct.Struct(">d")
    kind = float
