"""Protobuf messages ↔ rows of columns."""

from __future__ import annotations

import datetime
from typing import Any

from moldau.client.registry.rules.messages import is_map, is_repeated

_TIMESTAMP = "google.protobuf.Timestamp"


def to_row(message: Any) -> dict[str, Any]:
    """Return the fields of a message; a field that is not set, and may be absent, is None."""
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Any, field: Any) -> Any:
    if is_map(field):
        kind = field.message_type.fields_by_name["value"]
        return [(str(name), _single(one, kind)) for name, one in getattr(message, field.name).items()]
    if is_repeated(field):
        return [_single(one, field) for one in getattr(message, field.name)]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _single(getattr(message, field.name), field)


def _single(value: Any, field: Any) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            return value.ToDatetime(tzinfo=datetime.UTC)
        return to_row(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return value


def fill(message: Any, row: dict[str, Any]) -> None:
    """Set the fields of a message that a row has."""
    for field in message.DESCRIPTOR.fields:
        value = row.get(field.name)
        if value is None:
            continue
        if is_map(field):
            for name, one in value.items():
                _fill_entry(getattr(message, field.name), name, one, field)
        elif is_repeated(field):
            for one in value:
                _append(getattr(message, field.name), one, field)
        elif field.message_type is not None:
            target = getattr(message, field.name)
            target.SetInParent()
            _fill_message(target, value)
        else:
            setattr(message, field.name, _scalar(value, field))


def _fill_message(target: Any, value: Any) -> None:
    if target.DESCRIPTOR.full_name == _TIMESTAMP:
        target.FromDatetime(value)
    else:
        fill(target, value)


def _append(target: Any, value: Any, field: Any) -> None:
    if field.message_type is not None:
        _fill_message(target.add(), value)
    else:
        target.append(_scalar(value, field))


def _fill_entry(target: Any, name: Any, value: Any, field: Any) -> None:
    kind = field.message_type.fields_by_name["value"]
    if kind.message_type is not None:
        _fill_message(target[name], value)
    elif value is not None:
        target[name] = _scalar(value, kind)


def _scalar(value: Any, field: Any) -> Any:
    if field.enum_type is not None:
        return field.enum_type.values_by_name[value].number
    return value
