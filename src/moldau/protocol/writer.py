"""Builds the source of one generated function: indented lines, unique names, constants."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moldau.protocol.fields import FRESH, Field, StructType
from moldau.protocol.schema import Message, shared_default, shares_default


class Writer:
    """The source of one function. `constants` becomes its global namespace."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.message = message
        self.version = version
        self.flexible = message.FLEXIBLE.has(version)
        self.constants: dict[str, Any] = {}
        self._lines: list[str] = []
        self._indent = 0
        self._names = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        self._indent += 1
        yield
        self._indent -= 1

    def name(self, prefix: str) -> str:
        """Return a unique local variable."""
        self._names += 1
        return f"{prefix}{self._names}"

    def constant(self, name: str, value: Any) -> str:
        """Define a global of the function; different values with one name get different names."""
        candidate, number = name, 1
        while candidate in self.constants and self.constants[candidate] is not value:
            number += 1
            candidate = f"{name}_{number}"
        self.constants[candidate] = value
        return candidate

    def struct_method(self, method: str, format: str) -> str:
        name = f"{method}_{format.replace('?', 'Z')}"
        if name not in self.constants:
            self.constants[name] = getattr(struct.Struct(">" + format), method)
        return name

    def source(self) -> str:
        return "\n".join(self._lines) + "\n"

    def is_nullable(self, field: Field) -> bool:
        return field.nullable.has(self.version)

    def split_fields(self, fields: tuple[Field, ...]) -> tuple[list[Field], list[Field], list[Field]]:
        """Split fields into those in order, the tagged ones by tag, and those this version lacks."""
        placed, tagged, absent = [], [], []
        for field in fields:
            if not field.versions.has(self.version):
                absent.append(field)
            elif field.tagged.has(self.version):
                tagged.append(field)
            else:
                placed.append(field)
        tagged.sort(key=lambda field: field.tag or 0)
        return placed, tagged, absent

    def default(self, field: Field) -> str:
        """Return an expression for the default of a field; a mutable default is created each time."""
        if field.default is not FRESH:
            return literal(field.default, self)
        if field.is_array:
            return "[]"
        struct_type = field.type
        if not isinstance(struct_type, StructType):
            raise TypeError(f"{field!r} has no default")
        if shares_default(field):
            return self.constant(f"default_{struct_type.__name__}", shared_default(struct_type))
        return f"{self.constant(struct_type.__name__, struct_type)}()"


def literal(value: Any, writer: Writer) -> str:
    """Return a default as source text; ids become named constants."""
    if isinstance(value, bytes) and len(value) == 16:
        return writer.constant("zero_uuid", value)
    return repr(value)


def smallest_size(struct_type: StructType, version: int, flexible: bool) -> int:
    """The minimum size of a struct in a version, which bounds the length of an array of them."""
    size = 1 if flexible else 0
    for field in struct_type.FIELDS:
        if not field.versions.has(version) or field.tagged.has(version):
            continue
        size += smallest_field_size(field, version, flexible)
    return size


def smallest_field_size(field: Field, version: int, flexible: bool) -> int:
    if field.is_array:
        return 1 if flexible else 4
    if field.nullable.has(version) and field.struct is not None:
        return 1
    return smallest_type_size(field.type, version, flexible)


def smallest_type_size(kind: Any, version: int, flexible: bool) -> int:
    if isinstance(kind, StructType):
        return smallest_size(kind, version, flexible)
    if kind.format is not None:
        return int(kind.size)
    if flexible:
        return 1
    return 2 if kind.__name__ == "string" else 4


def holds_records(struct_type: StructType, version: int) -> bool:
    """Whether a struct has a records field at any depth in a version."""
    for field in struct_type.FIELDS:
        if not field.versions.has(version):
            continue
        nested = field.struct
        if holds_records(nested, version) if nested is not None else field.type.__name__ == "records":
            return True
    return False
