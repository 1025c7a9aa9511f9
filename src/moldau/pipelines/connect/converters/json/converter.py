"""Kafka's JsonConverter: JSON values, in an envelope with their schema unless `schemas.enable` is false."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import (
    ConfigDef,
    ConfigType,
    Importance,
    ValidString,
    Width,
)
from moldau.pipelines.connect.converters.interface import (
    Converter,
    RawHeaders,
    converter_config,
    converter_type,
)
from moldau.pipelines.connect.converters.json.reading import (
    Reader,
    compiled_reader,
    has_decimals,
    parse_json,
    parse_text,
    read_schemaless,
)
from moldau.pipelines.connect.converters.json.schemas import read_schema, schema_text
from moldau.pipelines.connect.converters.json.writing import JsonWriters, Writer, write_schemaless
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.errors import DataError, SerializationError
from moldau.pipelines.connect.data.headers import NULL, SchemaAndValue
from moldau.pipelines.connect.data.schema import Schema

_NO_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields'
    " and may not contain additional fields. If you are trying to deserialize plain JSON data,"
    " set schemas.enable=false in your converter configuration."
)

#: Where the schema of an envelope begins, and what is between it and the payload.
_OPENING = re.compile(r'\s*\{\s*"schema"\s*:')
_SEPARATOR = re.compile(r'\s*,\s*"payload"\s*:')


def _definition() -> ConfigDef:
    return (
        converter_config()
        .define(
            "schemas.enable",
            ConfigType.BOOLEAN,
            True,
            Importance.HIGH,
            "Write every value in an envelope with its schema, and expect such envelopes.",
            group="Schemas",
            order_in_group=0,
            width=Width.MEDIUM,
            display_name="Enable Schemas",
        )
        .define(
            "schemas.cache.size",
            ConfigType.INT,
            1000,
            Importance.HIGH,
            "The number of schemas kept in memory.",
            group="Schemas",
            order_in_group=1,
            width=Width.MEDIUM,
            display_name="Schema Cache Size",
        )
        .define(
            "schema.content",
            ConfigType.STRING,
            None,
            Importance.HIGH,
            "The schema of all values that are read, as JSON; they are then expected without envelope. "
            "Needs schemas.enable=true; has no effect on values that are written (KIP-1054).",
            group="Schemas",
            order_in_group=2,
            width=Width.MEDIUM,
            display_name="Schema Content",
        )
        .define(
            "decimal.format",
            ConfigType.STRING,
            "BASE64",
            Importance.LOW,
            "How decimals are written: BASE64 (their bytes) or NUMERIC (a JSON number).",
            validator=ValidString(("NUMERIC", "BASE64"), ignore_case=True),
            group="Serialization",
            order_in_group=0,
            width=Width.MEDIUM,
            display_name="Decimal Format",
        )
        .define(
            "replace.null.with.default",
            ConfigType.BOOLEAN,
            True,
            Importance.LOW,
            "Use the default value of a field in place of null.",
            group="Serialization",
            order_in_group=1,
            width=Width.MEDIUM,
            display_name="Replace null with default",
        )
    )


class JsonConverter(Converter):
    config: ClassVar[ConfigDef] = _definition()

    def configure(self, config: Mapping[str, Any], is_key: bool = False) -> None:
        settings = self.config.parse(converter_type(config, is_key))
        self._enveloped: bool = settings["schemas.enable"]
        self._replace: bool = settings["replace.null.with.default"]
        writers = JsonWriters(
            numeric_decimals=settings["decimal.format"].upper() == "NUMERIC",
            replace_null_with_default=self._replace,
        )
        size: int = settings["schemas.cache.size"]
        self._writers: SchemaCache[Schema, Writer] = SchemaCache(writers.compiled, size)
        self._prefixes: SchemaCache[Schema | None, str] = SchemaCache(
            lambda schema: f'{{"schema":{schema_text(schema, writers)},"payload":', size
        )
        self._schemas: SchemaCache[str, _ReadSchema] = SchemaCache(self._read_schema, size)
        self._latest = _ReadSchema("", None, read_schemaless, False)
        self._fixed = self._fixed_schema(settings["schema.content"])

    def _fixed_schema(self, content: str | None) -> _ReadSchema | None:
        if not content or not self._enveloped:
            return None
        try:
            node = parse_json(content.encode(), exact=True)
        except SerializationError as error:
            raise DataError(
                "Failed to parse schema in converter config due to serialization error: "
            ) from error
        return self._compiled(node)

    def _read_schema(self, text: str) -> _ReadSchema:
        return self._compiled(json.loads(text))

    def _compiled(self, node: Any) -> _ReadSchema:
        schema = read_schema(node, self._replace)
        reader = read_schemaless if schema is None else compiled_reader(schema, self._replace)
        return _ReadSchema("", schema, reader, has_decimals(schema))

    def from_connect(
        self, topic: str, headers: RawHeaders, schema: Schema | None, value: Any
    ) -> bytes | None:
        if schema is None:
            if value is None:
                return None
            payload = write_schemaless(value)
        else:
            payload = self._writers(schema)(value)
        text = f"{self._prefixes(schema)}{payload}}}" if self._enveloped else payload
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                "Converting Kafka Connect data to byte[] failed due to serialization error: "
            ) from error

    def to_connect(self, topic: str, headers: RawHeaders, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return NULL
        try:
            return self._parsed(data)
        except SerializationError as error:
            raise DataError(
                "Converting byte[] to Kafka Connect data failed due to serialization error: "
            ) from error

    def _parsed(self, data: bytes) -> SchemaAndValue:
        if not self._enveloped:
            return SchemaAndValue(None, read_schemaless(parse_json(data)))
        if self._fixed is not None:
            return self._fixed.value_of(parse_json(data, exact=self._fixed.exact))
        return self._with_known_prefix(data) or self._of_envelope(data)

    def _with_known_prefix(self, data: bytes) -> SchemaAndValue | None:
        """Records of one topic repeat their schema literally: then only the payload is parsed."""
        known = self._latest
        if not known.prefix or not data.startswith(known.prefix.encode()):
            return None
        try:
            text = data.decode()
            payload, end = parse_text(text, len(known.prefix), exact=known.exact)
        except (ValueError, RecursionError):
            return None
        return known.value_of(payload) if text[end:].strip() == "}" else None

    def _of_envelope(self, data: bytes) -> SchemaAndValue:
        envelope = parse_json(data)
        if not isinstance(envelope, dict) or envelope.keys() != {"schema", "payload"}:
            raise DataError(_NO_ENVELOPE)
        found = self._schemas(json.dumps(envelope["schema"]))
        if found.exact:
            # The defaults of Decimal fields need their digits, too.
            envelope = parse_json(data, exact=True)
            found = self._compiled(envelope["schema"])
        self._latest = found.with_prefix(_prefix_of(data))
        return found.value_of(envelope["payload"])


class _ReadSchema:
    """A schema that was read, with the text before the payload of its envelope."""

    __slots__ = ("exact", "prefix", "reader", "schema")

    def __init__(self, prefix: str, schema: Schema | None, reader: Reader, exact: bool) -> None:
        self.prefix = prefix
        self.schema = schema
        self.reader = reader
        self.exact = exact

    def value_of(self, node: Any) -> SchemaAndValue:
        return SchemaAndValue(self.schema, self.reader(node))

    def with_prefix(self, prefix: str) -> _ReadSchema:
        return _ReadSchema(prefix, self.schema, self.reader, self.exact)


def _prefix_of(data: bytes) -> str:
    """Return the text of an envelope up to its payload, or nothing if its members are not in that order."""
    try:
        text = data.decode()
        if opening := _OPENING.match(text):
            _, end = parse_text(text, opening.end())
            if separator := _SEPARATOR.match(text, end):
                return text[: separator.end()]
    except (ValueError, RecursionError):
        pass
    return ""
