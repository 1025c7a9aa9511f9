"""Avro and Protobuf, with the schema given to the serializer: the bytes hold the data alone.

Avro needs `fastavro`, Protobuf the classes that `protoc` makes (and the `protobuf` package they import).
"""

from __future__ import annotations

import io
from typing import Any, Generic, TypeVar

from moldau.client.records import Headers
from moldau.client.serdes import SerializationError

M = TypeVar("M")


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError as error:
        raise ImportError("Avro needs fastavro: pip install fastavro") from error
    return fastavro


class AvroSerializer:
    """Python data as Avro's binary form, by a schema given as Python data or as its JSON text."""

    def __init__(self, schema: Any) -> None:
        self._avro = _fastavro()
        self._schema = _parsed(self._avro, schema)

    def serialize(self, topic: str, data: Any, headers: Headers = ()) -> bytes | None:
        if data is None:
            return None
        buffer = io.BytesIO()
        try:
            self._avro.schemaless_writer(buffer, self._schema, data)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as reason:
            raise SerializationError(f"{topic}: does not fit its Avro schema: {reason}") from reason
        return buffer.getvalue()


class AvroDeserializer:
    """Reads what was written with `schema`; as `reader_schema` wants it, if that is given."""

    def __init__(self, schema: Any, reader_schema: Any = None) -> None:
        self._avro = _fastavro()
        self._schema = _parsed(self._avro, schema)
        self._reader_schema = None if reader_schema is None else _parsed(self._avro, reader_schema)

    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> Any:
        if data is None:
            return None
        buffer = io.BytesIO(data)
        try:
            value = self._avro.schemaless_reader(buffer, self._schema, self._reader_schema)
        except (ValueError, TypeError, KeyError, IndexError, EOFError) as reason:
            raise SerializationError(f"{topic}: not of this Avro schema: {reason}") from reason
        if buffer.read(1):
            raise SerializationError(f"{topic}: bytes are left over behind the Avro data")
        return value


def _parsed(avro: Any, schema: Any) -> Any:
    if isinstance(schema, str):
        import json

        schema = json.loads(schema)
    return avro.parse_schema(schema)


class ProtobufSerializer:
    """A message of any class that `protoc` made."""

    def serialize(self, topic: str, data: Any, headers: Headers = ()) -> bytes | None:
        if data is None:
            return None
        try:
            written: bytes = data.SerializeToString()
        except Exception as reason:  # the errors of protobuf have no common base but this
            raise SerializationError(f"{topic}: not a Protobuf message: {reason}") from reason
        return written


class ProtobufDeserializer(Generic[M]):
    """Messages of one class."""

    def __init__(self, message_class: type[M]) -> None:
        self._class = message_class

    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> M | None:
        if data is None:
            return None
        message: Any = self._class()
        try:
            message.ParseFromString(data)
        except Exception as reason:  # as above
            raise SerializationError(
                f"{topic}: not a {self._class.__name__} of Protobuf: {reason}"
            ) from reason
        parsed: M = message
        return parsed
