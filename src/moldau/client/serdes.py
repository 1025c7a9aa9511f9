"""Serializers and deserializers in the formats of Java's classes of the same names.

None is a missing key or value (a tombstone) and stays None in both directions. A client takes a serializer
as an object, as a name (`"string"`, `"json"`, …) or as the name of a Java class:

    Producer({"bootstrap.servers": "…", "value.serializer": "json"})
    Producer({"bootstrap.servers": "…"}, value_serializer=JsonSerializer())

Any object with a method `serialize(topic, data, headers)` or `deserialize(topic, data, headers)` works.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from struct import Struct, error
from typing import Any, Protocol, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.records import Headers

T_contra = TypeVar("T_contra", contravariant=True)
T_co = TypeVar("T_co", covariant=True)


class SerializationError(KafkaError):
    """A key or value that cannot be serialized or deserialized."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)


class Serializer(Protocol[T_contra]):
    def serialize(self, topic: str, data: T_contra, headers: Headers = ()) -> bytes | None: ...


class Deserializer(Protocol[T_co]):
    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> T_co: ...


class BytesSerializer:
    """Bytes as they are."""

    def serialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> bytes | None:
        if data is None or isinstance(data, bytes | bytearray | memoryview):
            return None if data is None else bytes(data)
        raise SerializationError(
            f"{topic}: a {type(data).__name__} is not bytes; configure a serializer, for example "
            '"value.serializer": "string"'
        )


class BytesDeserializer:
    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> bytes | None:
        return data


class StringSerializer:
    def __init__(self, encoding: str = "utf-8") -> None:
        self._encoding = encoding

    def serialize(self, topic: str, data: str | None, headers: Headers = ()) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, str):
            raise SerializationError(f"{topic}: a {type(data).__name__} is not a string")
        try:
            return data.encode(self._encoding)
        except UnicodeEncodeError as reason:
            raise SerializationError(f"{topic}: {reason}") from reason


class StringDeserializer:
    def __init__(self, encoding: str = "utf-8") -> None:
        self._encoding = encoding

    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> str | None:
        try:
            return None if data is None else data.decode(self._encoding)
        except UnicodeDecodeError as reason:
            raise SerializationError(f"{topic}: not {self._encoding}: {reason}") from reason


class _Number:
    """A number of fixed width, big-endian."""

    FORMAT: Struct
    NAME: str

    def serialize(self, topic: str, data: float | None, headers: Headers = ()) -> bytes | None:
        try:
            return None if data is None else self.FORMAT.pack(data)
        except error as reason:
            raise SerializationError(f"{topic}: {data!r} is not a {self.NAME}: {reason}") from reason

    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> Any:
        if data is None:
            return None
        if len(data) != self.FORMAT.size:
            raise SerializationError(
                f"{topic}: a {self.NAME} has {self.FORMAT.size} bytes, these are {len(data)}"
            )
        return self.FORMAT.unpack(data)[0]


class ShortSerializer(_Number):
    FORMAT, NAME = Struct(">h"), "short"


class IntegerSerializer(_Number):
    FORMAT, NAME = Struct(">i"), "integer"


class LongSerializer(_Number):
    FORMAT, NAME = Struct(">q"), "long"


class FloatSerializer(_Number):
    FORMAT, NAME = Struct(">f"), "float"


class DoubleSerializer(_Number):
    FORMAT, NAME = Struct(">d"), "double"


# One class for both directions, under the two names of configurations.
ShortDeserializer = ShortSerializer
IntegerDeserializer = IntegerSerializer
LongDeserializer = LongSerializer
FloatDeserializer = FloatSerializer
DoubleDeserializer = DoubleSerializer


class UUIDSerializer:
    """A UUID as its text, as in Java."""

    def serialize(self, topic: str, data: uuid.UUID | None, headers: Headers = ()) -> bytes | None:
        return None if data is None else str(data).encode()


class UUIDDeserializer:
    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> uuid.UUID | None:
        try:
            return None if data is None else uuid.UUID(data.decode())
        except ValueError as reason:
            raise SerializationError(f"{topic}: not a UUID: {reason}") from reason


