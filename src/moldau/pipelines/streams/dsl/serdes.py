"""Serdes: the serialized form of keys and values, in the formats of Java's serdes of the same names.

A serde is a pair of a serializer and a deserializer of `moldau.client`. `format` and `schema` say how Spark
can read its bytes natively, which operators given as Spark expressions require.

Windowed keys have the two forms of Kafka Streams: `TimeWindowedSerde` appends the window's start (the reader
knows the size) to the key, `SessionWindowedSerde` appends the window's end and start.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from io import BytesIO
from struct import Struct
from typing import Any

from moldau.client import schema_serdes, serdes
from moldau.client.records import Headers
from moldau.client.serdes import Deserializer, SerializationError, Serializer
from moldau.pipelines.streams.dsl.windows import AggregationWindows, SessionWindows

_LONG = Struct(">q")
_END_AND_START = Struct(">qq")


@dataclass(frozen=True, slots=True)
class Window:
    """From `start` to `end` in milliseconds; a session ends with the timestamp of its last record."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Windowed:
    """A key and a window: the key of a windowed table."""

    key: Any
    window: Window


@dataclass(frozen=True, slots=True)
class Serde:
    """A serializer and a deserializer. `format` is the native Spark format, if there is one: bytes, string,
    int, long, or json with a schema."""

    serializer: Serializer[Any]
    deserializer: Deserializer[Any]
    format: str | None = None
    #: For JSON: a Spark schema, as DDL text or as a `StructType`.
    schema: Any = None

    def serialize(self, topic: str, data: Any, headers: Headers = ()) -> bytes | None:
        return self.serializer.serialize(topic, data, headers)

    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> Any:
        return self.deserializer.deserialize(topic, data, headers)


@dataclass(frozen=True, slots=True)
class _TimeWindowed:
    inner: Serde
    window_size_ms: int

    def serialize(self, topic: str, data: Windowed | None, headers: Headers = ()) -> bytes | None:
        if data is None:
            return None
        key = self.inner.serialize(topic, data.key, headers) or b""
        return key + _LONG.pack(data.window.start)

    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> Windowed | None:
        if data is None:
            return None
        if len(data) < _LONG.size:
            raise SerializationError(f"{topic}: a windowed key has at least 8 bytes, not {len(data)}")
        (start,) = _LONG.unpack(data[-8:])
        key = self.inner.deserialize(topic, data[:-8], headers)
        return Windowed(key, Window(start, start + self.window_size_ms))


@dataclass(frozen=True, slots=True)
class _SessionWindowed:
    inner: Serde

    def serialize(self, topic: str, data: Windowed | None, headers: Headers = ()) -> bytes | None:
        if data is None:
            return None
        key = self.inner.serialize(topic, data.key, headers) or b""
        return key + _END_AND_START.pack(data.window.end, data.window.start)

    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> Windowed | None:
        if data is None:
            return None
        if len(data) < _END_AND_START.size:
            raise SerializationError(
                f"{topic}: a session-windowed key has at least 16 bytes, not {len(data)}"
            )
        end, start = _END_AND_START.unpack(data[-16:])
        return Windowed(self.inner.deserialize(topic, data[:-16], headers), Window(start, end))


#: Modules that moved: checkpoints may hold objects of their classes, such as `Windowed`, under the old names.
_MOVED = {
    "moldau.pipelines.streams.processors": "moldau.pipelines.streams.dsl.processors",
    "moldau.pipelines.streams.serdes": "moldau.pipelines.streams.dsl.serdes",
}


class _MovedUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(_MOVED.get(module, module), name)


class _Pickle:
    """Pickled Python objects, for values that do not leave the query."""

    def serialize(self, topic: str, data: Any, headers: Headers = ()) -> bytes | None:
        return None if data is None else pickle.dumps(data, protocol=5)

    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> Any:
        if data is None:
            return None
        try:
            return pickle.loads(data)
        except ModuleNotFoundError:
            return _MovedUnpickler(BytesIO(data)).load()


def time_windowed_serde(inner: Serde, window_size_ms: int) -> Serde:
    codec = _TimeWindowed(inner, window_size_ms)
    return Serde(codec, codec)


def session_windowed_serde(inner: Serde) -> Serde:
    codec = _SessionWindowed(inner)
    return Serde(codec, codec)


def windowed_serde(key_serde: Serde | None, windows: AggregationWindows | None) -> Serde | None:
    """Return the serde of the windowed keys of a table, given the serde of its plain keys."""
    if key_serde is None or windows is None:
        return key_serde
    if isinstance(windows, SessionWindows):
        return session_windowed_serde(key_serde)
    return time_windowed_serde(key_serde, windows.size_ms)


