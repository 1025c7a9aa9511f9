"""Descriptors for the pool of `protobuf`, whose rules are stricter than those of Java's library.

A schema that Confluent's registry accepts must be linked here, too. The changes apply to the pool only, never
to a descriptor that clients receive.
"""

from __future__ import annotations

from typing import Any


def adapt(file: Any) -> Any:
    """Change a `FileDescriptorProto` so that the pool accepts it; return it."""
    is_open = file.syntax not in ("", "proto2")
    _adapt_enums(file, is_open)
    waiting = [*file.message_type]
    while waiting:
        message = waiting.pop()
        waiting += message.nested_type
        _adapt_enums(message, is_open)
        _adapt_names(message)
    return file


def _adapt_enums(container: Any, is_open: bool) -> None:
    """Make constants unique among the enums of a scope, and 0 the first constant of an open enum."""
    seen: set[str] = set()
    for enum in container.enum_type:
        for value in enum.value:
            if value.name in seen:
                value.name = f"{enum.name}_{value.name}"
            seen.add(value.name)
        if is_open and enum.value and enum.value[0].number:
            _put_zero_first(enum)


def _put_zero_first(enum: Any) -> None:
    values = [*enum.value]
    zero = next((value for value in values if not value.number), None)
    if zero is None:
        zero = type(values[0])(name=f"{enum.name}_0", number=0)
    ordered = [zero, *(value for value in values if value is not zero)]
    del enum.value[:]
    enum.value.extend(ordered)


def _adapt_names(message: Any) -> None:
    """Make the names of oneofs differ from those of fields, and the JSON names of fields from each other."""
    fields = {field.name for field in message.field}
    for oneof in message.oneof_decl:
        while oneof.name in fields:
            oneof.name = f"_{oneof.name}"
    seen: set[str] = set()
    for field in message.field:
        json_name = field.json_name or _json_name(field.name)
        if json_name in seen:
            field.json_name = json_name = f"{field.name}_{field.number}"
        seen.add(json_name)


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)