class JsonSerializer:
    """Any value that `json` can write; `default` converts the others."""

    def __init__(self, default: Callable[[Any], Any] | None = None, *, sort_keys: bool = False) -> None:
        self._encoder = json.JSONEncoder(
            default=default, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":")
        )

    def serialize(self, topic: str, data: Any, headers: Headers = ()) -> bytes | None:
        try:
            return None if data is None else self._encoder.encode(data).encode()
        except (TypeError, ValueError) as reason:
            raise SerializationError(f"{topic}: not JSON: {reason}") from reason


class JsonDeserializer:
    def deserialize(self, topic: str, data: bytes | None, headers: Headers = ()) -> Any:
        try:
            return None if data is None else json.loads(data)
        except ValueError as reason:
            raise SerializationError(f"{topic}: not JSON: {reason}") from reason


_SERIALIZERS: dict[str, Callable[[], Serializer[Any]]] = {
    "bytes": BytesSerializer,
    "string": StringSerializer,
    "short": ShortSerializer,
    "int": IntegerSerializer,
    "integer": IntegerSerializer,
    "long": LongSerializer,
    "float": FloatSerializer,
    "double": DoubleSerializer,
    "uuid": UUIDSerializer,
    "json": JsonSerializer,
}
_DESERIALIZERS: dict[str, Callable[[], Deserializer[Any]]] = {
    "bytes": BytesDeserializer,
    "string": StringDeserializer,
    "short": ShortDeserializer,
    "int": IntegerDeserializer,
    "integer": IntegerDeserializer,
    "long": LongDeserializer,
    "float": FloatDeserializer,
    "double": DoubleDeserializer,
    "uuid": UUIDDeserializer,
    "json": JsonDeserializer,
}
#: Names of serializers of a schema registry, and the start of our class names.
_OF_A_REGISTRY = {
    "avro": "Avro",
    "kafkaavro": "Avro",
    "jsonschema": "JsonSchema",
    "kafkajsonschema": "JsonSchema",
    "protobuf": "Protobuf",
    "kafkaprotobuf": "Protobuf",
}
_JAVA_NAMES = {"bytearray": "bytes", "bytebuffer": "bytes"}


def serializer(choice: Any, config: Mapping[str, Any] | None = None, *, key: bool = False) -> Serializer[Any]:
    """Return the serializer for an object, a class, a name or a Java class name; bytes for None.

    The names of a schema registry's serializers, such as `KafkaAvroSerializer`, take their settings from
    `config`.
    """
    if isinstance(choice, str) and _short_name(choice, "serializer") in _OF_A_REGISTRY:
        choice = _of_a_registry(choice, "serializer", config or {}, key)
    if choice is None or isinstance(choice, str):
        choice = _by_name(choice, "serializer", _SERIALIZERS)
    made: Serializer[Any] = choice() if isinstance(choice, type) else choice
    return made


def deserializer(
    choice: Any, config: Mapping[str, Any] | None = None, *, key: bool = False
) -> Deserializer[Any]:
    if isinstance(choice, str) and _short_name(choice, "deserializer") in _OF_A_REGISTRY:
        choice = _of_a_registry(choice, "deserializer", config or {}, key)
    if choice is None or isinstance(choice, str):
        choice = _by_name(choice, "deserializer", _DESERIALIZERS)
    made: Deserializer[Any] = choice() if isinstance(choice, type) else choice
    return made


def _short_name(name: str, kind: str) -> str:
    return name.rpartition(".")[2].lower().removesuffix(kind).replace("-", "")


def _of_a_registry(name: str, kind: str, config: Mapping[str, Any], key: bool) -> Any:
    """Return Confluent's serializer or deserializer of a name, which `schema.registry.url` configures."""
    from moldau.client import registry
    from moldau.client.registry.serdes.settings import known_properties

    made = getattr(registry, f"{_OF_A_REGISTRY[_short_name(name, kind)]}{kind.capitalize()}")
    return made(config, config=known_properties(config), key=key)


def _by_name(name: str | None, kind: str, known: Mapping[str, Callable[[], Any]]) -> Any:
    short = _short_name(name or "bytes", kind)
    short = _JAVA_NAMES.get(short, short)
    if short not in known:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Unknown {kind} {name!r}; use an object, or one of {', '.join(sorted(known))}",
        )
    return known[short]()
