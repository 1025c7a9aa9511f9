"""Records between connectors, transformations and converters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from moldau.pipelines.connect.data.headers import Headers
from moldau.pipelines.connect.data.schema import Schema


@dataclass(slots=True, kw_only=True)
class ConnectRecord:
    """What the records of sources and sinks have in common. A record is replaced, not changed."""

    topic: str
    partition: int | None = None
    key_schema: Schema | None = None
    key: Any = None
    value_schema: Schema | None = None
    value: Any = None
    timestamp: int | None = None
    headers: Headers = field(default_factory=Headers)

    def replace(self, **changes: Any) -> Self:
        """Return a record that differs in these attributes, with headers of its own."""
        cls = type(self)
        changed = object.__new__(cls)
        for name in _attributes(cls):
            setattr(changed, name, getattr(self, name))
        for name, value in changes.items():
            setattr(changed, name, value)
        if "headers" not in changes:
            changed.headers = self.headers.duplicate()
        return changed


@dataclass(slots=True, kw_only=True)
class SourceRecord(ConnectRecord):
    """A record that a source connector has read, with its position there.

    `source_partition` names what was read (a file, a table), `source_offset` where to continue after this
    record.
    """

    source_partition: Mapping[str, Any] | None = None
    source_offset: Mapping[str, Any] | None = None


@dataclass(slots=True, kw_only=True)
class SinkRecord(ConnectRecord):
    """A record that was consumed for a sink connector.

    The original topic, partition and offset are those of the consumed record; transformations may change the
    others, so offsets are tracked by the original ones.
    """

    offset: int = -1
    timestamp_type: str = "NoTimestampType"
    original_topic: str = ""
    original_partition: int = -1
    original_offset: int = -1

    def __post_init__(self) -> None:
        if not self.original_topic:
            self.original_topic = self.topic
            self.original_partition = -1 if self.partition is None else self.partition
            self.original_offset = self.offset


_ATTRIBUTES: dict[type, tuple[str, ...]] = {}


def _attributes(cls: type[ConnectRecord]) -> tuple[str, ...]:
    found = _ATTRIBUTES.get(cls)
    if found is None:
        found = _ATTRIBUTES[cls] = tuple(cls.__dataclass_fields__)
    return found
