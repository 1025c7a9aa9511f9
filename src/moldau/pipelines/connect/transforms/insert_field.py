"""InsertField: add the topic, partition, offset or timestamp of a record, or a fixed text, as fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.errors import ConfigError
from moldau.pipelines.connect.data.logical import TIMESTAMP, datetime_of
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.data.schema import INT32, INT64, STRING, Schema
from moldau.pipelines.connect.data.struct import Struct
from moldau.pipelines.connect.transforms.interface import (
    SCHEMAS_PER_TRANSFORMATION,
    Part,
    Transformation,
    with_null_replacement,
)
from moldau.pipelines.connect.transforms.requirements import (
    field_value,
    require_map,
    require_sink_record,
    require_struct,
    struct_like,
)

_PURPOSE = "field insertion"
_SUFFIX = "A name that ends with ! makes the field required; otherwise it is optional."


def _topic(record: ConnectRecord) -> Any:
    return record.topic


def _partition(record: ConnectRecord) -> Any:
    return record.partition


def _offset(record: ConnectRecord) -> Any:
    return require_sink_record(record, _PURPOSE).offset


def _timestamp(record: ConnectRecord) -> Any:
    return record.timestamp


#: Setting → what it inserts and its schema.
_SOURCES: dict[str, tuple[Callable[[ConnectRecord], Any], Schema, str]] = {
    "topic.field": (_topic, STRING, "The field for the topic."),
    "partition.field": (_partition, INT32, "The field for the partition."),
    "offset.field": (_offset, INT64, "The field for the offset; for sink connectors only."),
    "timestamp.field": (_timestamp, TIMESTAMP, "The field for the record's timestamp."),
}


def _definition() -> ConfigDef:
    definition = ConfigDef()
    for name, (_, _, text) in _SOURCES.items():
        definition.define(name, ConfigType.STRING, None, Importance.MEDIUM, f"{text} {_SUFFIX}")
    definition.define(
        "static.field", ConfigType.STRING, None, Importance.MEDIUM, f"The field for a fixed text. {_SUFFIX}"
    )
    definition.define("static.value", ConfigType.STRING, None, Importance.MEDIUM, "The fixed text.")
    return with_null_replacement(definition)


@dataclass(frozen=True, slots=True)
class _Insertion:
    name: str
    schema: Schema
    value: Callable[[ConnectRecord], Any]

    def in_struct(self, record: ConnectRecord) -> Any:
        value = self.value(record)
        return datetime_of(value) if self.schema.name == TIMESTAMP.name and value is not None else value


def _insertion(spec: str, schema: Schema, value: Callable[[ConnectRecord], Any]) -> _Insertion:
    required = spec.endswith("!")
    name = spec[:-1] if spec.endswith(("!", "?")) else spec
    return _Insertion(name, schema if required else schema.replace(optional=True), value)


class InsertField(Transformation):
    config: ClassVar[ConfigDef] = _definition()

    def __init__(self, part: Part) -> None:
        self._part = part

    def configure(self, config: Mapping[str, Any]) -> None:
        settings = self.config.parse(config)
        self._insertions = [
            _insertion(settings[name], schema, value)
            for name, (value, schema, _) in _SOURCES.items()
            if settings[name] is not None
        ]
        fixed, text = settings["static.field"], settings["static.value"]
        if fixed is not None:
            if text is None:
                raise ConfigError.invalid(
                    "static.value", None, f"No value specified for static field: {fixed}"
                )
            self._insertions.append(_insertion(fixed, STRING, lambda record: text))
        if not self._insertions:
            raise ConfigError("No field insertion configured")
        self._with_default: bool = settings["replace.null.with.default"]
        self._schemas = SchemaCache(self._updated, SCHEMAS_PER_TRANSFORMATION)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        value = self._part.value_of(record)
        if value is None:
            return record
        if self._part.schema_of(record) is None:
            return self._part.replaced(record, None, self._in_map(record, require_map(value, _PURPOSE)))
        struct = require_struct(value, _PURPOSE)
        updated = Struct(self._schemas(struct.schema))
        for field in struct.schema.fields:
            updated.put(field.name, field_value(struct, field, self._with_default))
        for insertion in self._insertions:
            if (inserted := insertion.in_struct(record)) is not None:
                updated.put(insertion.name, inserted)
        return self._part.replaced(record, updated.schema, updated)

    def _in_map(self, record: ConnectRecord, value: dict[str, Any]) -> dict[str, Any]:
        updated = dict(value)
        for insertion in self._insertions:
            if (inserted := insertion.value(record)) is not None:
                updated[insertion.name] = inserted
        return updated

    def _updated(self, schema: Schema) -> Schema:
        fields = [(field.name, field.schema) for field in schema.fields]
        return struct_like(schema, [*fields, *((one.name, one.schema) for one in self._insertions)])
