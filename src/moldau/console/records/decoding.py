"""Keys, values and headers as text: by their schema in the registry, as JSON, as text, or as bytes in hex.

Whatever a record contains, the result is plain text of bounded length; only templates turn it into HTML.
"""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from moldau.base.errors import KafkaError
from moldau.client.registry import AsyncRegistryClient
from moldau.client.registry.serdes.framing import SchemaName, of_record
from moldau.client.serdes import SerializationError
from moldau.console.records.masking import MASK, Masking

_NULL: Final = "null"
_MOST_CODECS: Final = 500
_BYTES_PER_LINE: Final = 16
_PRINTABLE: Final = "\t\n\r"
_MOST_JSON: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Decoded:
    """`format` is one of null, text, json, avro, protobuf, bytes; `tree` is the value of a structured one."""

    format: str
    text: str
    tree: Any = None
    schema_id: int | None = None
    error: str | None = None

    @property
    def value(self) -> Any:
        """The value for expressions and JSON: the tree of a structured one, else the text."""
        if self.format == _NULL:
            return None
        return self.text if self.tree is None else self.tree


class Decoder:
    def __init__(self, registry: AsyncRegistryClient | None, masking: Masking) -> None:
        self._registry = registry
        self._masking = masking
        self._codecs: OrderedDict[SchemaName, Any] = OrderedDict()

    @property
    def plain(self) -> bool:
        """Whether text in a value is visible in its bytes."""
        return self._registry is None

    def decode_plain(self, data: bytes | None) -> Decoded:
        """Decode without a schema."""
        return Decoded(_NULL, "") if data is None else plain(data, self._masking)

    async def decode(
        self, data: bytes | None, headers: Sequence[tuple[str, bytes | None]] = (), *, key: bool = False
    ) -> Decoded:
        if data is None:
            return Decoded(_NULL, "")
        error = None
        if self._registry is not None and data[:1] in (b"\0", b"\1"):
            try:
                return await self._by_schema(self._registry, data, headers, key)
            except (SerializationError, KafkaError) as reason:
                error = str(reason)
        return plain(data, self._masking, error)

    async def _by_schema(
        self,
        registry: AsyncRegistryClient,
        data: bytes,
        headers: Sequence[tuple[str, bytes | None]],
        key: bool,
    ) -> Decoded:
        name, payload = of_record(data, list(headers), key=key)
        kind, codec = await self._codec(registry, name)
        if kind == "PROTOBUF":
            from google.protobuf.json_format import MessageToDict

            named, payload = of_record(data, list(headers), key=key, with_indexes=True)
            message = codec.decode(payload, named.indexes)
            tree = MessageToDict(message, preserving_proto_field_name=True)
        elif kind == "AVRO":
            tree = codec.decode(payload)
        else:
            tree = codec.decode(payload, validate=False)
        tree = self._masking.applied(_plain_tree(tree))
        return Decoded(kind.lower(), _json(tree), tree, name.id)

    async def _codec(self, registry: AsyncRegistryClient, name: SchemaName) -> tuple[str, Any]:
        name = name._replace(indexes=())
        if name not in self._codecs:
            if name.id is not None:
                schema = await registry.schema_by_id(name.id)
            else:
                schema = await registry.schema_by_guid(str(name.guid))
            references = await registry.referenced_texts(schema)
            codec = await asyncio.to_thread(_new_codec, schema.schema_type, schema.text, references)
            self._codecs[name] = (schema.schema_type, codec)
            while len(self._codecs) > _MOST_CODECS:
                self._codecs.popitem(last=False)
        self._codecs.move_to_end(name)
        found: tuple[str, Any] = self._codecs[name]
        return found


def plain(data: bytes, masking: Masking, error: str | None = None) -> Decoded:
    """Decode without a schema."""
    text = readable(data)
    if text is None:
        if masking.hides_all:
            return Decoded("bytes", MASK, error=error)
        return Decoded("bytes", data.hex(" "), error=error)
    stripped = text.strip()
    if stripped[:1] in ("{", "[") and len(text) <= _MOST_JSON:
        try:
            tree = json.loads(stripped)
        except (ValueError, RecursionError):
            pass
        else:
            if masking:
                tree = masking.applied(tree)
                text = _json(tree)
            return Decoded("json", text, tree, error=error)
    return Decoded("text", MASK if masking.hides_all else text, error=error)


def readable(data: bytes) -> str | None:
    """Return bytes as text; None if they are not UTF-8, or contain control characters."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if text.isprintable():
        return text
    if any(unicodedata.category(each) in ("Cc", "Cs") and each not in _PRINTABLE for each in text):
        return None
    return text


def hex_dump(data: bytes) -> str:
    """Return offset, bytes and printable characters, 16 bytes in a line."""
    lines = []
    for begin in range(0, len(data), _BYTES_PER_LINE):
        part = data[begin : begin + _BYTES_PER_LINE]
        shown = "".join(chr(each) if 0x20 <= each < 0x7F else "." for each in part)
        lines.append(f"{begin:08x}  {part.hex(' '):<47}  {shown}")
    return "\n".join(lines)


def header_text(value: bytes | None) -> str | None:
    if value is None:
        return None
    text = readable(value)
    return value.hex(" ") if text is None else text


def _new_codec(kind: str, text: str, references: dict[str, str]) -> Any:
    if kind == "PROTOBUF":
        from moldau.client.registry.codecs.protobuf import ProtobufCodec

        return ProtobufCodec(text, references)
    if kind == "AVRO":
        from moldau.client.registry.codecs.avro import AvroCodec

        return AvroCodec(text, references)
    from moldau.client.registry.codecs.json_schema import JsonSchemaCodec

    return JsonSchemaCodec(text, references)


def _plain_tree(value: Any) -> Any:
    """Return a value with types of JSON only: bytes as hex, dates and decimals as text."""
    if isinstance(value, dict):
        return {str(name): _plain_tree(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_tree(each) for each in value]
    if isinstance(value, bytes):
        return value.hex(" ")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _json(tree: Any) -> str:
    return json.dumps(tree, ensure_ascii=False, separators=(", ", ": "))
