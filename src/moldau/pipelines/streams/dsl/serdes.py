"""Serdes: how keys and values are bytes on topics, with the formats of Java's serdes of the same names.

A serde is a serializer and a deserializer of `moldau.client`. Some say besides what Spark itself can make of
their bytes (`format`, `schema`): operators given as Spark expressions need that.

Windowed keys have Kafka's own two forms: `TimeWindowedSerde` is the key and the window's start, the size
being known to the reader; `SessionWindowedSerde` is the key, the end and the start.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
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
    """From `start` to `end` in milliseconds; the end of a session is its last record."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Windowed:
    """A key in a window: the key of a windowed table."""

    key: Any
    window: Window


@dataclass(frozen=True, slots=True)
class Serde:
    """`format` is what Spark can read natively: bytes, string, int, long, double, json (with a schema) or
    nothing."""

    serializer: Serializer[Any]
    deserializer: Deserializer[Any]
    format: str | None = None
    #: Of JSON: a Spark schema, as DDL text or as a `StructType`.
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
            raise SerializationError(f"{topic}: a windowed key has at least 8 bytes, these are {len(data)}")
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
            raise SerializationError(f"{topic}: a session's key has at least 16 bytes, these are {len(data)}")
        end, start = _END_AND_START.unpack(data[-16:])
        return Windowed(self.inner.deserialize(topic, data[:-16], headers), Window(start, end))


class _Pickle:
    """Python's own form, for values that stay inside one query."""

    def serialize(self, topic: str, data: Any, headers: Headers = ()) -> bytes | None:
        return None if data is None else pickle.dumps(data, protocol=5)

    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> Any:
        return None if data is None else pickle.loads(data)


def time_windowed_serde(inner: Serde, window_size_ms: int) -> Serde:
    codec = _TimeWindowed(inner, window_size_ms)
    return Serde(codec, codec)


def session_windowed_serde(inner: Serde) -> Serde:
    codec = _SessionWindowed(inner)
    return Serde(codec, codec)


def windowed_serde(key_serde: Serde | None, windows: AggregationWindows | None) -> Serde | None:
    """Of a windowed table's keys, by that of its plain keys."""
    if key_serde is None or windows is None:
        return key_serde
    if isinstance(windows, SessionWindows):
        return session_windowed_serde(key_serde)
    return time_windowed_serde(key_serde, windows.size_ms)


def inner_serde(serde: Serde) -> Serde:
    """Of a windowed serde that of its keys; any other is its own."""
    codec = serde.serializer
    return codec.inner if isinstance(codec, _TimeWindowed | _SessionWindowed) else serde


PICKLE = Serde(_Pickle(), _Pickle())


def _both(name: str) -> Serde:
    return Serde(serdes.serializer(name), serdes.deserializer(name), name)


class Serdes:
    """The serdes there are, by Java's names; `Serdes.serde_from` takes any pair of your own."""

    @staticmethod
    def string() -> Serde:
        return _both("string")

    @staticmethod
    def bytes() -> Serde:
        return _both("bytes")

    @staticmethod
    def short() -> Serde:
        return _both("short")

    @staticmethod
    def integer() -> Serde:
        return _both("int")

    @staticmethod
    def long() -> Serde:
        return _both("long")

    @staticmethod
    def float() -> Serde:
        return _both("float")

    @staticmethod
    def double() -> Serde:
        return _both("double")

    @staticmethod
    def uuid() -> Serde:
        return _both("uuid")

    @staticmethod
    def json(schema: Any = None) -> Serde:
        """JSON as Python data; with a Spark schema its fields can be named in Spark expressions."""
        return Serde(serdes.JsonSerializer(), serdes.JsonDeserializer(), "json", schema)

    @staticmethod
    def avro(schema: Any) -> Serde:
        """Avro's binary form by a schema (Python data or JSON text)."""
        return Serde(schema_serdes.AvroSerializer(schema), schema_serdes.AvroDeserializer(schema))

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
    """A serde as it is given: as an object, by its short name, or by the name of Java's class."""
    if choice is None or isinstance(choice, Serde):
        return choice
    short = choice.rpartition(".")[2].rpartition("$")[2].lower().removesuffix("serde")
    if short not in _BY_NAME:
        raise ValueError(
            f"There is no serde {choice!r}; give an object, or one of {', '.join(sorted(_BY_NAME))}"
        )
    return _BY_NAME[short]()


def _required(choice: Serde | str) -> Serde:
    serde = as_serde(choice)
    if serde is None:
        raise ValueError("A windowed serde needs the serde of its keys")
    return serde
