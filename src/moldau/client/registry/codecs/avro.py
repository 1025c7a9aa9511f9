"""Avro's binary encoding by a schema text. Data of a writer's schema is resolved to a reader's schema."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException

from moldau.client.registry.codecs.bounds import AvroBounds
from moldau.client.serdes import SerializationError

#: The errors of `fastavro` for data that does not fit, in the two directions.
_UNWRITABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, IndexError)
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, UnicodeDecodeError)


class AvroCodec:
    """The values of a schema; with `uuids=False` text of the logical type `uuid` is text."""

    def __init__(self, text: str, references: Mapping[str, str] | None = None, *, uuids: bool = True) -> None:
        load = json.loads if uuids else _without_uuids
        try:
            named: dict[str, Any] = {}
            for referenced in (references or {}).values():
                fastavro.parse_schema(load(referenced), named_schemas=named)
            #: The schema as data, with full names.
            self.schema: Any = fastavro.parse_schema(load(text), named_schemas=named)
        except (SchemaParseException, ValueError, TypeError, KeyError, RecursionError) as error:
            raise SerializationError(f"invalid Avro schema: {error}") from error
        self._bounds = AvroBounds(self.schema, named)
        #: Named types by their full names.
        self.named = named
        kind = self.schema.get("type") if isinstance(self.schema, dict) else self.schema
        # Java's serializer writes the bytes of a schema "bytes" without their length.
        self._plain_bytes = kind == "bytes" and not _logical(self.schema)

    @property
    def name(self) -> str | None:
        """The full name of a record, enum or fixed; the type otherwise; None for a union."""
        if isinstance(self.schema, dict):
            return str(self.schema.get("name", self.schema["type"]))
        return self.schema if isinstance(self.schema, str) else None

    def encode(self, value: Any, *, strict: bool = False, strict_allow_default: bool = False) -> bytes:
        """Return the bytes; `strict` refuses fields that the schema does not have, and missing ones."""
        if self._plain_bytes and isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        self._bounds.check_value(value)
        buffer = io.BytesIO()
        try:
            fastavro.schemaless_writer(
                buffer, self.schema, value, strict=strict, strict_allow_default=strict_allow_default
            )
        except _UNWRITABLE as reason:
            raise SerializationError(f"does not fit its Avro schema: {reason!r}") from reason
        return buffer.getvalue()

    def decode(
        self,
        data: bytes,
        reader: AvroCodec | None = None,
        *,
        record_names: bool = False,
        named_types: bool = False,
    ) -> Any:
        """Return the value.

        `record_names` returns records of unions as pairs of name and value, `named_types` all named types.
        """
        if self._plain_bytes and (reader is None or reader._plain_bytes):
            return bytes(data)
        if self._plain_bytes:
            data = _length(len(data)) + data
        self._bounds.check_bytes(data)
        buffer = io.BytesIO(data)
        reader_schema = None if reader is None or reader is self else reader.schema
        try:
            value = fastavro.schemaless_reader(
                buffer,
                self.schema,
                reader_schema,
                return_record_name=record_names,
                return_named_type=named_types,
            )
        except _UNREADABLE as reason:
            raise SerializationError(f"not of this Avro schema: {reason!r}") from reason
        if buffer.read(1):
            raise SerializationError("unexpected bytes after the Avro data")
        return value


def _without_uuids(text: str) -> Any:
    def plain(value: dict[str, Any]) -> dict[str, Any]:
        if value.get("logicalType") == "uuid":
            del value["logicalType"]
        return value

    return json.loads(text, object_hook=plain)


def _logical(schema: Any) -> bool:
    return isinstance(schema, dict) and "logicalType" in schema


def _length(length: int) -> bytes:
    """Return a length as Avro's zigzag varint."""
    value, out = length << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
