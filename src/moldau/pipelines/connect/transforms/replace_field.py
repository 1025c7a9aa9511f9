"""ReplaceField: leave out or rename fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.pipelines.connect.config.definition import ConfigDef, ConfigType, Importance, ValidList
from moldau.pipelines.connect.data.cache import SchemaCache
from moldau.pipelines.connect.data.errors import ConfigError
from moldau.pipelines.connect.data.records import ConnectRecord
from moldau.pipelines.connect.data.schema import Field, Schema
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
    require_struct,
    struct_like,
)

_PURPOSE = "field replacement"


def parse_renames(mappings: list[str]) -> dict[str, str]:
    renames = {}
    for mapping in mappings:
        old, _, new = mapping.partition(":")
        if not new or ":" in new.rstrip(":") or new != new.rstrip(":"):
            raise ConfigError.invalid("renames", mappings, f"Invalid rename mapping: {mapping}")
        renames[old] = new
    return renames


def _valid_renames(name: str, value: Any) -> None:
    parse_renames(value or [])


class ReplaceField(Transformation):
    config: ClassVar[ConfigDef] = with_null_replacement(
        ConfigDef()
        .define(
            "exclude",
            ConfigType.LIST,
            [],
            Importance.MEDIUM,
            "The fields to leave out; wins over include.",
            validator=ValidList(),
        )
        .define(
            "include",
            ConfigType.LIST,
            [],
            Importance.MEDIUM,
            "The only fields to keep; empty for all.",
            validator=ValidList(),
        )
        .define(
            "renames",
            ConfigType.LIST,
            [],
            Importance.MEDIUM,
            "New names of fields, as old:new,old:new.",
            validator=_valid_renames,
        )
    )

    def __init__(self, part: Part) -> None:
        self._part = part

    def configure(self, config: Mapping[str, Any]) -> None:
        settings = self.config.parse(config)
        self._exclude = frozenset[str](settings["exclude"])
        self._include = frozenset[str](settings["include"])
        self._renames = parse_renames(settings["renames"])
        self._original = {new: old for old, new in self._renames.items()}
        self._with_default: bool = settings["replace.null.with.default"]
        self._schemas = SchemaCache(self._updated, SCHEMAS_PER_TRANSFORMATION)

    def _keeps(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        value = self._part.value_of(record)
        if value is None:
            return record
        if self._part.schema_of(record) is None:
            entries = require_map(value, _PURPOSE).items()
            kept = {self._renames.get(name, name): one for name, one in entries if self._keeps(name)}
            return self._part.replaced(record, None, kept)
        struct = require_struct(value, _PURPOSE)
        updated = self._schemas(struct.schema)
        values = (
            field_value(struct, self._source(struct, field), self._with_default) for field in updated.fields
        )
        return self._part.replaced(record, updated, Struct.of(updated, values))

    def _source(self, struct: Struct, field: Field) -> Field:
        return struct.field(self._original.get(field.name, field.name))

    def _updated(self, schema: Schema) -> Schema:
        kept = (field for field in schema.fields if self._keeps(field.name))
        return struct_like(
            schema, [(self._renames.get(field.name, field.name), field.schema) for field in kept]
        )
