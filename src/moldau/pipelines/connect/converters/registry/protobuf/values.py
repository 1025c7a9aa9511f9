"""Values of Connect as Protobuf messages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from google.protobuf.message import Message

from moldau.pipelines.connect.converters.registry.names import parameters_of, scrubbed
from moldau.pipelines.connect.converters.registry.protobuf import options as names
from moldau.pipelines.connect.converters.registry.protobuf.options import Options
from moldau.pipelines.connect.converters.registry.protobuf.shapes import Shape, is_map, shape, union_field
from moldau.pipelines.connect.data import logical
from moldau.pipelines.connect.data.errors import DataError
from moldau.pipelines.connect.data.schema import Schema, Type
from moldau.pipelines.connect.data.struct import Struct

Convert = Callable[[Any], Any]

_NANOS_PER_MILLI: Final = 1_000_000
_HALF, _FULL = 1 << 31, 1 << 32
_HALF_LONG, _FULL_LONG = 1 << 63, 1 << 64
_UNSIGNED_LONG: Final = ("uint64", "fixed64")
_UNSIGNED: Final = ("uint32", "fixed32")


def fill(message: Message, schema: Schema, value: Any, options: Options) -> None:
    """Set the fields of a message to a value of its schema."""
    if schema.type is not Type.STRUCT:
        message.value = _scalar(schema, value)  # type: ignore[attr-defined]
        return
    # A struct without set fields is a message, too, not one that is absent.
    message.SetInParent()
    for each in schema.fields:
        own = value.values[each.index]
        if own is None and not options.ignore_defaults:
            own = each.schema.default
        if own is None:
            continue
        if names.is_union(each.schema):
            _fill_union(message, each.schema, own, options)
        else:
            _set(message, _name(each.name, options), each.schema, own, options)


def _fill_union(message: Message, schema: Schema, value: Struct, options: Options) -> None:
    for each in schema.fields:
        own = value.values[each.index]
        if own is not None:
            _set(message, _name(each.name, options), each.schema, own, options)
            return
    raise DataError("Cannot find non-null field")


def _name(name: str, options: Options) -> str:
    if not options.scrub:
        return name
    return f"x{scrubbed(name)}" if name.startswith("_") else scrubbed(name)


def _set(message: Message, name: str, schema: Schema, value: Any, options: Options) -> None:
    field = message.DESCRIPTOR.fields_by_name.get(name)
    if field is None:
        raise DataError(f"Cannot find field with name {name}")
    try:
        if schema.type is Type.ARRAY and schema.value_schema is not None:
            _extend(getattr(message, name), schema.value_schema, value, field, options)
        elif schema.type is Type.MAP:
            _fill_map(message, field, schema, value, options)
        elif field.message_type is not None:
            _fill_message(getattr(message, name), schema, value, options)
        else:
            setattr(message, name, _encoded(schema, value, field))
    except (TypeError, ValueError) as error:
        raise DataError(f"Invalid value of the field {name}: {error}") from error


def _extend(found: Any, element: Schema, values: list[Any], field: Any, options: Options) -> None:
    for each in values:
        if each is None:
            raise DataError(f"The array {field.name} has a null, which Protobuf cannot write.")
        if field.message_type is not None:
            _fill_message(found.add(), element, each, options)
        else:
            found.append(_encoded(element, each, field))


def _fill_map(message: Message, field: Any, schema: Schema, value: dict[Any, Any], options: Options) -> None:
    if schema.key_schema is None or schema.value_schema is None:
        raise DataError(f"The map {field.name} needs schemas of its keys and values.")
    found = getattr(message, field.name)
    if not field.message_type.GetOptions().map_entry:
        for one, other in value.items():
            entry = found.add()
            if one is not None:
                _set(entry, names.KEY, schema.key_schema, one, options)
            if other is not None:
                _set(entry, names.VALUE, schema.value_schema, other, options)
        return
    key, entry_value = field.message_type.fields
    for one, other in value.items():
        name = _encoded(schema.key_schema, one, key)
        if entry_value.message_type is not None:
            _fill_message(found[name], schema.value_schema, other, options)
        else:
            found[name] = _encoded(schema.value_schema, other, entry_value)


def _encoded(schema: Schema, value: Any, field: Any) -> Any:
    if field.enum_type is None:
        return _scalar(schema, value)
    if isinstance(value, int):
        return value
    found = field.enum_type.values_by_name.get(value)
    if found is None:
        raise DataError(f"{value} is not a value of the enum {field.enum_type.full_name}")
    return found.number


def _scalar(schema: Schema, value: Any) -> Any:
    """Return a number in the range of its Protobuf type: Connect's integers have a sign."""
    declared = parameters_of(schema).get(names.PROTOBUF_TYPE)
    if declared in _UNSIGNED_LONG and value < 0:
        return value + _FULL_LONG
    return value


