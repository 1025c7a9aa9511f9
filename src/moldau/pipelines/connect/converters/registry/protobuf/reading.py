"""Connect schemas of Protobuf messages, as Confluent's converter makes them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2
from google.protobuf.message_factory import GetMessageClass

from moldau.pipelines.connect.converters.registry.names import parameters_of
from moldau.pipelines.connect.converters.registry.protobuf import options as names
from moldau.pipelines.connect.converters.registry.protobuf.options import Options
from moldau.pipelines.connect.converters.registry.protobuf.shapes import is_map, shape, union_field
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import Schema, Type, array, map_of, struct
from moldau.schemas.protobuf.descriptor_classes import meta_extension, pool

_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_INT32: Final = {_FIELD.TYPE_INT32: "int32", _FIELD.TYPE_SINT32: "sint32", _FIELD.TYPE_SFIXED32: "sfixed32"}
_INT64: Final = {
    _FIELD.TYPE_INT64: "int64",
    _FIELD.TYPE_UINT32: "uint32",
    _FIELD.TYPE_FIXED32: "fixed32",
    _FIELD.TYPE_UINT64: "uint64",
    _FIELD.TYPE_SINT64: "sint64",
    _FIELD.TYPE_FIXED64: "fixed64",
    _FIELD.TYPE_SFIXED64: "sfixed64",
}
_OTHERS: Final = {
    _FIELD.TYPE_FLOAT: Type.FLOAT32,
    _FIELD.TYPE_DOUBLE: Type.FLOAT64,
    _FIELD.TYPE_BOOL: Type.BOOLEAN,
    _FIELD.TYPE_STRING: Type.STRING,
    _FIELD.TYPE_BYTES: Type.BYTES,
}
_SMALL: Final = {"int8": Type.INT8, "int16": Type.INT16}
_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


def connect_schema(descriptor: Any, options: Options, version: int | None = None) -> Schema:
    """Return the schema of a message type."""
    found = _Reader(options).message(descriptor)
    return found if version is None else found.replace(version=version)


class _Reader:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._open: set[str] = set()

    def message(self, descriptor: Any) -> Schema:
        if self._options.wrapper_for_raw_primitives and descriptor.full_name in names.WRAPPED:
            return Schema(names.WRAPPED[descriptor.full_name])
        return self._struct(descriptor)

    def _struct(self, descriptor: Any) -> Schema:
        full: str = descriptor.full_name
        if full in self._open:
            raise DataError(f"The message {full} contains itself: recursive schemas cannot be converted.")
        self._open.add(full)
        fields: list[tuple[str, Schema]] = []
        parts = shape(descriptor)
        for oneof in parts.unions:
            members = [(each.name, self._field(each, member=True)) for each in oneof.fields]
            if self._options.flatten_unions:
                fields += members
            else:
                name = f"{names.UNION_PREFIX}{oneof.full_name if self._options.enhanced else oneof.name}"
                fields.append((union_field(oneof, self._options), struct(members, name=name, optional=True)))
        fields += [(each.name, self._field(each)) for each in parts.fields]
        self._open.discard(full)
        return struct(fields, name=full if self._options.enhanced else descriptor.name)

    def _field(self, field: Any, *, member: bool = False) -> Schema:
        found = self._of_type(field)
        if field.is_repeated and not (found.type is Type.MAP and is_map(field)):
            found = array(found.replace(optional=True), optional=True)
        parameters = dict(parameters_of(found))
        options = self._options
        if member:
            found = found.replace(optional=True)
            wrapped = field.message_type is not None and field.message_type.full_name in names.WRAPPED
            if options.wrapper_for_nullables and wrapped:
                parameters[names.WRAPPER] = "true"
        elif options.optional_for_nullables:
            found = found.replace(optional=found.optional or _is_optional(field, options))
        elif not options.wrapper_for_nullables:
            found = found.replace(optional=True)
        parameters[names.TAG] = str(field.number)
        return found.replace(parameters=parameters)

    def _of_type(self, field: Any) -> Schema:
        kind = field.type
        if kind in _INT32:
            small = _SMALL.get(_parameters(field).get(names.CONNECT_TYPE, ""))
            if small is not None:
                return Schema(small)
            return _numeric(Type.INT32, _INT32[kind], "int32")
        if kind in _INT64:
            return _numeric(Type.INT64, _INT64[kind], "int64")
        if kind in _OTHERS:
            return Schema(_OTHERS[kind])
        if kind == _FIELD.TYPE_ENUM:
            return self._enum(field.enum_type)
        if field.message_type is None:
            raise DataError(f"The Protobuf type of the field {field.full_name} cannot be converted.")
        return self._of_message(field).replace(optional=True)

    def _enum(self, descriptor: Any) -> Schema:
        parameters = {names.ENUM: descriptor.name}
        parameters |= {f"{names.ENUM}.{each.name}": str(each.number) for each in descriptor.values}
        return Schema(
            Type.INT32 if self._options.int_for_enums else Type.STRING,
            name=descriptor.full_name if self._options.enhanced else descriptor.name,
            parameters=parameters,
            optional=True,
        )

    def _of_message(self, field: Any) -> Schema:
        descriptor = field.message_type
        full: str = descriptor.full_name
        if full in names.LOGICAL_BY_MESSAGE:
            return _logical(names.LOGICAL_BY_MESSAGE[full], field)
        if self._options.wrapper_for_nullables and full in names.WRAPPED:
            return Schema(names.WRAPPED[full])
        if is_map(field):
            key, value = descriptor.fields
            name = full if self._options.enhanced else descriptor.name
            return map_of(self._field(key), self._field(value), name=_map_name(name))
        return self._struct(descriptor)


def _is_optional(field: Any, options: Options) -> bool:
    return shape(field.containing_type).is_optional(field, options)


def _numeric(kind: Type, declared: str, default: str) -> Schema:
    return Schema(kind) if declared == default else Schema(kind, parameters={names.PROTOBUF_TYPE: declared})


def _logical(name: str | None, field: Any) -> Schema:
    if name == logical.DATE_NAME:
        return logical.DATE
    if name == logical.TIME_NAME:
        return logical.TIME
    if name == logical.TIMESTAMP_NAME:
        return logical.TIMESTAMP
    parameters = _parameters(field)
    scale, precision = parameters.get("scale", "0"), parameters.get("precision")
    found = logical.decimal_schema(int(scale) if scale.lstrip("-").isdigit() else 0)
    if precision is None or not precision.isdigit():
        return found
    return found.replace(parameters={**parameters_of(found), names.PRECISION: precision})


def _map_name(name: str) -> str:
    """Return the name of the field that a compiler named the entries after."""
    space, dot, short = name.removesuffix(names.ENTRY).rpartition(".")
    return f"{space}{dot}{_CAPITAL.sub('_', short).lower()}"


@cache
def _options_class() -> Any:
    return GetMessageClass(pool().FindMessageTypeByName("google.protobuf.FieldOptions"))


def _parameters(field: Any) -> dict[str, str]:
    """Return the parameters of the option `confluent.field_meta`."""
    data = field.GetOptions().SerializeToString()
    if not data:
        return {}
    found = _options_class().FromString(data).Extensions[meta_extension("confluent.field_meta")]
    return {each.key: each.value for each in found.params}
