"""Values written by a schema of the registry: JSON text becomes Avro, Protobuf or checked JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from moldau.client.registry.serdes.framing import FIRST, frame
from moldau.client.serdes import SerializationError
from moldau.console.web.forms import InvalidField

if TYPE_CHECKING:
    from moldau.console.services import Services


async def encode_by_schema(services: Services, subject: str, text: str) -> bytes:
    """Return the framed bytes of a value by a subject's latest schema; `InvalidField` if it does not fit."""
    if services.registry is None:
        raise InvalidField("No schema registry is configured.")
    registered = await services.registry.latest(subject)
    schema = registered.schema
    references = await services.registry.referenced_texts(schema)
    try:
        return _encoded(schema.schema_type, schema.text, references, registered.id, text)
    except SerializationError as error:
        raise InvalidField(f"The value does not fit the schema of {subject}: {error}") from None


def _encoded(kind: str, schema: str, references: dict[str, str], id: int, text: str) -> bytes:
    if kind == "PROTOBUF":
        from google.protobuf.json_format import Parse, ParseError

        from moldau.client.registry.codecs.protobuf import ProtobufCodec, encoded

        message = ProtobufCodec(schema, references).message_class(FIRST)()
        try:
            Parse(text, message)
        except ParseError as error:
            raise SerializationError(str(error)) from None
        return frame(id, FIRST) + encoded(message)
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SerializationError(f"not JSON: {error}") from None
    if kind == "AVRO":
        from moldau.client.registry.codecs.avro import AvroCodec

        return frame(id) + AvroCodec(schema, references).encode(value)
    from moldau.client.registry.codecs.json_schema import JsonSchemaCodec

    return frame(id) + JsonSchemaCodec(schema, references).encode(value)
