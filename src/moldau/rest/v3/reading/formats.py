"""How a streaming read is written: records as JSON, and streams of them as lines or server-sent events."""

from __future__ import annotations

import base64
from typing import Any, Final, NamedTuple

from confluent_kafka import Message

from moldau.client.librdkafka.headers import headers_of
from moldau.client.registry.serdes.framing import KEY_HEADER, VALUE_HEADER
from moldau.http.asgi import Scope, encode_json, header
from moldau.http.errors import ApiError
from moldau.rest.errors import bad_request
from moldau.rest.formats import plain
from moldau.rest.formats.schemas import FORMATS, SchemaFormats
from moldau.rest.request import Request
from moldau.rest.v3.resources import instant

LINES: Final = "application/x-ndjson"
EVENTS: Final = "text/event-stream"
MEDIA_TYPES: Final = (LINES, EVENTS)
AUTO, SCHEMA = "AUTO", "SCHEMA"
_TYPES: Final = {AUTO, SCHEMA, "BINARY", "STRING", "JSON"}
_TIMESTAMP_TYPES: Final = {1: "CREATE_TIME", 2: "LOG_APPEND_TIME"}


class DataTypes(NamedTuple):
    """How keys and values are shown."""

    key: str
    value: str

    @classmethod
    def of(cls, request: Request) -> DataTypes:
        found = [request.query(name, AUTO).upper() for name in ("key_type", "value_type")]
        for each in found:
            if each not in _TYPES:
                raise bad_request(f"The type {each} does not exist; use {', '.join(sorted(_TYPES))}.")
        return cls(*found)


AS_BYTES: Final = DataTypes("BINARY", "BINARY")


def wants_events(scope: Scope) -> bool:
    """Return whether the client accepts server-sent events; lines are the default."""
    return EVENTS in (header(scope, b"accept") or b"").decode("latin-1").lower()


async def shown_record(schemas: SchemaFormats, types: DataTypes, message: Message) -> dict[str, Any]:
    """Return a record as JSON. A key or value that is not of the type is shown as BINARY, with the error."""
    kind, timestamp = message.timestamp()
    headers = headers_of(message)
    shown: dict[str, Any] = {
        "topic_name": message.topic(),
        "partition_id": message.partition(),
        "offset": message.offset(),
        "timestamp": instant(timestamp) if timestamp >= 0 else None,
        "timestamp_type": _TIMESTAMP_TYPES.get(kind),
        "headers": [{"name": name, "value": _base64(value)} for name, value in headers],
    }
    for name, wanted, data in (
        ("key", types.key, message.key()),
        ("value", types.value, message.value()),
    ):
        content = None if data is None else bytes(data)
        shown[name] = await _side(schemas, wanted, content, headers, is_key=name == "key")
    return shown


async def _side(
    schemas: SchemaFormats, wanted: str, data: bytes | None, headers: Any, *, is_key: bool
) -> dict[str, Any] | None:
    if data is None:
        return None
    if wanted == AUTO:
        return await _guessed(schemas, data, headers, is_key)
    try:
        if wanted == SCHEMA:
            return await _with_schema(schemas, data, headers, is_key)
        return {"type": wanted, "data": plain.decode(wanted.lower(), data)}
    except ApiError as error:
        return {"type": "BINARY", "data": _base64(data), "error": error.message}


async def _with_schema(schemas: SchemaFormats, data: bytes, headers: Any, is_key: bool) -> dict[str, Any]:
    found = await schemas.decode("schema", data, headers, is_key)
    return {"type": FORMATS[found.type].upper(), "schema_id": found.id, "data": found.data}


async def _guessed(schemas: SchemaFormats, data: bytes, headers: Any, is_key: bool) -> dict[str, Any]:
    """Show data with a schema if it names one of the registry, as JSON, as text, or as base64."""
    if schemas.has_registry and (data[:1] == b"\0" or _names_schema(headers, is_key)):
        try:
            return await _with_schema(schemas, data, headers, is_key)
        except ApiError:
            return {"type": "BINARY", "data": _base64(data)}
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"type": "BINARY", "data": _base64(data)}
    try:
        return {"type": "JSON", "data": plain.load(text)}
    except (ValueError, RecursionError):
        return {"type": "STRING", "data": text}


def _names_schema(headers: Any, is_key: bool) -> bool:
    wanted = KEY_HEADER if is_key else VALUE_HEADER
    return any(name == wanted for name, _ in headers)


def line(value: dict[str, Any]) -> bytes:
    return encode_json(value) + b"\n"


def event(kind: str, value: dict[str, Any], id: str = "") -> bytes:
    """Return a server-sent event; the id is what a client sends as Last-Event-ID when it connects again."""
    named = f"id: {id}\n" if id else ""
    return f"event: {kind}\n{named}data: ".encode() + encode_json(value) + b"\n\n"


def _base64(data: bytes | str | None) -> str | None:
    if data is None:
        return None
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode("ascii")
