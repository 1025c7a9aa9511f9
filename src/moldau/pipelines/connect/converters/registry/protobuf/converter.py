"""Confluent's ProtobufConverter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from moldau.client.registry.codecs.protobuf import ProtobufCodec, encoded
from moldau.client.registry.rules.walks import MetadataTags, ProtobufWalk
from moldau.client.registry.types import Schema as RegistrySchema
from moldau.pipelines.connect.config.definition import ConfigDef
from moldau.pipelines.connect.converters.interface import Converter, RawHeaders
from moldau.pipelines.connect.converters.registry import settings as shared
from moldau.pipelines.connect.converters.registry.access import RegistryAccess, converting
from moldau.pipelines.connect.converters.registry.protobuf.options import Options
from moldau.pipelines.connect.converters.registry.protobuf.reading import connect_schema
from moldau.pipelines.connect.converters.registry.protobuf.values import fill, value_of
from moldau.pipelines.connect.converters.registry.protobuf.writing import schema_text
from moldau.pipelines.connect.converters.registry.settings import boolean
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.headers import NULL, SchemaAndValue
from moldau.pipelines.connect.data.schema import Schema
from moldau.pipelines.connect.data.struct import validate_value
from moldau.schemas.protobuf import builtin
from moldau.schemas.protobuf.printer import print_file
from moldau.schemas.schema import Reference

#: Text, references, path of the message type, version.
_ReadingKey = tuple[str, tuple[Reference, ...], tuple[int, ...], int | None]

#: Setting → name, default and documentation of the mapping's options.
_OPTIONS: Final = (
    ("enhanced.protobuf.schema.support", "enhanced", False, "Use full names of messages and enums."),
    (shared.SCRUB, "scrub", False, "Replace characters in names that Protobuf does not allow."),
    ("int.for.enums", "int_for_enums", False, "Read enums as numbers."),
    ("optional.for.nullables", "optional_for_nullables", False, "Write optional fields as optional."),
    ("optional.for.proto2", "optional_for_proto2", True, "Read optional fields of proto2 as optional."),
    ("wrapper.for.nullables", "wrapper_for_nullables", False, "Write optional primitives as wrappers."),
    ("wrapper.for.raw.primitives", "wrapper_for_raw_primitives", True, "Read a wrapper as its value."),
    ("generate.struct.for.nulls", "struct_for_nulls", False, "Read absent messages as empty structs."),
    ("generate.index.for.unions", "index_for_unions", True, "Add the number to the names of unions."),
    ("flatten.unions", "flatten_unions", False, "Read the members of a union as fields of their own."),
)


class _Writing(NamedTuple):
    schema: RegistrySchema
    message: str


class ProtobufConverter(Converter):
    config: ClassVar[ConfigDef] = shared.registry_config(
        *(boolean(name, default, text) for name, _, default, text in _OPTIONS)
    )

    def configure(self, config: Mapping[str, Any], is_key: bool = False) -> None:
        settings = shared.parsed(self.config, config, is_key)
        size: int = settings[shared.CACHE_SIZE]
        self._access = RegistryAccess({**config, **shared.given(settings)}, is_key, _codec, size)
        self._options = Options(
            **{option: settings[name] for name, option, _, _ in _OPTIONS},
            ignore_defaults=settings[shared.IGNORE_DEFAULT],
        )
        self._writing: SchemaCache[Schema, _Writing] = SchemaCache(self._new_writing, size)
        self._reading: SchemaCache[_ReadingKey, Schema] = SchemaCache(self._new_reading, size)

    def from_connect(
        self, topic: str, headers: RawHeaders, schema: Schema | None, value: Any
    ) -> bytes | None:
        if value is None:
            return None
        if schema is None:
            raise DataError("ProtobufConverter needs values with a schema.")
        validate_value(schema, value)
        plan = self._writing(schema)
        with converting("serialize Protobuf", topic):
            target = self._access.target(topic, plan.message, plan.schema)
            codec = self._access.codecs.of(target.schema)
            indexes = codec.indexes_by_name(plan.message)
            message = codec.message_class(indexes)()
            fill(message, schema, value, self._options)
            message = self._access.apply_write_rules(
                topic, target, message, lambda: ProtobufWalk(MetadataTags(target.schema))
            )
            return self._access.framed(target, encoded(message), headers, indexes)

    def to_connect(self, topic: str, headers: RawHeaders, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return NULL
        with converting("deserialize Protobuf", topic):
            found = self._access.written(topic, headers, data, self._name, with_indexes=True)
            written, reader = found.schema, found.reader
            indexes = found.indexes
            if reader is not written:
                name = self._access.codecs.of(written).descriptor(indexes).full_name
                indexes = self._access.codecs.of(reader).indexes_by_name(name)
            schema = self._reading((reader.text, reader.references, indexes, found.version))
            message: Any = self._access.codecs.of(reader).decode(found.data, indexes)
            message = self._access.apply_read_rules(
                topic, reader, message, lambda: ProtobufWalk(MetadataTags(reader))
            )
        return SchemaAndValue(schema, value_of(message, schema, self._options))

    def close(self) -> None:
        self._access.close()

    def _name(self, schema: RegistrySchema) -> str | None:
        return self._access.codecs.of(schema).name

    def _new_writing(self, schema: Schema) -> _Writing:
        text, message = schema_text(schema, self._options)
        return _Writing(RegistrySchema(text, "PROTOBUF"), message)

    def _new_reading(self, key: _ReadingKey) -> Schema:
        text, references, indexes, version = key
        codec = self._access.codecs.of(RegistrySchema(text, "PROTOBUF", references))
        return connect_schema(codec.descriptor(indexes), self._options, version)


def _codec(text: str, references: Mapping[str, str]) -> ProtobufCodec:
    """Return a codec that also knows the files of `google/type` and `confluent`."""
    known = {path: print_file(builtin.file(path)) for path in _imported(text, references)}
    return ProtobufCodec(text, {**known, **references})


def _imported(text: str, references: Mapping[str, str]) -> list[str]:
    """Return the built-in files that the texts name, except those that the codec knows."""
    texts = [text, *references.values()]
    paths = [each for each in sorted(builtin.PATHS) if not each.startswith("google/protobuf/")]
    return [path for path in paths if path not in references and any(path in each for each in texts)]
