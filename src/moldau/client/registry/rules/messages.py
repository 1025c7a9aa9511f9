"""Protobuf messages as plain data for expressions, and back."""

from __future__ import annotations

from typing import Any


class Unsigned(int):
    """A number of an unsigned type, which expressions distinguish from signed numbers."""


def with_sign(field: Any, value: Any) -> Any:
    """Return a scalar of a field, marked if its type is unsigned."""
    is_unsigned = field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64)
    return Unsigned(value) if is_unsigned else value


def is_message(value: Any) -> bool:
    return hasattr(value, "DESCRIPTOR") and hasattr(value, "ListFields")


def is_repeated(field: Any) -> bool:
    """Return whether a field descriptor is repeated, also with releases that have only its label."""
    known = getattr(field, "is_repeated", None)
    return bool(known) if known is not None else field.label == field.LABEL_REPEATED


def is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def to_plain(value: Any) -> Any:
    """Return a message as a dictionary of all its fields; other values as they are."""
    if not is_message(value):
        return value
    return {field.name: _plain(value, field) for field in value.DESCRIPTOR.fields}


def _plain(message: Any, field: Any) -> Any:
    data = getattr(message, field.name)
    if is_map(field):
        kind = field.message_type.fields_by_name["value"]
        return {str(name): _one(kind, one) for name, one in data.items()}
    if is_repeated(field):
        return [_one(field, one) for one in data]
    if field.message_type is not None:
        return to_plain(data) if message.HasField(field.name) else None
    return with_sign(field, data)


def _one(field: Any, value: Any) -> Any:
    return with_sign(field, value) if field.message_type is None else to_plain(value)


def message_of(data: Any, like: Any) -> Any:
    """Return a message of the type of `like` with the fields of a dictionary."""
    made = type(like)()
    for name, value in data.items():
        _set(made, made.DESCRIPTOR.fields_by_name[name], value)
    return made


def _set(message: Any, field: Any, value: Any) -> None:
    if value is None:
        return
    target = getattr(message, field.name)
    if is_map(field):
        for name, one in value.items():
            if is_message_field(field.message_type.fields_by_name["value"]):
                target[name].CopyFrom(message_of(one, target[name]))
            else:
                target[name] = one
    elif is_repeated(field):
        for one in value:
            if field.message_type is not None:
                added = target.add()
                added.CopyFrom(message_of(one, added))
            else:
                target.append(one)
    elif field.message_type is not None:
        target.CopyFrom(message_of(value, target))
    else:
        setattr(message, field.name, value)


def is_message_field(field: Any) -> bool:
    return field.message_type is not None
