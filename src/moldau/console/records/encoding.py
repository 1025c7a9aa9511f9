"""Values written by a schema of the registry: JSON text becomes Avro, Protobuf or checked JSON.

A schema is chosen by its subject, or by its id as `#ID`; `#ID:1.0` is a message type of Protobuf by its
indexes. Avro is written in Avro's JSON encoding (`{"string": "a"}` for a value of a union) or as plain JSON.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any, Final

from moldau.client.registry import AsyncRegistryClient
from moldau.client.registry.serdes.framing import FIRST, MAGIC_ID, SchemaName, frame, unframe
from moldau.client.serdes import SerializationError
from moldau.console.records.decoding import Codecs
from moldau.console.web.forms import InvalidField

_BY_ID: Final = re.compile(r"#(\d{1,10})(?::([\d.]{1,300}))?")
#: What fastavro raises for JSON that is not of a schema.
_UNREADABLE: Final = (AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError)


async def encode_by_schema(
    registry: AsyncRegistryClient | None, codecs: Codecs | None, chosen: str, text: str
) -> bytes:
    """Return the framed bytes of a value by a schema; `InvalidField` if it does not fit."""
    if registry is None or codecs is None:
        raise InvalidField("No schema registry is configured.")
    by_id = _BY_ID.fullmatch(chosen)
    indexes: tuple[int, ...] = FIRST
    if by_id is None:
        id = (await registry.latest(chosen)).id
    else:
        id = int(by_id[1])
        indexes = tuple(int(each) for each in by_id[2].split(".") if each) if by_id[2] else FIRST
    try:
        kind, codec, _ = await codecs.get(SchemaName(id=id))
        return _encoded(kind, codec, id, indexes, text)
    except SerializationError as error:
        raise InvalidField(f"The value does not fit the schema of {chosen}: {error}") from None


async def editable(codecs: Codecs, data: bytes) -> tuple[str, str] | None:
    """Return the schema of framed bytes, and the text that `encode_by_schema` turns into just these bytes.

    None if there is no such text: a Protobuf message has unknown fields, for example.
    """
    if data[:1] != bytes([MAGIC_ID]):
        return None
    name, start = unframe(data)
    kind, codec, id = await codecs.get(name)
    if id is None:
        return None
    indexes: tuple[int, ...] = FIRST
    try:
        if kind == "PROTOBUF":
            named, start = unframe(data, with_indexes=True)
            indexes = named.indexes
        text = _text(kind, codec, data[start:], indexes)
        same = _encoded(kind, codec, id, indexes, text) == data
    except SerializationError:
        return None
    chosen = f"#{id}" if indexes == FIRST else f"#{id}:{'.'.join(map(str, indexes))}"
    return (chosen, text) if same else None


def _text(kind: str, codec: Any, payload: bytes, indexes: tuple[int, ...]) -> str:
    try:
        if kind == "PROTOBUF":
            from google.protobuf.json_format import Error, MessageToJson

            try:
                return MessageToJson(codec.decode(payload, indexes), preserving_proto_field_name=True)
            except Error as error:
                raise SerializationError(str(error)) from None
        if kind == "AVRO":
            import fastavro

            buffer = io.StringIO()
            fastavro.json_writer(buffer, codec.schema, [codec.decode(payload, record_names=True)])
            return json.dumps(json.loads(buffer.getvalue()), indent=2, ensure_ascii=False)
        return payload.decode()
    except (*_UNREADABLE, RecursionError) as error:
        raise SerializationError(f"no text for this value: {error!r}") from None


def _encoded(kind: str, codec: Any, id: int, indexes: tuple[int, ...], text: str) -> bytes:
    if kind == "PROTOBUF":
        from google.protobuf.json_format import Parse, ParseError

        from moldau.client.registry.codecs.protobuf import encoded

        message = codec.message_class(indexes)()
        try:
            Parse(text, message)
        except ParseError as error:
            raise SerializationError(str(error)) from None
        return frame(id, indexes) + encoded(message)
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SerializationError(f"not JSON: {error}") from None
    if kind == "AVRO":
        return frame(id) + _avro(codec, value)
    codec.check(value)
    return frame(id) + text.encode("utf-8", "surrogatepass")


def _avro(codec: Any, value: Any) -> bytes:
    import fastavro

    try:
        # fastavro reads a value from each line.
        (read,) = fastavro.json_reader(io.StringIO(json.dumps(value)), codec.schema)
        encoded: bytes = codec.encode(read)
    except (*_UNREADABLE, RecursionError, SerializationError):
        encoded = codec.encode(value)
    return encoded