def _fill_message(message: Any, schema: Schema, value: Any, options: Options) -> None:
    if schema.name == logical.DECIMAL_NAME:
        digits = value.as_tuple().digits
        message.value = logical.decimal_to_bytes(schema, value)
        message.precision, message.scale = len(digits), logical.decimal_scale(schema)
    elif schema.name == logical.DATE_NAME:
        logical.date_to_days(schema, value)
        message.year, message.month, message.day = value.year, value.month, value.day
    elif schema.name == logical.TIME_NAME:
        seconds, millis = divmod(logical.time_to_millis(schema, value), 1000)
        message.hours, message.minutes, message.seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
        message.nanos = millis * _NANOS_PER_MILLI
        message.SetInParent()
    elif schema.name == logical.TIMESTAMP_NAME:
        message.seconds, millis = divmod(logical.timestamp_to_millis(schema, value), 1000)
        message.nanos = millis * _NANOS_PER_MILLI
        message.SetInParent()
    elif schema.type is Type.STRUCT:
        fill(message, schema, value, options)
    else:
        message.value = _scalar(schema, value)
        message.SetInParent()


def value_of(message: Any, schema: Schema, options: Options) -> Any:
    """Return Connect's value of a message."""
    if schema.type is not Type.STRUCT:
        return _decoded(schema, message.value, None)
    found = Struct(schema)
    parts = shape(message.DESCRIPTOR)
    for oneof in parts.unions:
        name = message.WhichOneof(oneof.name)
        if name is None:
            continue
        field = message.DESCRIPTOR.fields_by_name[name]
        if options.flatten_unions:
            _put(found, name, _field_value(message, field, _schema_of(schema, name), options))
            continue
        own = union_field(oneof, options)
        union_schema = _schema_of(schema, own)
        union = Struct(union_schema)
        _put(union, name, _field_value(message, field, _schema_of(union_schema, name), options))
        _put(found, own, union)
    for field in parts.fields:
        if _is_set(message, field, parts, options):
            _put(found, field.name, _field_value(message, field, _schema_of(schema, field.name), options))
    return found


def _put(struct: Struct, name: str, value: Any) -> None:
    struct.values[struct.field(name).index] = value


def _schema_of(schema: Schema, name: str) -> Schema:
    field = schema.field(name)
    if field is None:
        raise DataError(f"Cannot find field with name {name}")
    return field.schema


def _is_set(message: Any, field: Any, parts: Shape, options: Options) -> bool:
    """Return whether a field has a value: numbers and text always, unless they are declared optional."""
    if field.is_repeated:
        return True
    if field.message_type is None and not parts.is_optional(field, options):
        return True
    return options.struct_for_nulls or message.HasField(field.name)


def _field_value(message: Any, field: Any, schema: Schema, options: Options) -> Any:
    own = getattr(message, field.name)
    if schema.type is Type.MAP and is_map(field):
        return _map_value(own, field, schema, options)
    if field.is_repeated and schema.value_schema is not None:
        return [_single(each, field, schema.value_schema, options) for each in own]
    return _single(own, field, schema, options)


def _map_value(own: Any, field: Any, schema: Schema, options: Options) -> dict[Any, Any]:
    key, value = field.message_type.fields
    if schema.key_schema is None or schema.value_schema is None:
        raise DataError(f"The map {field.name} needs schemas of its keys and values.")
    pairs = (
        [(name, own[name]) for name in own]
        if field.message_type.GetOptions().map_entry
        else [(each.key, each.value) for each in own]
    )
    return {
        _single(one, key, schema.key_schema, options): _single(other, value, schema.value_schema, options)
        for one, other in pairs
    }


def _single(value: Any, field: Any, schema: Schema, options: Options) -> Any:
    if field.message_type is None:
        return _decoded(schema, value, field)
    if schema.name in names.LOGICAL:
        return _logical(schema, value)
    return value_of(value, schema, options)


def _decoded(schema: Schema, value: Any, field: Any) -> Any:
    if field is not None and field.enum_type is not None and schema.type is Type.STRING:
        known = field.enum_type.values_by_number.get(value)
        return f"UNKNOWN_ENUM_VALUE_{field.enum_type.name}_{value}" if known is None else known.name
    if schema.type is Type.INT64 and value >= _HALF_LONG:
        return value - _FULL_LONG
    if schema.type is Type.INT32 and value >= _HALF:
        return value - _FULL
    return value


def _logical(schema: Schema, message: Any) -> datetime | Decimal:
    if schema.name == logical.DECIMAL_NAME:
        return logical.decimal_of(int.from_bytes(message.value, "big", signed=True), message.scale)
    try:
        if schema.name == logical.DATE_NAME:
            return datetime(message.year, message.month, message.day, tzinfo=UTC)
        if schema.name == logical.TIME_NAME:
            time = timedelta(hours=message.hours, minutes=message.minutes, seconds=message.seconds)
            return logical.EPOCH + time + timedelta(milliseconds=message.nanos // _NANOS_PER_MILLI)
        return logical.datetime_of(message.seconds * 1000 + message.nanos // _NANOS_PER_MILLI)
    except ValueError as error:
        raise DataError(f"Invalid {schema.name}: {error}") from error
