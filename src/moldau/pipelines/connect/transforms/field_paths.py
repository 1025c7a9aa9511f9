"""Paths to fields (KIP-821): V1 is a name, V2 a path with dots, and names with dots in backticks."""

from __future__ import annotations

from typing import Any

from moldau.pipelines.connect.config.definition import ConfigDef, ConfigType, Importance, ValidString
from moldau.pipelines.connect.data.errors import ConfigError
from moldau.pipelines.connect.data.schema import Field, Schema
from moldau.pipelines.connect.data.struct import Struct
from moldau.pipelines.connect.transforms.requirements import require_map, require_struct

SYNTAX_VERSION = "field.syntax.version"
_PURPOSE = "nested field access"


def with_syntax_version(definition: ConfigDef) -> ConfigDef:
    return definition.define(
        SYNTAX_VERSION,
        ConfigType.STRING,
        "V1",
        Importance.HIGH,
        "How fields are named. V1: the name of a field of the record. V2: a path with dots to nested fields; "
        "a name that contains dots is put in backticks, as in `a.b`.c.",
        validator=ValidString(("V1", "V2"), ignore_case=True),
    )


class FieldPath:
    """The way to one field, step by step."""

    __slots__ = ("_last", "_parents")

    def __init__(self, text: str, version: str) -> None:
        steps = _steps(text) if version.upper() == "V2" else [text]
        *self._parents, self._last = steps or [""]

    def field_of(self, schema: Schema) -> Field | None:
        for step in self._parents:
            field = schema.field(step)
            if field is None:
                return None
            schema = field.schema
        return schema.field(self._last)

    def value_in_struct(self, struct: Struct, with_default: bool) -> Any:
        for step in self._parents:
            field = struct.schema.field(step)
            value = None if field is None else struct.value_of(field)
            if value is None:
                return None
            struct = require_struct(value, _PURPOSE)
        last = struct.schema.field(self._last)
        if last is None:
            return None
        return struct.value_of(last) if with_default else struct.values[last.index]

    def value_in_map(self, value: dict[str, Any]) -> Any:
        for step in self._parents:
            nested = value.get(step)
            if nested is None:
                return None
            value = require_map(nested, _PURPOSE)
        return value.get(self._last)


def _steps(path: str) -> list[str]:
    steps: list[str] = []
    position = 0
    while 0 <= position < len(path):
        if path[position] == "`":
            step, position = _quoted_step(path, position)
        else:
            end = path.find(".", position)
            step, position = (path[position:end], end + 1) if end >= 0 else (path[position:], len(path))
        steps.append(step)
    return [*steps, ""] if path.endswith(".") else steps


def _quoted_step(path: str, begin: int) -> tuple[str, int]:
    """Return the name between backticks, and the position after the dot that follows.

    A backtick inside of the name needs a backslash only where a dot or the end of the path follows.
    """
    name, start, position = "", begin + 1, begin + 1
    while True:
        position = path.find("`", position)
        escaped = position > 0 and path[position - 1] == "\\"
        at_end = position == len(path) - 1
        if position < 0 or (at_end and escaped):
            raise ConfigError(
                f"Incomplete backtick pair in path: [{path}],"
                f" consider adding a backslash before backtick at position {begin} to escape it"
            )
        if at_end:
            return name + path[start:position], len(path)
        if path[position + 1] == ".":
            if not escaped:
                return name + path[start:position], position + 2
            name += path[start : position - 1] + "`"
            start = position + 1
        position += 1
