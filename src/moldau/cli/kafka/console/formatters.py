"""Kafka's message formatters and deserializers, which convert records to text."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from moldau.cli.shared.java import java_boolean, java_double, java_float
from moldau.cli.shared.tool import ToolError

Deserializer = Callable[[bytes], bytes]


class ConsoleRecord(NamedTuple):
    """The parts of a record that formatters use; `timestamp_type` is CreateTime, LogAppendTime or None."""

    topic: str
    partition: int
    offset: int
    timestamp_type: str | None
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    #: The delivery count in a share group.
    delivery_count: int | None = None


class Formatter(Protocol):
    def format(self, record: ConsoleRecord) -> bytes: ...


class DefaultFormatter:
    """Prints the columns that print.* selects, separated by key.separator and ended by line.separator."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def wanted(name: str, default: str = "false") -> bool:
            return properties.get(f"print.{name}", default).strip().lower() == "true"

        self._separator = properties.get("key.separator", "\t").encode()
        self._end = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._key = _deserializer(properties.get("key.deserializer"))
        self._value = _deserializer(properties.get("value.deserializer"))
        self._header = _deserializer(properties.get("headers.deserializer"))
        columns: dict[str, Callable[[ConsoleRecord], bytes]] = {
            "timestamp": _timestamp,
            "partition": lambda record: b"Partition:%d" % record.partition,
            "offset": lambda record: b"Offset:%d" % record.offset,
            "delivery": _delivery,
            "epoch": lambda record: b"Epoch:NOT_PRESENT",
            "headers": self._headers,
            "key": lambda record: self._null if record.key is None else self._key(record.key),
            "value": lambda record: self._null if record.value is None else self._value(record.value),
        }
        self._columns = [
            column for name, column in columns.items() if wanted(name, "true" if name == "value" else "false")
        ]

    def format(self, record: ConsoleRecord) -> bytes:
        if not self._columns:
            return b""
        return self._separator.join([column(record) for column in self._columns]) + self._end

    def _headers(self, record: ConsoleRecord) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self._headers_separator.join(
            name.encode() + b":" + (self._null if value is None else self._header(value))
            for name, value in record.headers
        )


def _timestamp(record: ConsoleRecord) -> bytes:
    if record.timestamp_type is None:
        return b"NO_TIMESTAMP"
    return f"{record.timestamp_type}:{record.timestamp}".encode()


def _delivery(record: ConsoleRecord) -> bytes:
    return b"Delivery:%s" % (
        b"NOT_PRESENT" if record.delivery_count is None else b"%d" % record.delivery_count
    )


class NoOpFormatter:
    def __init__(self, properties: Mapping[str, str]) -> None:
        pass

    def format(self, record: ConsoleRecord) -> bytes:
        return b""


_FORMATTERS: dict[str, Callable[[Mapping[str, str]], Formatter]] = {
    "DefaultMessageFormatter": DefaultFormatter,
    "LoggingMessageFormatter": DefaultFormatter,
    "NoOpMessageFormatter": NoOpFormatter,
}


def find_formatter(name: str, properties: Mapping[str, str]) -> Formatter:
    """Return a formatter by its class name, with or without the package."""
    factory = _FORMATTERS.get(_simple(name))
    if factory is not None:
        return factory(properties)
    from moldau.cli.kafka.console.coordinator_formatters import COORDINATOR_FORMATTERS

    factory = COORDINATOR_FORMATTERS.get(_simple(name))
    if factory is None:
        known = ", ".join([*_FORMATTERS, *COORDINATOR_FORMATTERS])
        raise ToolError(f"There is no formatter {name}; there are: {known}")
    return factory(properties)


def _fixed(format: str, show: Callable[..., str]) -> Callable[[str], Deserializer]:
    unpack = struct.Struct(format)

    def make(name: str) -> Deserializer:
        def deserialize(data: bytes) -> bytes:
            if len(data) != unpack.size:
                raise ToolError(f"Size of data received by {name} is not {unpack.size}")
            return show(*unpack.unpack(data)).encode()

        return deserialize

    return make


def _uuid(name: str) -> Deserializer:
    def deserialize(data: bytes) -> bytes:
        try:
            return str(uuid.UUID(data.decode())).encode()
        except ValueError as error:
            raise ToolError(f"Error parsing data into UUID: {error}") from error

    return deserialize


def _as_is(name: str) -> Deserializer:
    return bytes


_DESERIALIZERS: dict[str, Callable[[str], Deserializer]] = {
    "StringDeserializer": _as_is,
    "ByteArrayDeserializer": _as_is,
    "BytesDeserializer": _as_is,
    "ShortDeserializer": _fixed(">h", str),
    "IntegerDeserializer": _fixed(">i", str),
    "LongDeserializer": _fixed(">q", str),
    "FloatDeserializer": _fixed(">f", java_float),
    "DoubleDeserializer": _fixed(">d", java_double),
    "BooleanDeserializer": _fixed(">?", java_boolean),
    "UUIDDeserializer": _uuid,
}


def _deserializer(name: str | None) -> Deserializer:
    if not name:
        return bytes
    factory = _DESERIALIZERS.get(_simple(name))
    if factory is None:
        raise ToolError(f"There is no deserializer {name}; there are: {', '.join(_DESERIALIZERS)}")
    return factory(_simple(name))


def _simple(name: str) -> str:
    return name.rpartition(".")[2].rpartition("$")[2]
