"""Partitioning in the words of Iceberg: `region, days(ts), bucket(id, 16), truncate(name, 4)`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from moldau.pipelines.connect.data.errors import ConfigError

#: The transforms by their names, which may be in the plural.
_TRANSFORMS: Final = ("year", "month", "day", "hour", "bucket", "truncate", "identity")
_WITH_WIDTH: Final = frozenset({"bucket", "truncate"})
_ENTRY: Final = re.compile(r"\s*(?:(\w+)\s*\(\s*([^\s,()]+)\s*(?:,\s*(\d+)\s*)?\)|([^\s,()]+))\s*(?:,|$)")


class PartitionField(NamedTuple):
    column: str
    transform: str = "identity"
    width: int = 0


def parse_partitions(text: str) -> list[PartitionField]:
    """Return the fields; `ConfigError` if the text is not valid."""
    fields, position = [], 0
    while text[position:].strip():
        found = _ENTRY.match(text, position)
        if found is None:
            raise ConfigError(
                f"Not a partitioning: {text[position:].strip()}. Valid are: region, days(ts), bucket(id, 16)"
            )
        fields.append(_field(*found.groups()))
        position = found.end()
    return fields


def _field(function: str | None, column: str | None, width: str | None, name: str | None) -> PartitionField:
    if function is None:
        return PartitionField(name or "")
    transform = function.lower()
    transform = transform if transform in _TRANSFORMS else transform.removesuffix("s")
    if transform not in _TRANSFORMS:
        raise ConfigError(f"Unknown transform {function}. Valid are: {', '.join(_TRANSFORMS)}")
    if (width is not None) != (transform in _WITH_WIDTH) or width == "0":
        arguments = "column, 16" if transform in _WITH_WIDTH else "column"
        raise ConfigError(f"The transform {function} is written {transform}({arguments})")
    return PartitionField(column or "", transform, int(width or 0))