def inner_serde(serde: Serde) -> Serde:
    """Return the key serde inside a windowed serde, or the serde itself."""
    codec = serde.serializer
    return codec.inner if isinstance(codec, _TimeWindowed | _SessionWindowed) else serde


PICKLE = Serde(_Pickle(), _Pickle())


def _by_name(name: str) -> Serde:
    return Serde(serdes.serializer(name), serdes.deserializer(name), name)


class Serdes:
    """The built-in serdes, by Java's names; `Serdes.serde_from` wraps a custom serializer and
    deserializer."""

    @staticmethod
    def string() -> Serde:
        return _by_name("string")

    @staticmethod
    def bytes() -> Serde:
        return _by_name("bytes")

    @staticmethod
    def short() -> Serde:
        return _by_name("short")

    @staticmethod
    def integer() -> Serde:
        return _by_name("int")

    @staticmethod
    def long() -> Serde:
        return _by_name("long")

    @staticmethod
    def float() -> Serde:
        return _by_name("float")

    @staticmethod
    def double() -> Serde:
        return _by_name("double")

    @staticmethod
    def uuid() -> Serde:
        return _by_name("uuid")

    @staticmethod
    def json(schema: Any = None) -> Serde:
        """JSON as Python data; with a Spark schema, Spark expressions can reference its fields."""
        return Serde(serdes.JsonSerializer(), serdes.JsonDeserializer(), "json", schema)

    @staticmethod
    def avro(schema: Any) -> Serde:
        """Avro binary data of a schema (Python data or JSON text)."""
        return Serde(schema_serdes.AvroSerializer(schema), schema_serdes.AvroDeserializer(schema))

    @staticmethod
    def registry_avro(registry: Any, schema: Any = None, config: Any = None, *, key: bool = False) -> Serde:
        """Avro data with the id of its schema in a schema registry (a URL, properties or a client)."""
        from moldau.client.registry import AvroDeserializer, AvroSerializer

        return Serde(
            AvroSerializer(registry, schema, config, key=key),
            AvroDeserializer(registry, schema, config, key=key),
        )

    @staticmethod
    def registry_json_schema(
        registry: Any, schema: Any = None, config: Any = None, *, key: bool = False
    ) -> Serde:
        """JSON data with the id of its JSON Schema in a schema registry."""
        from moldau.client.registry import JsonSchemaDeserializer, JsonSchemaSerializer

        return Serde(
            JsonSchemaSerializer(registry, schema, config, key=key),
            JsonSchemaDeserializer(registry, schema, config, key=key),
        )

    @staticmethod
    def registry_protobuf(
        registry: Any, message_class: Any, config: Any = None, *, key: bool = False
    ) -> Serde:
        """Protobuf messages of a generated class, with the id of their schema in a schema registry."""
        from moldau.client.registry import ProtobufDeserializer, ProtobufSerializer

        return Serde(
            ProtobufSerializer(registry, message_class, config, key=key),
            ProtobufDeserializer(registry, message_class, config, key=key),
        )

    @staticmethod
    def time_windowed(inner: Serde | str, window_size_ms: int) -> Serde:
        return time_windowed_serde(_required(inner), window_size_ms)

    @staticmethod
    def session_windowed(inner: Serde | str) -> Serde:
        return session_windowed_serde(_required(inner))

    @staticmethod
    def serde_from(serializer: Serializer[Any], deserializer: Deserializer[Any]) -> Serde:
        return Serde(serializer, deserializer)


_BY_NAME = {
    "string": Serdes.string,
    "bytes": Serdes.bytes,
    "bytearray": Serdes.bytes,
    "short": Serdes.short,
    "int": Serdes.integer,
    "integer": Serdes.integer,
    "long": Serdes.long,
    "float": Serdes.float,
    "double": Serdes.double,
    "uuid": Serdes.uuid,
    "json": Serdes.json,
}


def as_serde(choice: Serde | str | None) -> Serde | None:
    """Return the serde that is given as an object, by its short name, or by the name of Java's class."""
    if choice is None or isinstance(choice, Serde):
        return choice
    short = choice.rpartition(".")[2].rpartition("$")[2].lower().removesuffix("serde")
    if short not in _BY_NAME:
        raise ValueError(f"Unknown serde {choice!r}: pass a Serde, or one of {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[short]()


def _required(choice: Serde | str) -> Serde:
    serde = as_serde(choice)
    if serde is None:
        raise ValueError("A windowed serde requires a key serde")
    return serde
