"""Avro schemas of Connect schemas, with the text that Confluent's converter registers.

A schema is written in one pass: a named type in full where it first occurs, by its name afterwards. The
order of the properties is that of Java's Avro, so both converters register one version, not two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from moldau.pipelines.connect.converters.registry.avro import options as names
from moldau.pipelines.connect.converters.registry.avro.options import AVRO_TYPES, Options
from moldau.pipelines.connect.converters.registry.names import parameters_of, scrubbed, split
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import Schema, Type, struct
from moldau.pipelines.connect.data.struct import Struct

_LOGICAL: Final[Mapping[str, str]] = {
    logical.DATE_NAME: "date",
    logical.TIME_NAME: "time-millis",
    logical.TIMESTAMP_NAME: "timestamp-millis",
}
_CONNECT_TYPES: Final = {Type.INT8: "int8", Type.INT16: "int16"}
_NO_DEFAULT: Final = object()


def schema_text(schema: Schema | None, options: Options) -> str:
    """Return the text of the Avro schema; values without schema have that of any value."""
    node = names.ANYTHING_SCHEMA if schema is None else _Writer(options).node(schema, None)
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False)


class _Writer:
    def __init__(self, options: Options) -> None:
        self._options = options
        #: Named types that are written: full name → schema.
        self._written: dict[str, Schema] = {}
        self._unnamed: dict[Schema, str] = {}

    def node(self, schema: Schema, space: str | None) -> Any:
        """Return the Avro schema inside a namespace."""
        if names.is_union(schema):
            members = [self._member(each.schema, space) for each in schema.fields]
            return ["null", *members] if schema.optional else members
        base = self._base(schema.replace(optional=False) if schema.optional else schema, space)
        if not schema.optional:
            return base
        has_default = schema.default is not None and schema.type is not Type.STRUCT
        return [base, "null"] if has_default else ["null", base]

    def _member(self, schema: Schema, space: str | None) -> Any:
        return self._base(schema.replace(optional=False), space)

    def _base(self, schema: Schema, space: str | None) -> Any:
        if schema.type is Type.STRUCT:
            return self._record(schema, space)
        if self._options.is_enum(schema):
            return self._enum(schema, space)
        if names.is_fixed(schema):
            return self._fixed(schema, space)
        node: dict[str, Any] = {"type": AVRO_TYPES[schema.type]}
        if schema.type is Type.ARRAY:
            node["items"] = self.node(_present(schema.value_schema), space)
        elif schema.type is Type.MAP:
            node = self._map(schema, space)
        elif schema.name == logical.DECIMAL_NAME:
            node |= _decimal(schema)
        node |= self._properties(schema)
        return node if len(node) > 1 else node["type"]

    def _map(self, schema: Schema, space: str | None) -> dict[str, Any]:
        if self._options.has_text_keys(schema):
            return {"type": "map", "values": self.node(_present(schema.value_schema), space)}
        own, name = (names.NAMESPACE, names.MAP_ENTRY) if schema.name is None else self._split(schema.name)
        key, value = _present(schema.key_schema), _present(schema.value_schema)
        if self._is_written(struct({names.KEY: key, names.VALUE: value}), own, name):
            return {"type": "array", "items": _reference(own, name, space)}
        entry = self._named("record", own, name, space)
        entry["fields"] = [
            self._field(names.KEY, key, None, own),
            self._field(names.VALUE, value, None, own),
        ]
        if schema.name is not None:
            entry[names.INTERNAL_TYPE] = names.MAP_ENTRY
        return {"type": "array", "items": entry}

    def _record(self, schema: Schema, space: str | None) -> Any:
        own, name = self._name_of(schema)
        if self._is_written(schema, own, name):
            return _reference(own, name, space)
        node = self._named("record", own, name, space)
        parameters = parameters_of(schema)
        discard = self._options.discard_docs
        doc = parameters.get(names.CONNECT_RECORD_DOC if discard else names.RECORD_DOC)
        if doc is not None:
            node["doc"] = doc
        node["fields"] = [
            self._field(
                scrubbed(each.name) if self._options.scrub else each.name,
                each.schema,
                each.schema.doc if discard else parameters.get(names.FIELD_DOC + each.name),
                own,
            )
            for each in schema.fields
        ]
        return node | self._properties(schema)

    def _field(self, name: str, schema: Schema, doc: str | None, space: str | None) -> dict[str, Any]:
        node: dict[str, Any] = {"name": name, "type": self.node(schema, space)}
        if doc is not None:
            node["doc"] = doc
        default = self._field_default(schema)
        if default is not _NO_DEFAULT:
            node["default"] = default
        return node

    def _field_default(self, schema: Schema) -> Any:
        """Return the default of a field, which must be valid for the first type of a union."""
        if schema.default is None:
            return None if schema.optional else _NO_DEFAULT
        if schema.optional and schema.type is Type.STRUCT:
            return _NO_DEFAULT
        if schema.type is Type.MAP and not self._options.has_text_keys(schema):
            return _NO_DEFAULT
        return self._default(schema, schema.default)

    def _enum(self, schema: Schema, space: str | None) -> Any:
        parameters = parameters_of(schema)
        own, name = split(parameters[names.ENUM], self._options.scrub)
        if self._is_written(schema, own, name):
            return _reference(own, name, space)
        node = self._named("enum", own, name, space)
        short = split(schema.name or name, self._options.scrub)[1]
        discard = self._options.discard_docs
        doc = parameters.get(names.CONNECT_ENUM_DOC if discard else names.ENUM_DOC + short)
        if doc is not None:
            node["doc"] = doc
        start = f"{names.ENUM}."
        node["symbols"] = [each.removeprefix(start) for each in parameters if each.startswith(start)]
        default = None if discard else parameters.get(names.ENUM_DEFAULT + short)
        if default is not None:
            node["default"] = default
        return node | self._properties(schema)

    def _fixed(self, schema: Schema, space: str | None) -> Any:
        own, name = self._name_of(schema)
        if self._is_written(schema, own, name):
            return _reference(own, name, space)
        node = self._named("fixed", own, name, space)
        node["size"] = int(parameters_of(schema)[names.FIXED_SIZE])
        if schema.name == logical.DECIMAL_NAME:
            node |= _decimal(schema)
        return node | self._properties(schema)

    def _named(self, kind: str, own: str | None, name: str, space: str | None) -> dict[str, Any]:
        node: dict[str, Any] = {"type": kind, "name": name}
        if own != space:
            node["namespace"] = own or ""
        return node

    def _name_of(self, schema: Schema) -> tuple[str | None, str]:
        if schema.name is not None:
            return self._split(schema.name)
        if schema not in self._unnamed:
            count = len(self._unnamed) + 1
            self._unnamed[schema] = f"{names.DEFAULT_NAME}{count if count > 1 else ''}"
        return names.NAMESPACE, self._unnamed[schema]

    def _split(self, name: str) -> tuple[str | None, str]:
        return split(name, self._options.scrub)

    def _is_written(self, schema: Schema, own: str | None, name: str) -> bool:
        full = f"{own}.{name}" if own else name
        known = self._written.setdefault(full, schema)
        if known is schema:
            return False
        if known.replace(default=None) != schema.replace(default=None):
            raise DataError(
                f"Two different schemas have the name {full}, which Avro does not allow: give maps and "
                "structs names of their own."
            )
        return True

    def _properties(self, schema: Schema) -> dict[str, Any]:
        """Return what Connect knows beyond Avro, in the order of Confluent's converter."""
        found: dict[str, Any] = {}
        parameters = parameters_of(schema)
        if self._options.metadata:
            if schema.doc is not None:
                found[names.CONNECT_DOC] = schema.doc
            if schema.version is not None:
                found[names.CONNECT_VERSION] = schema.version
            if kept := self._kept(parameters):
                found[names.CONNECT_PARAMETERS] = kept
            if schema.default is not None and (
                self._options.discard_docs or names.FIELD_DEFAULT not in parameters
            ):
                found[names.CONNECT_DEFAULT] = self._default(schema, schema.default)
            if schema.name is not None:
                found[names.CONNECT_NAME] = schema.name
            if schema.type in _CONNECT_TYPES:
                found[names.CONNECT_TYPE] = _CONNECT_TYPES[schema.type]
        if schema.name is not None and schema.name in _LOGICAL:
            found["logicalType"] = _LOGICAL[schema.name]
        elif schema.name == logical.DECIMAL_NAME:
            found["logicalType"] = "decimal"
        return found | {name: each for name, each in parameters.items() if name.startswith("avro")}

    def _kept(self, parameters: Mapping[str, str]) -> dict[str, str]:
        return {
            name: each
            for name, each in parameters.items()
            if self._options.discard_docs or name != names.FIELD_DEFAULT
        }

    def _default(self, schema: Schema, value: Any) -> Any:
        """Return a default as JSON."""
        if value is None:
            return None
        if isinstance(value, Struct):
            fields = [(each, value.value_of(each)) for each in schema.fields]
            if names.is_union(schema):
                return next(
                    (self._default(each.schema, own) for each, own in fields if own is not None), None
                )
            return {
                scrubbed(each.name) if self._options.scrub else each.name: self._default(each.schema, own)
                for each, own in fields
            }
        if schema.type is Type.ARRAY:
            return [self._default(_present(schema.value_schema), each) for each in value]
        if schema.type is Type.MAP:
            return self._default_map(schema, value)
        encoded = raw_value(schema, value)
        return encoded.decode("latin-1") if isinstance(encoded, bytes) else encoded

    def _default_map(self, schema: Schema, value: Mapping[Any, Any]) -> Any:
        key, entry = _present(schema.key_schema), _present(schema.value_schema)
        if self._options.has_text_keys(schema):
            return {name: self._default(entry, each) for name, each in value.items()}
        return [[self._default(key, name), self._default(entry, each)] for name, each in value.items()]


def raw_value(schema: Schema, value: Any) -> Any:
    """Return the encoded value below a logical type, or the value itself."""
    if schema.name == logical.DECIMAL_NAME:
        return logical.decimal_to_bytes(schema, value)
    if schema.name == logical.DATE_NAME:
        return logical.date_to_days(schema, value)
    if schema.name == logical.TIME_NAME:
        return logical.time_to_millis(schema, value)
    if schema.name == logical.TIMESTAMP_NAME:
        return logical.timestamp_to_millis(schema, value)
    return value


def _decimal(schema: Schema) -> dict[str, Any]:
    parameters = parameters_of(schema)
    precision = int(parameters.get(names.PRECISION, names.DEFAULT_PRECISION))
    return {"scale": logical.decimal_scale(schema), "precision": precision}


def _reference(own: str | None, name: str, space: str | None) -> str:
    return name if own is None or own == space else f"{own}.{name}"


def _present(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("Arrays and maps need the schema of their elements to be written as Avro.")
    return schema
