"""Keys, values and headers as text: by their schema in the registry, as JSON, as text, or as bytes in hex.

Whatever a record contains, the result is plain text of bounded depth that UTF-8 can represent; only templates
turn it into HTML. In a topic with masked fields, what cannot be taken apart into fields is hidden.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from moldau.base.errors import KafkaError
from moldau.client.registry import AsyncRegistryClient
from moldau.client.registry.serdes.framing import SchemaName, header_name, of_record
from moldau.client.registry.types import RegistryError
from moldau.client.serdes import SerializationError
from moldau.console.records.masking import MASK, FieldRules, Masking

_NULL: Final = "null"
HIDDEN: Final = "hidden"
_MAX_CODECS: Final = 500
_FAILED_S: Final = 10.0
_BYTES_PER_LINE: Final = 16
_PRINTABLE: Final = "\t\n\r"
_MAX_JSON: Final = 1 << 20
#: JSON that is nested more deeply is shown as text.
_MAX_DEPTH: Final = 200
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
#: A key that has no fields, such as a number, a name or a UUID.
_IDENTIFIER: Final = re.compile(r"[\w.\-/@ ]{0,256}")
_CUT: Final = "Only the beginning of large values is read here; open the record to decode it."

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Decoded:
    """`format` is one of null, text, json, avro, protobuf, bytes, hidden.

    `tree` is the value of a structured one, `hidden` the reason why nothing is shown.
    """

    format: str
    text: str
    tree: Any = None
    schema_id: int | None = None
    error: str | None = None
    hidden: str | None = None

    @property
    def value(self) -> Any:
        """The value for expressions and JSON: the tree of a structured one, else the text."""
        if self.format == _NULL:
            return None
        return self.text if self.tree is None else self.tree


class Codecs:
    """The codecs of schemas in the registry, the most recently used ones.

    A failure is remembered for some seconds: a page has many records, and must not wait for each of them.
    """

    def __init__(self, registry: AsyncRegistryClient) -> None:
        self._registry = registry
        self._codecs: OrderedDict[SchemaName, tuple[str, Any, int | None]] = OrderedDict()
        #: Errors and until when they count; that of None is of all schemas.
        self._failures: OrderedDict[SchemaName | None, tuple[Exception, float]] = OrderedDict()

    async def get(self, name: SchemaName) -> tuple[str, Any, int | None]:
        """Return type, codec and id of a schema."""
        name = name._replace(indexes=())
        if name not in self._codecs:
            for each in (None, name):
                error, until = self._failures.get(each, (None, 0.0))
                if error is not None and time.monotonic() < until:
                    raise error.with_traceback(None)
            try:
                self._codecs[name] = await self._new(name)
            except (KafkaError, SerializationError) as error:
                unreachable = isinstance(error, RegistryError) and not error.status
                self._failures[None if unreachable else name] = (error, time.monotonic() + _FAILED_S)
                raise
            finally:
                for kept in (self._codecs, self._failures):
                    while len(kept) > _MAX_CODECS:
                        kept.popitem(last=False)
        self._codecs.move_to_end(name)
        return self._codecs[name]

    async def _new(self, name: SchemaName) -> tuple[str, Any, int | None]:
        if name.id is not None:
            schema = await self._registry.schema_by_id(name.id)
        else:
            schema = await self._registry.schema_by_guid(str(name.guid))
        references = await self._registry.referenced_texts(schema)
        codec = await asyncio.to_thread(new_codec, schema.schema_type, schema.text, references)
        return schema.schema_type, codec, name.id


class Decoder:
    """Decodes the records of all topics."""

    def __init__(self, registry: AsyncRegistryClient | None, masking: Masking) -> None:
        self._masking = masking
        self.codecs = None if registry is None else Codecs(registry)
        self._topics = lru_cache(maxsize=1000)(self._of)

    def of(self, topic: str) -> TopicDecoder:
        return self._topics(topic)

    def _of(self, topic: str) -> TopicDecoder:
        return TopicDecoder(self.codecs, self._masking.of(topic))


class TopicDecoder:
    """Decodes the records of a topic, and masks its fields."""

    def __init__(self, codecs: Codecs | None, rules: FieldRules) -> None:
        self.codecs = codecs
        self.rules = rules

    @property
    def plain(self) -> bool:
        """Whether text in a value is visible in its bytes."""
        return self.codecs is None

    def decode_plain(self, data: bytes | None, *, key: bool = False, complete: bool = True) -> Decoded:
        """Decode without a schema."""
        return plain(data, self.rules, key=key, complete=complete)

    async def decode(
        self, data: bytes | None, headers: Headers = (), *, key: bool = False, complete: bool = True
    ) -> Decoded:
        """Decode a key or a value; one that is not `complete` is only the beginning."""
        error = None
        if data is not None and self.codecs is not None and is_framed(data, headers, key=key):
            if complete:
                try:
                    return await self._by_schema(self.codecs, data, headers, key)
                except (SerializationError, KafkaError, RecursionError) as reason:
                    error = str(reason)
            else:
                error = _CUT
        return plain(data, self.rules, error, key=key, complete=complete)

    def header(self, name: str, value: bytes | None) -> str | None:
        """Return the value of a header as text; masked by its name, and like a value by its fields."""
        if value is None:
            return None
        if self.rules:
            return MASK if self.rules.hides(name) else plain(value, self.rules, key=True).text
        return header_text(value)

    async def _by_schema(self, known: Codecs, data: bytes, headers: Headers, key: bool) -> Decoded:
        name, payload = of_record(data, list(headers), key=key)
        kind, codec, id = await known.get(name)
        if kind == "PROTOBUF":
            named, payload = of_record(data, list(headers), key=key, with_indexes=True)
            tree = protobuf_tree(codec.decode(payload, named.indexes))
        elif kind == "AVRO":
            tree = codec.decode(payload)
        else:
            tree = codec.decode(payload, validate=False)
        if _too_deep(tree):
            raise SerializationError(f"nested more than {_MAX_DEPTH} levels deep")
        tree = _encodable(self.rules.applied(_plain_tree(tree)))
        return Decoded(kind.lower(), _json(tree), tree, id)


def is_framed(data: bytes, headers: Headers, *, key: bool) -> bool:
    """Return whether a record may name a schema of the registry."""
    return data[:1] in (b"\0", b"\1") or any(name == header_name(key) for name, _ in headers)


def plain(
    data: bytes | None,
    rules: FieldRules,
    error: str | None = None,
    *,
    key: bool = False,
    complete: bool = True,
) -> Decoded:
    """Decode without a schema."""
    if data is None:
        return Decoded(_NULL, "")
    text = readable(data, complete=complete)
    if rules:
        return _masked(text, rules, error, key=key, complete=complete)
    if text is None:
        return Decoded("bytes", data.hex(" "), error=error)
    stripped = text.strip()
    if complete and stripped[:1] in ("{", "["):
        try:
            tree = _parsed(stripped)
        except ValueError:
            pass
        else:
            return Decoded("json", text, tree, error=error)
    return Decoded("text", text, error=error)


def _masked(text: str | None, rules: FieldRules, error: str | None, *, key: bool, complete: bool) -> Decoded:
    """Decode for a topic with masked fields: only what has been taken apart into fields is shown."""
    if not complete:
        return _hidden("It is too large to be masked here; open the record to see its other fields.")
    if error is not None:
        return _hidden("It could not be decoded by its schema, so that masked fields cannot be found.")
    if text is None:
        return _hidden("It consists of bytes without a known schema, so that masked fields cannot be found.")
    if key and not rules.hides_all and _IDENTIFIER.fullmatch(text):
        return Decoded("text", text)
    try:
        tree = _parsed(text)
    except ValueError:
        return _hidden("It is not JSON, so that masked fields cannot be found.")
    if not isinstance(tree, dict | list):
        return _hidden("All text is masked.") if rules.hides_all else Decoded("text", text)
    tree = rules.applied(tree)
    return Decoded("json", _json(tree), tree)


def _hidden(reason: str) -> Decoded:
    return Decoded(HIDDEN, MASK, hidden=f"The topic has masked fields. {reason}")


def _parsed(text: str) -> Any:
    """Return the value of JSON; `ValueError` if it is none, too long or nested too deeply."""
    if len(text) > _MAX_JSON:
        raise ValueError("too long")
    try:
        tree = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    # Searches parse every record; most are too short for what the exact tests look for.
    if len(text) > 2 * _MAX_DEPTH and text.count("{") + text.count("[") > _MAX_DEPTH and _too_deep(tree):
        raise ValueError("nested too deeply")
    # JSON can name surrogates that UTF-8 cannot represent.
    return _encodable(tree) if "\\u" in text and _SURROGATE.search(text) else tree


def _too_deep(tree: Any) -> bool:
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH:
            return True
        level = [
            each
            for value in level
            if isinstance(value, dict | list | tuple)
            for each in (value.values() if isinstance(value, dict) else value)
        ]
    return False


def _encodable(tree: Any) -> Any:
    """Return a value in which surrogates without a partner are escape sequences."""
    if isinstance(tree, str):
        return tree if tree.isascii() else tree.encode("utf-8", "backslashreplace").decode()
    if isinstance(tree, dict):
        return {_encodable(name): _encodable(each) for name, each in tree.items()}
    if isinstance(tree, list):
        return [_encodable(each) for each in tree]
    return tree


def readable(data: bytes, *, complete: bool = True) -> str | None:
    """Return bytes as text; None if they are not UTF-8, or contain control characters.

    Bytes that are not complete may end inside a character.
    """
    try:
        text = codecs.utf_8_decode(data, "strict", complete)[0]
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


def new_codec(kind: str, text: str, references: dict[str, str]) -> Any:
    if kind == "PROTOBUF":
        from moldau.client.registry.codecs.protobuf import ProtobufCodec

        return ProtobufCodec(text, references)
    if kind == "AVRO":
        from moldau.client.registry.codecs.avro import AvroCodec

        return AvroCodec(text, references)
    from moldau.client.registry.codecs.json_schema import JsonSchemaCodec

    return JsonSchemaCodec(text, references)


def protobuf_tree(message: Any) -> Any:
    """Return a message as JSON's types, with the field names of its schema."""
    from google.protobuf.json_format import Error, MessageToDict

    try:
        return MessageToDict(message, preserving_proto_field_name=True)
    except (Error, TypeError, ValueError) as error:
        # A message inside of `google.protobuf.Any`, whose type is not known, or a time out of range.
        raise SerializationError(f"no JSON for this Protobuf message: {error}") from None


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
