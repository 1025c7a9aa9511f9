"""Finds the field that made encoding fail, so that the fast path need not check for it.

Generated encoders let `None.encode()` or an overflowing `pack` raise; `explain` then walks the message once,
slowly, and names the first value that does not fit its declaration.
"""

from __future__ import annotations

import struct
from typing import Any

from moldau.protocol.fields import Field, Scalar
from moldau.protocol.schema import Message, Struct


def explain(message: Message, version: int, error: Exception) -> str:
    """A sentence with the path of the field at fault, or the error itself if no field is."""
    found = _struct_fault(message, version, type(message).__name__)
    return f"{found or f'{type(message).__name__}: {error}'} (version {version})"


def _struct_fault(value: Struct, version: int, path: str) -> str | None:
    for field in value.FIELDS:
        if not field.versions.has(version):
            continue
        fault = _field_fault(field, getattr(value, field.name), version, f"{path}.{field.name}")
        if fault is not None:
            return fault
    return None


def _field_fault(field: Field, value: Any, version: int, path: str) -> str | None:
    if value is None:
        return None if field.nullable.has(version) else f"{path} may not be null"
    if not field.is_array:
        return _value_fault(field.type, value, version, path)
    if not isinstance(value, list | tuple):
        return f"{path} must be a list, not {type(value).__name__}"
    for index, element in enumerate(value):
        fault = _value_fault(field.type, element, version, f"{path}[{index}]")
        if fault is not None:
            return fault
    return None


def _value_fault(kind: Any, value: Any, version: int, path: str) -> str | None:
    if not isinstance(kind, Scalar):
        if not isinstance(value, kind):
            return f"{path} must be a {kind.__name__}, not {type(value).__name__}"
        return _struct_fault(value, version, path)
    if kind.format is not None:
        try:
            struct.pack(">" + kind.format, value)
        except struct.error as error:
            return f"{path} is not an {kind.__name__}: {value!r} ({error})"
        return None
    if kind.__name__ == "string":
        return _string_fault(value, path)
    fits = isinstance(value, bytes | bytearray | memoryview | list | tuple)
    return None if fits else f"{path} must be bytes, not {type(value).__name__}"


def _string_fault(value: Any, path: str) -> str | None:
    if not isinstance(value, str):
        return f"{path} must be a string, not {type(value).__name__}"
    try:
        length = len(value.encode())
    except UnicodeEncodeError:
        return f"{path} cannot be written as UTF-8: {value!r}"
    return f"{path} is {length} bytes long, which exceeds the maximum of 32767" if length > 0x7FFF else None
